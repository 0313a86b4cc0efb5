"""How a rank ends its process."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import NoReturn


def leave(code: int) -> NoReturn:
    """End the process at once: Python would take longer to free what a rank holds than many a loop takes.

    With MPI it ends by C's ``exit``, since MPICH reports a good end to its process manager in an exit handler. Hydra
    takes a rank that skips it for a crashed one, and kills the others.
    """
    has_mpi = "mpi4py.MPI" in sys.modules
    if has_mpi:
        sys.modules["mpi4py.MPI"].Finalize()
    sys.stdout.flush()
    sys.stderr.flush()
    if has_mpi:
        ctypes.PyDLL(None).exit(code)  # keeps the GIL: no other thread runs Python code any more
    os._exit(code)
