"""Make the collective calls of ``comm`` over TCP, for ranks that no MPI launcher has started: tasks of a barrier stage.

Each pair of ranks has one connection. The higher rank opens it, and both prove that they know the job's secret before
anything else is read: each signs the other's random bytes (HMAC-SHA-256). A call sends to all peers in a thread, while
it receives from them in the order of ranks, so full socket buffers cannot block two ranks on each other.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.comm import VotingExchange
from pyspark_paralagg.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType

    from mpi_backend.kernels.compiler import Array

CONNECT_SECONDS = 60.0
_NONCE = 16
_PROOF = 32
_HELLO = struct.Struct(">I")
_BUFFERED = 1 << 15
"""Bytes that a socket takes without waiting: a peer is at most one call behind, and two of these fit into buffers."""


class TcpComm(VotingExchange):
    """The ranks of a job, connected pairwise; a context manager that closes the connections."""

    def __init__(self, rank: int, peers: Sequence[socket.socket | None]) -> None:
        self.rank = rank
        self.size = len(peers)
        self.sent_bytes = 0
        self._peers = peers
        self._sender = ThreadPoolExecutor(1)

    def __enter__(self) -> TcpComm:  # noqa: PYI034 - Self is new in Python 3.11
        return self

    def __exit__(self, kind: type[BaseException] | None, value: object, trace: TracebackType | None) -> None:
        for peer in self._peers:
            if peer is not None:
                peer.close()
        self._sender.shutdown(wait=False)

    def allreduce_sum(self, votes: Array) -> Array:
        """Add the votes in the order of ranks, so that all ranks get the same sums."""
        sums: Array = self.allgather(votes).sum(axis=0)
        return sums

    def allgather(self, votes: Array) -> Array:
        """Send the votes to all."""
        return self.exchange_and_vote(np.zeros(0, np.int64), np.zeros(self.size, np.int64), votes)[2]

    def allreduce_min(self, value: float) -> float:
        """Send the value to all."""
        return float(self.allgather(np.array([value])).min())

    def exchange_and_vote(self, words: Array, counts: Array, votes: Array) -> tuple[Array, Array, Array]:
        """Send each peer a header (its number of words, the votes), then its words."""
        words, ends = np.ascontiguousarray(words), np.cumsum(counts)
        headers = np.empty((self.size, 1 + len(votes)))
        headers[:, 0], headers[:, 1:] = counts, votes
        sending = self._send([(headers[r], words[ends[r] - counts[r] : ends[r]]) for r in self._ranks()])
        received_headers = headers.copy()
        for r in self._ranks():
            self._receive(r, received_headers[r])
        received_counts = received_headers[:, 0].astype(np.int64)
        received = np.empty(int(received_counts.sum()), np.int64)
        starts = np.cumsum(received_counts) - received_counts
        own = slice(int(ends[self.rank] - counts[self.rank]), int(ends[self.rank]))
        received[starts[self.rank] : starts[self.rank] + counts[self.rank]] = words[own]
        for r in self._ranks():
            self._receive(r, received[starts[r] : starts[r] + received_counts[r]])
        sending()
        self.sent_bytes += 8 * int(counts.sum() - counts[self.rank])
        return received, received_counts, received_headers[:, 1:]

    def allgather_bytes(self, data: bytes) -> list[bytes]:
        """Send the length, then the bytes, to all."""
        sizes = self.allgather(np.array([float(len(data))]))[:, 0].astype(np.int64)
        own = np.frombuffer(data, np.uint8)
        sending = self._send([(own,) for _ in self._ranks()])
        out = [data] * self.size
        for r in self._ranks():
            received = np.empty(int(sizes[r]), np.uint8)
            self._receive(r, received)
            out[r] = received.tobytes()
        sending()
        self.sent_bytes += len(data) * (self.size - 1)
        return out

    def _ranks(self) -> Iterator[int]:
        return (r for r in range(self.size) if r != self.rank)

    def _send(self, messages: Sequence[tuple[Array, ...]]) -> Callable[[], None]:
        """Send each peer its message. Return what waits until all are sent."""
        if all(sum(part.nbytes for part in parts) <= _BUFFERED for parts in messages):
            self._send_all(messages)
            return lambda: None
        return self._sender.submit(self._send_all, messages).result

    def _send_all(self, messages: Sequence[tuple[Array, ...]]) -> None:
        for r, parts in zip(self._ranks(), messages, strict=True):
            for part in parts:
                if len(part):
                    self._peer(r).sendall(part.data.cast("B"))

    def _receive(self, rank: int, into: Array) -> None:
        """Fill an array with the next bytes of a rank."""
        if len(into):
            _fill(self._peer(rank), into.data.cast("B"), f"rank {rank}")

    def _peer(self, rank: int) -> socket.socket:
        peer = self._peers[rank]
        assert peer is not None  # noqa: S101 - only the own rank has none
        return peer


def connect(rank: int, host: str, secret: bytes, gather: Callable[[str], Sequence[str]]) -> TcpComm:
    """Return the connected ranks of a job. Collective.

    ``host`` is this rank's address, to which it binds. ``gather`` sends a text to all ranks and returns all texts by
    rank. Raises ``EnvironmentProblem`` ``PARALAGG_MPI_ADDRESS`` if a rank does not answer, or does not know the secret.
    """
    with socket.create_server((host, 0), backlog=128) as server:
        server.settimeout(CONNECT_SECONDS)
        addresses = [a.rsplit(":", 1) for a in gather(f"{host}:{server.getsockname()[1]}")]
        peers: list[socket.socket | None] = [None] * len(addresses)
        try:
            for r in range(rank):
                peers[r] = _dial(rank, (addresses[r][0], int(addresses[r][1])), secret)
            while sum(p is not None for p in peers) < len(peers) - 1:
                peer, other = _answer(server, secret)
                if other is not None and rank < other < len(peers) and peers[other] is None:
                    peers[other] = peer
                else:
                    peer.close()
        except OSError as problem:
            for open_peer in peers:
                if open_peer is not None:
                    open_peer.close()
            raise EnvironmentProblem(
                "PARALAGG_MPI_ADDRESS",
                f"rank {rank} at {host} cannot connect to all of {', '.join(a[0] for a in addresses)}: {problem}",
                value=host,
                hint="let the executors' machines connect to each other's free ports, or use one task",
            ) from problem
    return TcpComm(rank, peers)


def _dial(rank: int, address: tuple[str, int], secret: bytes) -> socket.socket:
    peer = socket.create_connection(address, timeout=CONNECT_SECONDS)
    nonce = secrets.token_bytes(_NONCE)
    peer.sendall(_HELLO.pack(rank) + nonce)
    answer = _read(peer, _PROOF + _NONCE, "the listening rank")
    if not hmac.compare_digest(answer[:_PROOF], _sign(secret, b"listens", nonce)):
        peer.close()
        raise PermissionError("the listening process does not know the job's secret")
    peer.sendall(_sign(secret, b"dials", answer[_PROOF:] + _HELLO.pack(rank)))
    return _prepared(peer)


def _answer(server: socket.socket, secret: bytes) -> tuple[socket.socket, int | None]:
    """Accept a connection; return it with the rank that has proved to know the secret, or None."""
    peer, _ = server.accept()
    peer.settimeout(CONNECT_SECONDS)
    try:
        hello = _read(peer, _HELLO.size + _NONCE, "a connection")
        nonce = secrets.token_bytes(_NONCE)
        peer.sendall(_sign(secret, b"listens", hello[_HELLO.size :]) + nonce)
        proof = _read(peer, _PROOF, "a connection")
    except OSError:
        return peer, None
    if not hmac.compare_digest(proof, _sign(secret, b"dials", nonce + hello[: _HELLO.size])):
        return peer, None
    return _prepared(peer), int(_HELLO.unpack(hello[: _HELLO.size])[0])


def _sign(secret: bytes, role: bytes, nonce: bytes) -> bytes:
    return hmac.new(secret, role + nonce, hashlib.sha256).digest()


def _prepared(peer: socket.socket) -> socket.socket:
    peer.settimeout(None)
    peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return peer


def _read(peer: socket.socket, count: int, who: str) -> bytes:
    data = bytearray(count)
    _fill(peer, memoryview(data), who)
    return bytes(data)


def _fill(peer: socket.socket, into: memoryview, who: str) -> None:
    while len(into):
        count = peer.recv_into(into)
        if count == 0:
            raise ConnectionError(f"{who} has closed its connection")
        into = into[count:]
