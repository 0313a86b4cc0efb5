"""Start two ranks that only print the size of their world: this shows whether mpiexec and mpi4py fit together.

``doctor`` calls it. ``preflight`` checks files only, and ``world`` checks the ranks of a run.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from mpi_backend.launch.launchers import environment
from mpi_backend.launch.preflight import Problem, mpiexec

if TYPE_CHECKING:
    from mpi_backend.launch.preflight import Request

_RANKS = 2
_SECONDS = 60.0
# One write for each rank: with PYTHONUNBUFFERED, parts of two ranks' lines would mix.
_PRINT_SIZE = r"import sys; from mpi4py import MPI; sys.stdout.write(f'ranks {MPI.COMM_WORLD.Get_size()}\n')"


def start_ranks(request: Request) -> None:
    """Start two local ranks and wait for their end. Raise ``Problem`` if they do not start or do not connect."""
    launcher = mpiexec(request)
    command = [launcher, "-n", str(_RANKS), sys.executable, "-c", _PRINT_SIZE]
    env = {**os.environ, **environment({"launcher": "local", "ranks": _RANKS})}
    try:
        result = subprocess.run(  # noqa: S603 - the user's own mpiexec
            command, env=env, capture_output=True, text=True, timeout=_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise _failed(launcher, str(problem)) from None
    sizes = [line.split()[1] for line in result.stdout.splitlines() if line.startswith("ranks ")]
    if result.returncode != 0 or not sizes:
        lines = (result.stderr.strip() or result.stdout.strip()).splitlines()
        raise _failed(launcher, lines[-1] if lines else f"exit code {result.returncode}")
    if sizes != [str(_RANKS)] * _RANKS:
        raise Problem(
            "PARALAGG_MPI_MISMATCH",
            f"{launcher} started {_RANKS} ranks, but MPI reports {sizes[0]} to each",
            value=launcher,
            hint="use mpi4py and a launcher of the same MPI: pip install mpi4py mpich installs matching ones",
        )


def _failed(launcher: str, why: str) -> Problem:
    return Problem(
        "PARALAGG_MPI_NO_LAUNCHER",
        f"{launcher} cannot start ranks of {sys.executable}: {why}",
        value=launcher,
        hint="run pip install pyspark-paralagg[mpi], or use the mpiexec of the MPI that mpi4py was built for",
    )
