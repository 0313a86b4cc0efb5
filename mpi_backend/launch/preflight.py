"""Check before ranks start that there is a launcher, MPI, a core for each rank and a writable staging directory.

The check runs where a recursion is defined, and again in the supervisor. It starts no process. Whether mpi4py fits the
launcher's MPI shows only when ranks run: each compares the size of its world with ``RANKS_VARIABLE`` (``world``).
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from mpi_backend.machine import available_cores

RANKS_VARIABLE = "PARALAGG_MPI_RANKS"
"""The environment variable with the number of ranks of the run."""
PYTHON_VARIABLE = "PARALAGG_MPI_DRIVER"
"""The environment variable with the driver's Python and package, as ``same_python.own_python`` returns them."""
MORE_MEMORY = "use more machines, or fewer ranks on each"
"""The hint if memory has run out."""
MORE_SPACE = "free space there, or set spark.paralagg.mpi.stagingDir or spark.local.dir to a larger disk"
"""The hint if a disk is full."""

Kind = Literal["usage", "environment", "run"]


class Problem(Exception):  # noqa: N818 - it becomes a line of JSON, or an error of pyspark_paralagg
    """The reason why ranks cannot run or have failed: code, message, value, place, hint; rank and host, if known."""

    def __init__(
        self,
        code: str,
        message: str,
        *,
        kind: Kind = "environment",
        value: object = None,
        place: str | None = None,
        hint: str | None = None,
        rank: int | None = None,
        host: str | None = None,
        traceback: str | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.fields: dict[str, Any] = {
            "code": code,
            "message": message,
            "value": value,
            "place": place,
            "hint": hint,
            "rank": rank,
            "host": host,
            "traceback": traceback,
        }


class Places(NamedTuple):
    """The names of the settings that an error may refer to."""

    launcher: str = "spark.paralagg.mpi.launcher"
    ranks: str = "spark.paralagg.mpi.ranks"
    staging: str = "spark.paralagg.mpi.stagingDir"
    oversubscribe: str = "spark.paralagg.mpi.oversubscribe"


CONFS = Places()


@dataclass(frozen=True)
class Request:
    """The ranks to start: ``launcher`` as in a SPEC, ``python`` as the words of an interpreter's command."""

    launcher: str
    ranks: int
    python: tuple[str, ...] = (sys.executable,)
    oversubscribe: bool = False
    staging: str | None = None
    places: Places = CONFS

    @property
    def needs_mpi(self) -> bool:
        """Return whether mpiexec and mpi4py are needed. One local rank runs in one process without them."""
        return self.ranks > 1 or self.launcher != "local"


def check(request: Request) -> None:
    """Raise the first ``Problem`` path."""
    _check_packages(request)
    if request.launcher == "local":
        if request.ranks > 1:
            _check_slots(request)
            mpiexec(request)
    elif request.launcher == "spark":
        mpiexec(request)
    else:
        _check_template(request)
    if request.staging is not None:
        check_staging(Path(request.staging), request.places)


def mpiexec(request: Request) -> str:
    """Return the ``mpiexec`` beside the interpreter (usually from the wheel ``mpich``), else the first on PATH."""
    beside = Path(request.python[0]).parent / "mpiexec"
    path = str(beside) if os.access(beside, os.X_OK) else shutil.which("mpiexec")
    if path is None:
        raise Problem(
            "PARALAGG_MPI_NO_LAUNCHER",
            f"no mpiexec is found beside {request.python[0]} or on PATH",
            value=request.launcher,
            place=request.places.launcher,
            hint="run pip install pyspark-paralagg[mpi], or set the command of your cluster, such as srun -n {ranks}",
        )
    return path


def check_staging(folder: Path, places: Places) -> None:
    """Raise ``Problem`` if no file can be created in ``folder``, or in its nearest parent that exists."""
    existing = next((p for p in (folder, *folder.parents) if p.exists()), Path("/"))
    try:
        with tempfile.NamedTemporaryFile(dir=existing, prefix=".paralagg-"):
            pass
    except OSError as error:
        raise Problem(
            "PARALAGG_MPI_STAGING",
            f"the staging directory {folder} is not writable: {error.strerror}",
            value=str(folder),
            place=places.staging,
            hint="set a directory that the driver, the executors and the ranks can write to",
        ) from None


def _check_packages(request: Request) -> None:
    if request.python[0] != sys.executable:
        return  # the interpreter is another one, or on another machine: its ranks report missing packages
    if importlib.util.find_spec("numba") is None:
        raise _missing_package("PARALAGG_MPI_NO_NUMBA", "numba", request)
    if request.needs_mpi and importlib.util.find_spec("mpi4py") is None:
        raise _missing_package("PARALAGG_MPI_NO_MPI4PY", "mpi4py", request)


def _missing_package(code: str, package: str, request: Request) -> Problem:
    return Problem(
        code,
        f"{package} is not installed for {sys.executable}",
        value=package,
        place=request.places.launcher,
        hint="pip install pyspark-paralagg[mpi]",
    )


def _check_slots(request: Request) -> None:
    if request.ranks > available_cores() and not request.oversubscribe:
        raise Problem(
            "PARALAGG_MPI_TOO_MANY_RANKS",
            f"{request.ranks} ranks exceed the {available_cores()} cores of this machine, and waiting ranks spin",
            kind="usage",
            value=request.ranks,
            place=request.places.ranks,
            hint=f"use at most {available_cores()} ranks, or set {request.places.oversubscribe}=true",
        )


def _check_template(request: Request) -> None:
    try:
        words = shlex.split(request.launcher)
    except ValueError:
        words = []
    if not words or not any("{ranks}" in word for word in words):
        raise Problem(
            "PARALAGG_MPI_BAD_LAUNCHER",
            f"the launcher {request.launcher!r} has no {{ranks}} for the number of ranks",
            kind="usage",
            value=request.launcher,
            place=request.places.launcher,
            hint="use local, spark, or a command with {ranks}, such as srun -n {ranks} --kill-on-bad-exit",
        )
    if shutil.which(words[0]) is None:
        raise Problem(
            "PARALAGG_MPI_NO_LAUNCHER",
            f"the command {words[0]!r} is not on PATH",
            value=request.launcher,
            place=request.places.launcher,
            hint="write its full path, or use the launcher local",
        )
