"""What ranks and their supervisor tell each other: a heartbeat each second, an error, the report, an end.

Through files in OUT where both see the same: ``beats/<rank>``, ``error-<rank>.json``, ``report.json``, and of the
supervisor ``beats/supervisor``. Else each rank connects to its supervisor (``SPEC["address"]``), whose ``listener``
makes the same files of what it hears; who watches them need not know.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import socket
import time
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

TOKEN_VARIABLE = "PARALAGG_MPI_TOKEN"  # noqa: S105 - the name of it
"""The environment variable by which a rank shows that it belongs to the run."""
FOLDER_VARIABLE = "PARALAGG_MPI_FOLDER"
"""The environment variable that names the folder of a rank whose host shares none; its proxy has it."""

SILENCE_SECONDS = 15.0
_LONGEST_TICK_SECONDS = 1.5


class Signs(Protocol):
    """Of one rank."""

    def live(self) -> bool:
        """Send a heartbeat; return whether the supervisor is still there."""

    def is_supervised(self) -> bool:
        """Return whether the supervisor is still there."""

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
        self._supervisor = Pulse(out / "beats" / "supervisor")

    def begin(self) -> None:
        """Write the file, which says where the rank runs."""
        self._mine.parent.mkdir(parents=True, exist_ok=True)
        self._mine.write_text(json.dumps(process_info()), encoding="utf-8")

    def live(self) -> bool:
        """Touch the file, and look at the supervisor's."""
        with contextlib.suppress(FileNotFoundError):  # the rank is done
            os.utime(self._mine)
        return self.is_supervised()

    def is_supervised(self) -> bool:
        """Look at the supervisor's file, touched each second; there is none where ranks were started by hand."""
        return self._supervisor.silence() <= SILENCE_SECONDS

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
    """By a connection to ``place`` (host:port): the token, then lines of JSON.

    A rank says ``about`` itself where it runs; its heartbeat has a connection of its own, and says nothing.
    """

    def __init__(self, place: str, rank: int, about: Mapping[str, Any] | None = None) -> None:
        host, _, port = place.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), SILENCE_SECONDS)
        with contextlib.suppress(AttributeError, OSError):  # Linux: how long nobody may answer
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * SILENCE_SECONDS))
        self._socket.sendall(os.environ[TOKEN_VARIABLE].encode() + b"\n")
        self._send({"rank": rank, **(process_info() if about is None else about)})

    def live(self) -> bool:
        """Send an empty message."""
        try:
            self._send({})
        except OSError:
            return False
        return True

    def is_supervised(self) -> bool:
        """Return whether the connection is open: the supervisor sends nothing, so there is only its end to read."""
        return not select.select([self._socket], [], [], 0)[0]

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
        self._socket.sendall(json.dumps(message).encode() + b"\n")


def write(path: Path, told: dict[str, Any]) -> None:
    """Whole or not at all."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(told), encoding="utf-8")
    partial.replace(path)


def process_info() -> dict[str, Any]:
    """Where this process runs."""
    return {"host": socket.gethostname(), "pid": os.getpid()}


class Pulse:
    """How long a file has not changed, while this process ran: a pause of this process is no silence of others."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed: int | None = None
        self._silence = 0.0
        self._checked = time.monotonic()

    def silence(self) -> float:
        """Seconds since the last change; 0 where there is no file."""
        now = time.monotonic()
        self._silence += min(now - self._checked, _LONGEST_TICK_SECONDS)
        self._checked = now
        try:
            changed = self._path.stat().st_mtime_ns
        except FileNotFoundError:
            changed = None
        if changed is None or changed != self._changed:
            self._changed, self._silence = changed, 0.0
        return self._silence
