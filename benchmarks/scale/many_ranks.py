"""Call collective code of the engine for many ranks in one process, one rank after the other.

A rank stops at the first collective call whose answer is not known yet. When all have stopped, the answer is computed
from what they have sent, and all ranks begin again, with one more answer. The code must be deterministic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mpi_backend.comm import SingleRank

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mpi_backend.kernels.compiler import Array

T = TypeVar("T")


class _Unanswered(Exception):  # noqa: N818 - it is not an error
    """A collective call whose answer is not known: its name, and what the rank sends."""

    def __init__(self, call: str, sent: object) -> None:
        super().__init__(call)
        self.call = call
        self.sent = sent


class OneOfMany(SingleRank):
    """One of ``size`` ranks. Its collective calls get ``answers``, one after the other."""

    def __init__(self, rank: int, size: int, answers: Sequence[object] = ()) -> None:
        self.rank = rank
        self.size = size
        self._answers = iter(answers)

    def allreduce_sum(self, votes: Array) -> Array:
        """Return the sums of all ranks."""
        return np.asarray(self._answer("sum", votes))

    def allreduce_min(self, value: float) -> float:
        """Return the minimum of all ranks."""
        return float(str(self._answer("min", value)))

    def alltoallv(self, words: Array, counts: Array) -> Array:
        """Return the words that other ranks send to this one."""
        answer = self._answer("words", (words, counts))
        assert isinstance(answer, list)
        return np.asarray(answer[self.rank])

    def allgather_bytes(self, data: bytes) -> list[bytes]:
        """Return the bytes of all ranks as one piece: the engine joins them."""
        answer = self._answer("bytes", data)
        assert isinstance(answer, list)
        return answer

    def _answer(self, call: str, sent: object) -> object:
        for answer in self._answers:
            return answer
        raise _Unanswered(call, sent)


def on_all_ranks(size: int, body: Callable[[OneOfMany], T]) -> T:
    """Return the result of collective code, which is the same on all ranks.

    >>> on_all_ranks(4, lambda comm: comm.allreduce_min(10.0 - comm.rank) + comm.allreduce_min(comm.rank))
    7.0
    """
    answers: list[object] = []
    while True:
        sent: list[object] = []
        call = ""
        for rank in range(size):
            try:
                result = body(OneOfMany(rank, size, answers))
            except _Unanswered as stop:  # noqa: PERF203 - each rank stops
                sent.append(stop.sent)
                call = stop.call
        if not sent:
            return result
        answers.append(_combine(call, sent))


def _combine(call: str, sent: list[object]) -> object:
    if call == "sum":
        return np.sum(np.stack([np.asarray(s) for s in sent]), axis=0)
    if call == "min":
        return min(float(str(s)) for s in sent)
    if call == "words":
        by_sender = [np.split(words, np.cumsum(counts)[:-1]) for words, counts in sent]  # type: ignore[misc]
        return [np.concatenate(received) for received in zip(*by_sender, strict=True)]
    return [b"".join(s for s in sent if isinstance(s, bytes))]
