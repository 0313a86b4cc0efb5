"""Send the messages of a rank to its supervisor: a heartbeat each second, an error, the report, an end.

If both see the same files, messages are files in OUT: ``beats/<rank>``, ``error-<rank>.json`` and ``report.json``. The
supervisor's own heartbeat is ``beats/supervisor``. Otherwise each rank connects to its supervisor
(``SPEC["address"]``), whose ``listener`` writes the same files, so the supervisor reads files in both cases.
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

TOKEN_VARIABLE = "PARALAGG_MPI_TOKEN"  # noqa: S105 - the name of the variable
"""The environment variable with the token that authenticates a rank."""
FOLDER_VARIABLE = "PARALAGG_MPI_FOLDER"
"""The environment variable with a rank's folder on a host that shares no files; its proxy has it."""

SILENCE_SECONDS = 15.0
_LONGEST_TICK_SECONDS = 1.5


class SupervisorLink(Protocol):
    """One rank's way to its supervisor."""

    def send_heartbeat(self) -> bool:
        """Send a heartbeat. Return whether the supervisor still runs."""

    def is_supervised(self) -> bool:
        """Return whether the supervisor still runs."""

    def send_error(self, error: dict[str, Any]) -> None:
        """Send the error with which the rank ends."""

    def send_report(self, report: dict[str, Any]) -> None:
        """Send the report of the run."""

    def send_end(self) -> None:
        """Send that the rank ends without an error, so that missing heartbeats mean nothing."""


class FileLink:
    """Files in a folder that the rank and the supervisor share."""

    def __init__(self, out: Path, rank: int) -> None:
        self._out = out
        self._heartbeat_file = out / "beats" / str(rank)
        self._rank = rank
        self._supervisor = SilenceTimer(out / "beats" / "supervisor")

    def begin(self) -> None:
        """Write the heartbeat file, with the host and the process id of the rank."""
        self._heartbeat_file.parent.mkdir(parents=True, exist_ok=True)
        self._heartbeat_file.write_text(json.dumps(process_info()), encoding="utf-8")

    def send_heartbeat(self) -> bool:
        """Touch the heartbeat file, and check the supervisor's."""
        with contextlib.suppress(FileNotFoundError):  # the rank has ended
            os.utime(self._heartbeat_file)
        return self.is_supervised()

    def is_supervised(self) -> bool:
        """Return whether the supervisor has touched its file lately. A rank started by hand has no such file."""
        return self._supervisor.seconds() <= SILENCE_SECONDS

    def send_error(self, error: dict[str, Any]) -> None:
        """Write a file."""
        write_json(self._out / f"error-{self._rank}.json", error)

    def send_report(self, report: dict[str, Any]) -> None:
        """Write a file."""
        write_json(self._out / "report.json", report)

    def send_end(self) -> None:
        """Remove the heartbeat file."""
        self._heartbeat_file.unlink(missing_ok=True)


class SocketLink:
    """A connection to ``address`` (host:port), which carries the token, then lines of JSON.

    A rank sends its host and process id as ``about``. Its heartbeat process has another connection, and sends none.
    """

    def __init__(self, address: str, rank: int, about: Mapping[str, Any] | None = None) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host.strip("[]"), int(port)), SILENCE_SECONDS)
        # Only Linux has this option: unacknowledged data closes the connection.
        with contextlib.suppress(AttributeError, OSError):
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(1000 * SILENCE_SECONDS))
        self._socket.sendall(os.environ[TOKEN_VARIABLE].encode() + b"\n")
        self._send({"rank": rank, **(process_info() if about is None else about)})

    def send_heartbeat(self) -> bool:
        """Send an empty message."""
        try:
            self._send({})
        except OSError:
            return False
        return True

    def is_supervised(self) -> bool:
        """Return whether the connection is open. The supervisor sends nothing, so only its end is readable."""
        return not select.select([self._socket], [], [], 0)[0]

    def send_error(self, error: dict[str, Any]) -> None:
        """Send a message."""
        self._send({"error": error})

    def send_report(self, report: dict[str, Any]) -> None:
        """Send a message."""
        self._send({"report": report})

    def send_end(self) -> None:
        """Send the last message."""
        self._send({"end": True})

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps(message).encode() + b"\n")


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a file atomically: no reader sees a part of it."""
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(content), encoding="utf-8")
    partial.replace(path)


def process_info() -> dict[str, Any]:
    """Return the host and the id of this process."""
    return {"host": socket.gethostname(), "pid": os.getpid()}


class SilenceTimer:
    """The time that a file has not changed, counted only while this process runs: its own pauses do not count."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed: int | None = None
        self._silence = 0.0
        self._checked = time.monotonic()

    def seconds(self) -> float:
        """Return the seconds since the last change; 0 if there is no file."""
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
