"""Check that ranks of ``mpi_backend`` can start, and return the environment in which they find the package."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import error_from_rank

if TYPE_CHECKING:
    from mpi_backend.launch.preflight import Request


def check(request: Request) -> None:
    """Raise ``UsageError`` or ``EnvironmentProblem`` with a code ``PARALAGG_MPI_...`` if ranks cannot start."""
    from mpi_backend.launch import preflight  # noqa: PLC0415 - needed only to start ranks

    try:
        preflight.check(request)
    except preflight.Problem as problem:
        raise error_from_rank({**problem.fields, "kind": problem.kind}) from None


def environment() -> dict[str, str]:
    """Return the variables of ranks: where they find the package, and the Python with which they compare theirs."""
    from mpi_backend.launch.preflight import PYTHON_VARIABLE  # noqa: PLC0415 - needed only to start ranks
    from mpi_backend.launch.same_python import own_python  # noqa: PLC0415 - likewise

    return {"PYTHONPATH": python_path(), PYTHON_VARIABLE: own_python()}


def python_path() -> str:
    """Return the ``PYTHONPATH`` with which the supervisor and its ranks import the package of this process."""
    import mpi_backend  # noqa: PLC0415 - needed only to start ranks

    folder = str(Path(str(mpi_backend.__file__)).parent.parent)
    return os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])
