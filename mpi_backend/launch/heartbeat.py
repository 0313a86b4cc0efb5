"""The heartbeat of a rank: a small process beside it, which no lock of the rank's interpreter can delay.

A C function that holds the GIL (a slow regular expression, say) stops all Python threads of a rank, a thread that beats
among them. So the rank starts this process before it starts MPI, and tells it through a pipe where to beat. Each second
it beats if the rank is neither stopped nor dead. It ends when the pipe closes, which the system does for a dead rank.
Where the supervisor is gone, it kills the rank.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from mpi_backend.launch.messages import Files, Line
from mpi_backend.launch.process_tree import is_stopped

if TYPE_CHECKING:
    from mpi_backend.launch.messages import Signs

BEAT_SECONDS = 1.0
_PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from mpi_backend.launch.heartbeat import main; main()"


class Heartbeat:
    """The rank's end of the pipe."""

    def __init__(self) -> None:
        """Start the process. Standard library only, and nothing of the rank's: not its files, not its streams."""
        self._process = subprocess.Popen(  # noqa: S603 - this Python and our own module
            [sys.executable, "-I", "-S", "-c", _PROGRAM, str(Path(__file__).parents[2])],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._pipe = cast("IO[bytes]", self._process.stdin)

    def begin(self, out: str, rank: int, tell: str | None) -> None:
        """Beat for ``rank``: in the folder ``out``, or by a connection to ``tell``."""
        self._pipe.write(json.dumps({"out": out, "rank": rank, "tell": tell}).encode() + b"\n")
        self._pipe.flush()

    def end(self) -> None:
        """Beat no more."""
        self._pipe.close()


def main() -> None:
    """Beat until the pipe closes."""
    rank = os.getppid()
    line = sys.stdin.buffer.readline()
    if not line:
        return
    signs = _signs(json.loads(line))
    while True:
        if not (signs.is_supervised() if is_stopped(rank) else signs.live()):
            if os.getppid() == rank:
                os.kill(rank, signal.SIGKILL)
            return
        if select.select([0], [], [], BEAT_SECONDS)[0]:
            return


def _signs(place: dict[str, Any]) -> Signs:
    if place["tell"] is None:
        return Files(Path(place["out"]), place["rank"])
    return Line(place["tell"], place["rank"], {})
