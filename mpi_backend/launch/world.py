"""Check, before a rank does anything else, that MPI counts as many ranks as were started."""

from __future__ import annotations

import os

from mpi_backend.launch.preflight import RANKS_VARIABLE
from pyspark_paralagg.errors import EnvironmentProblem


def check_world(size: int) -> None:
    """Raise ``EnvironmentProblem`` ``PARALAGG_MPI_MISMATCH`` if MPI counts another number of ranks than were started.

    If mpi4py is built for another MPI than the launcher's, each rank is alone in its world and would compute all rows.
    """
    expected = int(os.environ.get(RANKS_VARIABLE, size))
    if size != expected:
        raise EnvironmentProblem(
            "PARALAGG_MPI_MISMATCH",
            f"the launcher started {expected} ranks, but MPI reports {size} to each",
            value=size,
            hint="use the mpiexec of the MPI that mpi4py was built for (pip install mpi4py mpich installs matching "
            "ones), or rebuild mpi4py",
        )
