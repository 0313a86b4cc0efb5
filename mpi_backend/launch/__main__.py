"""``python -m mpi_backend.launch SPEC.json``: start the ranks of one run, supervise them, end them.

It uses the standard library only, so that it starts at once. The parent process keeps stdin open while it needs the
run. It reads JSON lines from stdout: progress, proxies to start (launcher ``spark``), and ``{"event": "end", ...}``
last. Fields of SPEC:

- ``plan``, ``in``, ``out``, ``format``, ``partitions``, ``outputs``, ``ansi``, ``env``, ``oversubscribe``;
- ``counted``: outputs of which only the number of rows is needed;
- ``ranks``: their number; ``launcher``: ``local``, ``spark`` or a command with ``{ranks}``;
- ``python``: the words of the command that starts an interpreter;
- ``scratch``: a folder that the supervisor removes if the parent has died and cannot remove it.

The launcher ``spark`` also needs ``hosts`` with their numbers of ranks, ``address`` of this machine as ranks reach it,
``bind`` (the address to listen on, if it differs), and ``shared``: whether all ranks see the same files. If not, each
rank has ``plan.json``, ``in`` and ``out`` in a folder on its own host.
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
    """Run the supervisor. Return 0 if all ranks succeeded, 1 if not, 2 for wrong arguments, 3 if cancelled."""
    if len(argv) != 1:
        print(_USAGE, file=sys.stderr)  # noqa: T201 - the output of a command
        return 2
    os.umask(0o077)  # only this user may access the ranks and the files of the run
    spec = json.loads(Path(argv[0]).read_text())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _cancel)
    try:
        check(request_of(spec))
        Supervisor(spec, _send_event).run()
    except Problem as problem:
        _send_event({"event": "end", "ok": False, "error": {**problem.fields, "kind": problem.kind}})
        return 1
    except (Cancelled, BrokenPipeError):
        if not _send_cancelled() and spec.get("scratch") is not None:
            shutil.rmtree(spec["scratch"], ignore_errors=True)
        return 3
    _send_event({"event": "end", "ok": True})
    return 0


def _cancel(_signal: int, _frame: FrameType | None) -> NoReturn:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)  # ranks are already being ended
    raise Cancelled


def _send_cancelled() -> bool:
    """Send the event that the run was cancelled. Return whether the parent still reads events."""
    try:
        _send_event({"event": "end", "ok": False, "error": {"code": "PARALAGG_MPI_CANCELLED", "message": "cancelled"}})
    except OSError:
        return False
    return True


def _send_event(event: Mapping[str, Any]) -> None:
    print(json.dumps(event), flush=True)  # noqa: T201 - the parent reads events from stdout


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
