"""Send the heartbeats of a rank from a small process beside it, which the rank's GIL cannot delay.

A C function that holds the GIL (a slow regular expression, for example) stops all Python threads of a rank. So the
rank starts this process before it starts MPI, and sends it through a pipe the place to which heartbeats go. The process
sends a heartbeat each second if the rank is neither stopped nor dead. It ends when the pipe closes, also because the
rank has died. It kills the rank if the supervisor is gone.
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

import psutil

from mpi_backend.launch.messages import FileLink, SocketLink
from mpi_backend.launch.process_tree import is_stopped

if TYPE_CHECKING:
    from mpi_backend.launch.messages import SupervisorLink

BEAT_SECONDS = 1.0
_PROGRAM = "import sys; sys.path += sys.argv[1:]; from mpi_backend.launch.heartbeat import main; main()"
_FOLDERS = [str(Path(__file__).parents[2]), str(Path(psutil.__file__).parents[1])]


class Heartbeat:
    """The rank's end of the pipe to its heartbeat process."""

    def __init__(self) -> None:
        """Start the process. It imports little, to start fast, and inherits no files or streams of the rank."""
        self._process = subprocess.Popen(  # noqa: S603 - this Python and our own module
            [sys.executable, "-I", "-S", "-c", _PROGRAM, *_FOLDERS],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._pipe = cast("IO[bytes]", self._process.stdin)

    def begin(self, out: str, rank: int, address: str | None) -> None:
        """Start to send heartbeats of ``rank``: files in the folder ``out``, or messages to ``address``."""
        self._pipe.write(json.dumps({"out": out, "rank": rank, "tell": address}).encode() + b"\n")
        self._pipe.flush()

    def end(self) -> None:
        """Stop the heartbeats."""
        self._pipe.close()


def main() -> None:
    """Send heartbeats until the pipe closes."""
    rank = os.getppid()
    line = sys.stdin.buffer.readline()
    if not line:
        return
    link = _open_link(json.loads(line))
    while True:
        if not (link.is_supervised() if is_stopped(rank) else link.send_heartbeat()):
            if os.getppid() == rank:
                os.kill(rank, signal.SIGKILL)
            return
        if select.select([0], [], [], BEAT_SECONDS)[0]:
            return


def _open_link(place: dict[str, Any]) -> SupervisorLink:
    if place["tell"] is None:
        return FileLink(Path(place["out"]), place["rank"])
    return SocketLink(place["tell"], place["rank"], {})
