"""``python -m mpi_backend.launch SPEC.json``: starts the ranks of one run, watches them, ends them.

Standard library only, so that it starts at once. Its parent holds the other end of its stdin for as long as it wants
the run, and reads JSON lines from its stdout: progress, proxies to start (launcher ``spark``), and
``{"event": "end", ...}`` last. SPEC has ``plan``, ``in``, ``out``, ``format``, ``partitions``, ``outputs``, ``ansi``,
``ranks``, ``launcher`` (``local``, ``spark`` or a command with ``{ranks}``), ``python`` (words), ``env``,
``oversubscribe``, and ``scratch``: a folder that is removed when the parent has died and cannot remove it. For the
launcher ``spark`` also ``hosts`` with their numbers of ranks, ``address`` of this machine as ranks reach it (``bind``:
the one to listen on, if that is another), and ``shared``: whether ranks see the same files; if not, each finds
``plan.json``, ``in`` and ``out`` in a folder on its own host.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from mpi_backend.launch.launchers import request_of
from mpi_backend.launch.preflight import Problem, check
from mpi_backend.launch.supervisor import Cancelled, Supervisor

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import FrameType

_USAGE = "usage: python -m mpi_backend.launch SPEC.json"


def main(argv: Sequence[str]) -> int:
    """Exit code: 0 if all ranks ended well, 1 if not, 2 for a wrong call, 3 if cancelled."""
    if len(argv) != 1:
        print(_USAGE, file=sys.stderr)  # noqa: T201 - a command's answer
        return 2
    os.umask(0o077)  # ranks and the files of the run are this user's alone
    spec = json.loads(Path(argv[0]).read_text())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _cancel)
    try:
        check(request_of(spec))
        Supervisor(spec, _tell).run()
    except Problem as problem:
        _tell({"event": "end", "ok": False, "error": {**problem.told, "kind": problem.kind}})
        return 1
    except (Cancelled, BrokenPipeError):
        if _is_orphan() and spec.get("scratch") is not None:
            shutil.rmtree(spec["scratch"], ignore_errors=True)
        return 3
    _tell({"event": "end", "ok": True})
    return 0


def _cancel(_signal: int, _frame: FrameType | None) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # ranks are being ended: once is enough
    raise Cancelled


def _is_orphan() -> bool:
    """Tells that it was cancelled; whether nobody reads it any more."""
    try:
        _tell({"event": "end", "ok": False, "error": {"code": "PARALAGG_MPI_CANCELLED", "message": "cancelled"}})
    except OSError:
        return True
    return False


def _tell(event: Mapping[str, Any]) -> None:
    print(json.dumps(event), flush=True)  # noqa: T201 - this is how the parent hears of it


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
