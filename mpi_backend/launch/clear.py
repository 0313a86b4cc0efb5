"""``python -m mpi_backend.launch.clear RUN SINCE``: end what a killed supervisor left of a run that began at ``SINCE``.

``RUN`` is what all of its processes have as ``RUN_VARIABLE``, ``SINCE`` is in seconds since the epoch. The ranks of a
killed supervisor end by themselves, but not at once, and nobody else removes what MPICH leaves of them.
"""

from __future__ import annotations

import sys

from mpi_backend.launch.leftovers import remove_unheld
from mpi_backend.launch.process_tree import kill_run


def clear(run: str, since: float) -> None:
    """Kill the processes, then remove the files that none has open any more."""
    kill_run(run)
    remove_unheld(after=since)


if __name__ == "__main__":
    clear(sys.argv[1], float(sys.argv[2]))
