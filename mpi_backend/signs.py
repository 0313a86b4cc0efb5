"""What ranks and their supervisor tell each other: a sign of life each second, an error, the report, an end.

Through files in OUT where both see the same: ``beats/<rank>``, ``error-<rank>.json``, ``report.json``, and of the
supervisor ``beats/supervisor``. Else each rank connects to its supervisor (``SPEC["address"]``), whose ``listener``
makes the same files of what it hears; who watches them need not know.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from pathlib import Path

TOKEN_VARIABLE = "PARALAGG_MPI_TOKEN"  # noqa: S105 - the name of it
"""The environment variable by which a rank shows that it belongs to the run."""
FOLDER_VARIABLE = "PARALAGG_MPI_FOLDER"
"""The environment variable that names the folder of a rank whose host shares none; its proxy has it."""

SILENCE_SECONDS = 15.0


class Signs(Protocol):
    """Of one rank."""

    def live(self) -> bool:
        """Shows that it lives; false where nobody is there any more who wants to know."""

    def fail(self, told: dict[str, Any]) -> None:
        """Its error."""

    def report(self, told: dict[str, Any]) -> None:
        """What the run did."""

    def end(self) -> None:
        """It is not silent from here on, it is done."""


class Files:
    """In a folder that both see."""

    def __init__(self, out: Path, rank: int) -> None:
        self._out = out
        self._mine = out / "beats" / str(rank)
        self._rank = rank
        self._mine.parent.mkdir(parents=True, exist_ok=True)
        self._mine.write_text(json.dumps(_self()), encoding="utf-8")

    def live(self) -> bool:
        """By the clock of the file's machine: the supervisor touches its own file each second."""
        with contextlib.suppress(FileNotFoundError):  # it is done
            os.utime(self._mine)
        try:
            return time.time() - (self._out / "beats" / "supervisor").stat().st_mtime <= SILENCE_SECONDS
        except FileNotFoundError:  # it was started by hand
            return True

    def fail(self, told: dict[str, Any]) -> None:
        """A file."""
        write(self._out / f"error-{self._rank}.json", told)

    def report(self, told: dict[str, Any]) -> None:
        """A file."""
        write(self._out / "report.json", told)

    def end(self) -> None:
        """No file."""
        self._mine.unlink(missing_ok=True)


class Line:
    """By a connection to ``place`` (host:port): the token, then lines of JSON."""

    def __init__(self, place: str, rank: int) -> None:
        host, _, port = place.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), SILENCE_SECONDS)
        with contextlib.suppress(AttributeError, OSError):  # Linux: how long nobody may answer
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * SILENCE_SECONDS))
        self._lock = threading.Lock()  # signs of life come from a thread of their own
        self._socket.sendall(os.environ[TOKEN_VARIABLE].encode() + b"\n")
        self._send({"rank": rank, **_self()})

    def live(self) -> bool:
        """An empty message."""
        try:
            self._send({})
        except OSError:
            return False
        return True

    def fail(self, told: dict[str, Any]) -> None:
        """A message."""
        self._send({"error": told})

    def report(self, told: dict[str, Any]) -> None:
        """A message."""
        self._send({"report": told})

    def end(self) -> None:
        """The last message."""
        self._send({"end": True})

    def _send(self, message: dict[str, Any]) -> None:
        with self._lock:
            self._socket.sendall(json.dumps(message).encode() + b"\n")


def write(path: Path, told: dict[str, Any]) -> None:
    """Whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(told), encoding="utf-8")
    partial.replace(path)


def _self() -> dict[str, Any]:
    return {"host": socket.gethostname(), "pid": os.getpid()}
