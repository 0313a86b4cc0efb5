"""Asked by each rank before it does anything: whether this is the world that was started."""

from __future__ import annotations

import os

from mpi_backend.launch.preflight import RANKS_VARIABLE
from pyspark_paralagg.errors import EnvironmentProblem


def check_world(size: int) -> None:
    """Raises ``EnvironmentProblem`` ``PARALAGG_MPI_MISMATCH`` where MPI counts other ranks than were started.

    An mpi4py that is built for another MPI than the launcher's runs each rank alone, and each would compute everything.
    """
    expected = int(os.environ.get(RANKS_VARIABLE, size))
    if size != expected:
        raise EnvironmentProblem(
            "PARALAGG_MPI_MISMATCH",
            f"the launcher started {expected} ranks, and MPI tells each that there are {size}",
            value=size,
            hint="mpi4py and the launcher belong to different MPIs: take the mpiexec of the MPI that mpi4py was built "
            "for (pip install mpi4py mpich have matching ones), or rebuild mpi4py",
        )
