"""``python -m mpi_backend.launch.clear RUN SINCE``: clean up after a supervisor that was killed.

It kills the processes of the run and removes files that MPICH leaves. ``RUN`` is the value of ``RUN_VARIABLE`` in all
processes of the run. ``SINCE`` is the start of the run, in seconds since the epoch. Ranks of a killed supervisor also
end by themselves, but later, and nothing else removes MPICH's files.
"""

from __future__ import annotations

import sys

from mpi_backend.launch.leftovers import remove_unheld
from mpi_backend.launch.process_tree import kill_run


def clear(run: str, since: float) -> None:
    """Kill the processes of a run, then remove the files that no process has open."""
    kill_run(run)
    remove_unheld(after=since)


if __name__ == "__main__":
    clear(sys.argv[1], float(sys.argv[2]))
