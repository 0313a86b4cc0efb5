"""What everyone who starts ranks of ``mpi_backend`` asks first: can they start, and where do they find the package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import error_of_rank

if TYPE_CHECKING:
    from mpi_backend.launch.preflight import Request


def check(request: Request) -> None:
    """Whether ranks could start; raises ``UsageError`` or ``EnvironmentProblem`` with a code ``PARALAGG_MPI_...``."""
    from mpi_backend.launch import preflight  # noqa: PLC0415 - needed by those who start ranks only

    try:
        preflight.check(request)
    except preflight.Problem as problem:
        raise error_of_rank({**problem.fields, "kind": problem.kind}) from None


def python_path() -> str:
    """The supervisor and its ranks find the package where this process has found it."""
    import mpi_backend  # noqa: PLC0415 - needed by those who start ranks only

    found = str(Path(str(mpi_backend.__file__)).parent.parent)
    return os.pathsep.join([found, *filter(None, [os.environ.get("PYTHONPATH")])])
