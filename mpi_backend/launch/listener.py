"""Receive the messages of ranks that share no files with their supervisor (``messages.SocketLink`` sends them).

A connection begins with the token and a newline; the listener compares the token before it parses anything. Lines of
JSON follow, each of at most ``MESSAGE_BYTES``. The number of connections that have not sent the token yet is bounded,
and each of them is closed after ``AUTHENTICATE_SECONDS``.
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

from mpi_backend.launch.messages import write_json
from mpi_backend.launch.preflight import Problem

if TYPE_CHECKING:
    from pathlib import Path

AUTHENTICATE_SECONDS = 5.0
MESSAGE_BYTES = 1 << 26
EXTRA_UNAUTHENTICATED = 64
"""Added to the two connections of each rank, which may all open at once."""
_NEW_SECONDS = 0.2
"""The age below which an unauthenticated connection may be a rank's last message."""
_CHUNK = 1 << 16


class Listener:
    """A server on one ``address``. ``poll`` writes each message to ``out``, as ``messages.FileLink`` does."""

    def __init__(self, out: Path, address: str, ranks: int) -> None:
        self._out, self._ranks = out, ranks
        self.token = secrets.token_hex(16)
        self._max_unauthenticated = 2 * ranks + EXTRA_UNAUTHENTICATED
        _raise_limit(2 * ranks + self._max_unauthenticated)
        self._server = _open_server(address)
        self.port: int = self._server.getsockname()[1]
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._server, selectors.EVENT_READ)
        self._unauthenticated: dict[_Connection, None] = {}  # the oldest first
        self._authenticated: set[_Connection] = set()

    def poll(self, seconds: float = 0.0) -> None:
        """Accept connections and read messages. Wait at most ``seconds`` for the first."""
        for key, _ in self._selector.select(seconds):
            if key.data is None:
                self._accept()
            elif key.data in self._unauthenticated or key.data in self._authenticated:
                self._read(key.data)
        now = time.monotonic()
        for connection in [c for c in self._unauthenticated if now - c.opened_at > AUTHENTICATE_SECONDS]:
            self._drop(connection)

    def poll_until_closed(self, seconds: float) -> None:
        """Poll until every connection of a rank is closed, at most for ``seconds``."""
        deadline = time.monotonic() + seconds
        self.poll()
        while self._has_open_ranks() and (left := deadline - time.monotonic()) > 0:
            self.poll(min(left, _NEW_SECONDS))

    def close(self) -> None:
        """Close all connections. Ranks that still run notice it and end."""
        for key in list(self._selector.get_map().values()):
            cast("socket.socket", key.fileobj).close()
        self._selector.close()

    def _has_open_ranks(self) -> bool:
        now = time.monotonic()
        return bool(self._authenticated) or any(now - c.opened_at < _NEW_SECONDS for c in self._unauthenticated)

    def _accept(self) -> None:
        for _ in range(self._max_unauthenticated):
            try:
                client, _ = self._server.accept()
            except BlockingIOError:
                return
            except OSError as problem:
                if problem.errno not in (errno.EMFILE, errno.ENFILE) or not self._unauthenticated:
                    return  # the connection was closed, or a later poll may find a free file descriptor
                self._drop(next(iter(self._unauthenticated)))
                continue
            client.settimeout(0)
            connection = _Connection(client, self._out, self.token, self._ranks)
            self._unauthenticated[connection] = None
            self._selector.register(client, selectors.EVENT_READ, connection)
            if len(self._unauthenticated) > self._max_unauthenticated:
                oldest = next(iter(self._unauthenticated))
                self._read(oldest)  # its token may have arrived by now
                if oldest in self._unauthenticated:
                    self._drop(oldest)

    def _read(self, connection: _Connection) -> None:
        if not connection.read():
            self._drop(connection)
        elif connection.is_authenticated and connection in self._unauthenticated:
            del self._unauthenticated[connection]
            self._authenticated.add(connection)

    def _drop(self, connection: _Connection) -> None:
        self._unauthenticated.pop(connection, None)
        self._authenticated.discard(connection)
        self._selector.unregister(connection.socket)
        connection.socket.close()


class _Connection:
    """One rank's connection."""

    def __init__(self, client: socket.socket, out: Path, token: str, ranks: int) -> None:
        self.socket = client
        self.opened_at = time.monotonic()
        self.is_authenticated = False
        self._out, self._ranks = out, ranks
        self._token = token.encode() + b"\n"
        self._buffer = bytearray()
        self._rank: int | None = None

    def read(self) -> bool:
        """Read and handle the available data. Return whether the connection stays open."""
        try:
            chunk = self.socket.recv(_CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        searched = len(self._buffer)
        self._buffer += chunk
        if not self.is_authenticated:
            if len(self._buffer) < len(self._token):
                return bool(chunk) and b"\n" not in self._buffer
            if not secrets.compare_digest(bytes(self._buffer[: len(self._token)]), self._token):
                return False
            self.is_authenticated, searched = True, 0
            del self._buffer[: len(self._token)]
        return self._handle_lines(searched) and bool(chunk)

    def _handle_lines(self, searched: int) -> bool:
        """Handle all complete lines. Return False if one is no message or the rest is too long."""
        while (end := self._buffer.find(b"\n", searched)) >= 0:
            line, searched = bytes(self._buffer[:end]), 0
            del self._buffer[: end + 1]
            try:
                self._handle(json.loads(line))
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
                return False
        return len(self._buffer) <= MESSAGE_BYTES

    def _handle(self, message: dict[str, Any]) -> None:
        if self._rank is None:
            rank = message.pop("rank")
            if rank not in range(self._ranks):
                raise LookupError
            self._rank = rank
            if message:  # the connection of a heartbeat process sends its rank only
                self._heartbeat_file.write_text(json.dumps(message), encoding="utf-8")
        elif "error" in message:
            write_json(self._out / f"error-{self._rank}.json", message["error"])
        elif "report" in message:
            write_json(self._out / "report.json", message["report"])
        elif "end" in message:
            self._heartbeat_file.unlink(missing_ok=True)
        else:
            with contextlib.suppress(FileNotFoundError):  # the rank has ended
                os.utime(self._heartbeat_file)

    @property
    def _heartbeat_file(self) -> Path:
        return self._out / "beats" / str(self._rank)


def _open_server(address: str) -> socket.socket:
    try:
        family, _, _, _, socket_address = socket.getaddrinfo(address.strip("[]"), 0, type=socket.SOCK_STREAM)[0]
        server = socket.create_server(cast("tuple[str, int]", socket_address[:2]), family=family, backlog=1024)
    except OSError as problem:
        raise Problem(
            "PARALAGG_MPI_ADDRESS",
            f"the supervisor of the ranks cannot listen on {address}: {problem.strerror or problem}",
            value=address,
            place="spark.driver.bindAddress",
            hint="set spark.driver.host to an address of this machine that executors can reach, or "
            "spark.driver.bindAddress to an address of this machine",
        ) from None
    server.settimeout(0)
    return server


def _raise_limit(sockets: int) -> None:
    """Raise the limit of open files for so many sockets, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    required = sockets + 64
    if soft != resource.RLIM_INFINITY and soft < required:
        allowed = required if hard == resource.RLIM_INFINITY else min(required, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, allowed), hard))
