"""End the process of a rank."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import NoReturn


def exit_process(code: int) -> NoReturn:
    """End the process at once: Python takes longer to free the memory of a rank than many a loop takes.

    With MPI the process ends by C's ``exit``, because MPICH reports success to its process manager in an exit handler.
    Hydra treats a rank that skips the handler as crashed, and kills the others.
    """
    has_mpi = "mpi4py.MPI" in sys.modules
    if has_mpi:
        sys.modules["mpi4py.MPI"].Finalize()
    sys.stdout.flush()
    sys.stderr.flush()
    if has_mpi:
        ctypes.PyDLL(None).exit(code)  # PyDLL keeps the GIL, so no other thread runs Python code
    os._exit(code)
