"""Ranks over TCP: the calls of `comm` between threads, and strangers who do not know the secret."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mpi_backend import tcp
from pyspark_paralagg.errors import EnvironmentProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SECRET = b"a secret of thirty-two bytes, no"


class Gathering:
    """What a barrier's allGather does, for threads."""

    def __init__(self, ranks: int) -> None:
        self._texts: dict[int, str] = {}
        self._barrier = threading.Barrier(ranks)

    def of(self, rank: int) -> Callable[[str], Sequence[str]]:
        def gather(text: str) -> Sequence[str]:
            self._texts[rank] = text
            self._barrier.wait()
            return [text for _, text in sorted(self._texts.items())]

        return gather


def on_ranks(ranks: int, work: Callable[[tcp.TcpComm], Any], secrets: Sequence[bytes] | None = None) -> list[Any]:
    gathering = Gathering(ranks)

    def run(rank: int) -> Any:  # noqa: ANN401 - what `work` returns
        secret = SECRET if secrets is None else secrets[rank]
        with tcp.connect(rank, "127.0.0.1", secret, gathering.of(rank)) as comm:
            return work(comm)

    with ThreadPoolExecutor(ranks) as pool:
        return [f.result() for f in [pool.submit(run, rank) for rank in range(ranks)]]


@pytest.mark.parametrize("ranks", [1, 2, 5])
@pytest.mark.parametrize("size", [0, 1, 300_000])
def test_words_and_votes_come_from_each_rank(ranks: int, size: int) -> None:
    def work(comm: tcp.TcpComm) -> Any:  # noqa: ANN401 - arrays
        counts = np.array([size * (r + comm.rank) for r in range(comm.size)])
        words = np.repeat(100 * comm.rank + np.arange(comm.size), counts)
        return [comm.exchange_and_vote(words, counts, np.array([comm.rank, 0.5])) for _ in range(3)]

    for rank, calls in enumerate(on_ranks(ranks, work)):
        for received, counts, votes in calls:
            assert counts.tolist() == [size * (rank + r) for r in range(ranks)]
            assert (received == np.repeat(100 * np.arange(ranks) + rank, counts)).all()
            assert votes.tolist() == [[r, 0.5] for r in range(ranks)]


def test_other_calls() -> None:
    def work(comm: tcp.TcpComm) -> Any:  # noqa: ANN401 - several values
        return (
            comm.allreduce_sum(np.array([comm.rank, 1.0])).tolist(),
            comm.allreduce_min(5.0 - comm.rank),
            [part.tolist() for part in comm.exchange([np.arange(r, dtype=np.int64) for r in range(comm.size)])],
            comm.allgather_bytes(b"x" * (100_000 * comm.rank)),
            comm.alltoallv(np.arange(3), np.array([1, 1, 1])).tolist(),
            comm.sent_bytes,
        )

    for rank, (sums, least, parts, texts, words, sent) in enumerate(on_ranks(3, work)):
        assert (sums, least) == ([3.0, 3.0], 3.0)
        assert parts == [list(range(rank))] * 3
        assert texts == [b"", b"x" * 100_000, b"x" * 200_000]
        assert words == [rank] * 3
        assert sent == 8 * (3 - rank) + 8 * 2 + 2 * 100_000 * rank


def test_rank_with_another_secret_is_no_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tcp, "CONNECT_SECONDS", 1.0)
    with pytest.raises(
        EnvironmentProblem, match=r"PARALAGG_MPI_ADDRESS: rank . at 127\.0\.0\.1 cannot connect to all of"
    ):
        on_ranks(2, lambda comm: comm.rank, [SECRET, b"another"])


def test_stranger_does_not_stop_the_ranks() -> None:
    """A connection that says nothing sensible, and one that closes at once, come before the rank's own."""
    gathering = Gathering(2)

    def first() -> list[float]:
        with tcp.connect(0, "127.0.0.1", SECRET, gathering.of(0)) as comm:
            return list(comm.allreduce_sum(np.array([1.0])))

    def second() -> list[float]:
        def gather(text: str) -> Sequence[str]:
            texts = gathering.of(1)(text)
            host, port = texts[0].rsplit(":", 1)
            socket.create_connection((host, int(port))).close()
            with socket.create_connection((host, int(port))) as stranger:
                stranger.sendall(b"\x00\x00\x00\x01" + b"n" * 16)
                stranger.recv(48)
                stranger.sendall(b"p" * 32)
            return texts

        with tcp.connect(1, "127.0.0.1", SECRET, gather) as comm:
            return list(comm.allreduce_sum(np.array([2.0])))

    with ThreadPoolExecutor(2) as pool:
        assert [f.result() for f in (pool.submit(first), pool.submit(second))] == [[3.0], [3.0]]


def test_rank_that_ends_is_an_error_for_the_others() -> None:
    def work(comm: tcp.TcpComm) -> Any:  # noqa: ANN401 - a sum
        if comm.rank == 1:
            raise ValueError("this rank fails")
        return comm.allreduce_sum(np.array([1.0]))

    with pytest.raises((ConnectionError, ValueError)):
        on_ranks(3, work)
