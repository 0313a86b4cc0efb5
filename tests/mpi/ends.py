"""Run a rank that prints a dot and ends as ranks do: ``mpiexec -n 4 python ends.py``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from mpi4py import MPI

from mpi_backend.launch.exit_process import exit_process

if __name__ == "__main__":
    MPI.COMM_WORLD.Barrier()
    until = time.monotonic() + 0.01 * MPI.COMM_WORLD.rank
    while time.monotonic() < until:
        pass
    sys.stdout.write(".")
    exit_process(0)
