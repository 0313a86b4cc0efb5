"""Check in a rank, before it imports anything else, that its Python and its package are those of the driver.

The path of the interpreter is the driver's. On another machine it may be another Python, which cannot import numpy
or numba, so this module and its imports use the standard library only.
"""

from __future__ import annotations

import argparse
import os
import re
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from mpi_backend.launch.messages import FileLink, SocketLink
from mpi_backend.launch.preflight import PYTHON_VARIABLE, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.launch.messages import SupervisorLink

_RANK_VARIABLES = ("PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_VERSION_FILE = Path(__file__).parents[2] / "pyspark_paralagg" / "version.py"


def own_python() -> str:
    """Return the minor of this Python and the version of its package, such as ``3.11 with pyspark-paralagg 0.1.0``."""
    version = re.search(r'^VERSION = "(.+)"$', _VERSION_FILE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return f"{sys.version_info[0]}.{sys.version_info[1]} with pyspark-paralagg {version[1] if version else '?'}"


def check_python() -> None:
    """Raise ``Problem`` ``PARALAGG_MPI_PYTHON`` if the driver has another minor of Python, or another package."""
    expected = os.environ.get(PYTHON_VARIABLE, own_python())
    if own_python() != expected:
        raise Problem(
            "PARALAGG_MPI_PYTHON",
            f"{sys.executable} of a rank is Python {own_python()}, but the driver runs Python {expected}",
            value=own_python(),
            hint="install the same Python and the same pyspark-paralagg at this path on all machines, or use one image",
        )


def send_other_python(argv: Sequence[str]) -> bool:
    """Send the supervisor the error of ``check_python``. Return whether there is one. ``argv`` is the worker's."""
    try:
        check_python()
    except Problem as problem:
        rank = int(next((os.environ[name] for name in _RANK_VARIABLES if name in os.environ), "0"))
        error = {**problem.fields, "rank": rank, "host": socket.gethostname()}
        sys.stderr.write(f"{error['code']}: {error['message']}\n")
        _link(argv, rank).send_error(error)
        return True
    return False


def _link(argv: Sequence[str], rank: int) -> SupervisorLink:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--out", required=True)
    parser.add_argument("--tell")
    options = parser.parse_known_args(argv)[0]
    return SocketLink(options.tell, rank) if options.tell else FileLink(Path(options.out), rank)
