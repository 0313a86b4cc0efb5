"""Run a rank that starts MPI, prints the shared memory that MPICH has opened, and sleeps: ``mpiexec -n 2 ...``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from mpi_backend.comm import PIECE_BYTES
from mpi_backend.launch.leftovers import PREFIXES
from mpi_backend.worker import _comm

if __name__ == "__main__":
    _comm(PIECE_BYTES)
    maps = Path("/proc/self/maps").read_text().splitlines()
    files = {line[line.index("/") :] for line in maps if PREFIXES[0] in line}
    sys.stdout.write(" ".join(files) + "\n")
    sys.stdout.flush()
    while True:
        time.sleep(1)
