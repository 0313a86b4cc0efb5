"""The supervisor's end of the connections of ranks that share no files with it (``signs.Line`` is the other end).

A connection begins with the token and a newline, compared before anything is parsed. What follows are lines of JSON of
at most ``MESSAGE_BYTES``. Strangers (who have not shown the token yet) are few and have ``AUTHENTICATE_SECONDS``.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import secrets
import selectors
import socket
import time
from typing import TYPE_CHECKING, Any, cast

from mpi_backend.launch.messages import write
from mpi_backend.launch.preflight import Problem

if TYPE_CHECKING:
    from pathlib import Path

AUTHENTICATE_SECONDS = 5.0
MESSAGE_BYTES = 1 << 26
MORE_STRANGERS = 64
"""Beside the two connections of each rank, which all may come at once."""
_FRESH_SECONDS = 0.2
_CHUNK = 1 << 16


class Listener:
    """Listens on ``address`` only. ``hear`` writes the files in ``out`` that other ranks write themselves."""

    def __init__(self, out: Path, address: str, ranks: int) -> None:
        self._out, self._ranks = out, ranks
        self.token = secrets.token_hex(16)
        self._most_strangers = 2 * ranks + MORE_STRANGERS
        _raise_limit(2 * ranks + self._most_strangers)
        self._door = _door(address)
        self.port: int = self._door.getsockname()[1]
        self._ears = selectors.DefaultSelector()
        self._ears.register(self._door, selectors.EVENT_READ)
        self._strangers: dict[_Caller, None] = {}  # the oldest first
        self._known: set[_Caller] = set()

    def hear(self, seconds: float = 0.0) -> None:
        """Wait for so long at most, unless there is something."""
        for key, _ in self._ears.select(seconds):
            if key.data is None:
                self._accept()
            elif key.data in self._strangers or key.data in self._known:
                self._read(key.data)
        now = time.monotonic()
        for caller in [c for c in self._strangers if now - c.since > AUTHENTICATE_SECONDS]:
            self._drop(caller)

    def hear_all(self, seconds: float) -> None:
        """Listen until every rank that has a connection has ended it, or for so long."""
        until = time.monotonic() + seconds
        self.hear()
        while self._is_awaited() and (left := until - time.monotonic()) > 0:
            self.hear(min(left, _FRESH_SECONDS))

    def close(self) -> None:
        """Close all connections; ranks that still run see it and end themselves."""
        for key in list(self._ears.get_map().values()):
            cast("socket.socket", key.fileobj).close()
        self._ears.close()

    def _is_awaited(self) -> bool:
        now = time.monotonic()
        return bool(self._known) or any(now - c.since < _FRESH_SECONDS for c in self._strangers)

    def _accept(self) -> None:
        for _ in range(self._most_strangers):
            try:
                line, _ = self._door.accept()
            except BlockingIOError:
                return
            except OSError as problem:
                if problem.errno not in (errno.EMFILE, errno.ENFILE) or not self._strangers:
                    return  # the caller has gone, or another tick has more room
                self._drop(next(iter(self._strangers)))
                continue
            line.settimeout(0)
            caller = _Caller(line, self._out, self.token, self._ranks)
            self._strangers[caller] = None
            self._ears.register(line, selectors.EVENT_READ, caller)
            if len(self._strangers) > self._most_strangers:
                oldest = next(iter(self._strangers))
                self._read(oldest)  # what it has sent may have arrived by now
                if oldest in self._strangers:
                    self._drop(oldest)

    def _read(self, caller: _Caller) -> None:
        if not caller.read():
            self._drop(caller)
        elif caller.is_known and caller in self._strangers:
            del self._strangers[caller]
            self._known.add(caller)

    def _drop(self, caller: _Caller) -> None:
        self._strangers.pop(caller, None)
        self._known.discard(caller)
        self._ears.unregister(caller.line)
        caller.line.close()


class _Caller:
    """One connection."""

    def __init__(self, line: socket.socket, out: Path, token: str, ranks: int) -> None:
        self.line = line
        self.since = time.monotonic()
        self.is_known = False
        self._out, self._ranks = out, ranks
        self._token = token.encode() + b"\n"
        self._rest = bytearray()
        self._rank: int | None = None

    def read(self) -> bool:
        """Take what has come; return whether more may come."""
        try:
            chunk = self.line.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        searched = len(self._rest)
        self._rest += chunk
        if not self.is_known:
            if len(self._rest) < len(self._token):
                return bool(chunk) and b"\n" not in self._rest
            if not secrets.compare_digest(bytes(self._rest[: len(self._token)]), self._token):
                return False
            self.is_known, searched = True, 0
            del self._rest[: len(self._token)]
        return self._take_lines(searched) and bool(chunk)

    def _take_lines(self, searched: int) -> bool:
        """Take all whole lines; return whether they were messages, and none is too long."""
        while (end := self._rest.find(b"\n", searched)) >= 0:
            line, searched = bytes(self._rest[:end]), 0
            del self._rest[: end + 1]
            try:
                self._take(json.loads(line))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                return False
        return len(self._rest) <= MESSAGE_BYTES

    def _take(self, message: dict[str, Any]) -> None:
        if self._rank is None:
            rank = message.pop("rank")
            if rank not in range(self._ranks):
                raise LookupError
            self._rank = rank
            if message:  # a connection that is for heartbeats alone says nothing of itself
                self._beat.write_text(json.dumps(message), encoding="utf-8")
        elif "error" in message:
            write(self._out / f"error-{self._rank}.json", message["error"])
        elif "report" in message:
            write(self._out / "report.json", message["report"])
        elif "end" in message:
            self._beat.unlink(missing_ok=True)
        else:
            with contextlib.suppress(FileNotFoundError):  # it is done
                os.utime(self._beat)

    @property
    def _beat(self) -> Path:
        return self._out / "beats" / str(self._rank)


def _door(address: str) -> socket.socket:
    try:
        family, _, _, _, place = socket.getaddrinfo(address.strip("[]"), 0, type=socket.SOCK_STREAM)[0]
        door = socket.create_server(cast("tuple[str, int]", place[:2]), family=family, backlog=1024)
    except OSError as problem:
        raise Problem(
            "PARALAGG_MPI_ADDRESS",
            f"the supervisor of the ranks cannot listen on {address}: {problem.strerror or problem}",
            value=address,
            place="spark.driver.bindAddress",
            hint="set spark.driver.host to the address of this machine that executors reach; where that is another "
            "machine's, set spark.driver.bindAddress to one of this machine",
        ) from None
    door.settimeout(0)
    return door


def _raise_limit(sockets: int) -> None:
    """Allow for so many open files, as far as the system lets this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = sockets + 64
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
