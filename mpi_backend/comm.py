"""Define the collective calls that ranks use: sums, minima, 64-bit words to each rank, bytes to all.

``MpiComm`` makes them with MPI, ``SingleRank`` answers them within one process. A *vote* is a float64 that all ranks
see: a rank sends its votes as one array of a fixed length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from mpi_backend.kernels.compiler import Array

PIECE_BYTES = 1 << 30
"""The maximum that one call sends to one rank: MPI counts in 32 bits.

Offsets are counted in words of 8 bytes, so one rank sends more than 16 GiB in all only with MPI 4 (MPICH 4).
"""


def by_sender(words: Array, counts: Array) -> Iterator[tuple[int, Array]]:
    """Yield each rank that has sent words, with its words: of many ranks few send any.

    >>> [(rank, list(sent)) for rank, sent in by_sender(np.arange(5), np.array([0, 3, 0, 2]))]
    [(1, [np.int64(0), np.int64(1), np.int64(2)]), (3, [np.int64(3), np.int64(4)])]
    """
    ends = np.cumsum(counts)
    for rank in np.flatnonzero(counts).tolist():
        yield rank, words[ends[rank] - counts[rank] : ends[rank]]


class Comm(Protocol):
    """The ranks of a run. All calls are collective."""

    rank: int
    size: int
    sent_bytes: int

    def allreduce_sum(self, votes: Array) -> Array:
        """Return the sums of the votes of all ranks."""

    def allgather(self, votes: Array) -> Array:
        """Return the votes of all ranks, one row for each rank."""

    def allreduce_min(self, value: float) -> float:
        """Return the minimum of the values of all ranks."""

    def exchange(self, words: Sequence[Array]) -> list[Array]:
        """Send ``words[r]`` to rank r. Return the words received from each rank."""

    def alltoallv(self, words: Array, counts: Array) -> Array:
        """Send the first ``counts[0]`` words to rank 0, the next to rank 1. Return the words received, by rank."""

    def exchange_and_vote(self, words: Array, counts: Array, votes: Array) -> tuple[Array, Array, Array]:
        """Send words as ``alltoallv`` does, and votes to all.

        Return the words received, by rank, their number from each rank, and the votes, a row for each rank.
        """

    def allgather_bytes(self, data: bytes) -> list[bytes]:
        """Return the bytes of every rank."""


class SingleRank:
    """The only rank of a run."""

    rank = 0
    size = 1
    sent_bytes = 0

    def allreduce_sum(self, votes: Array) -> Array:
        """Return the votes."""
        return votes

    def allgather(self, votes: Array) -> Array:
        """Return the votes as one row."""
        return votes[None, :]

    def allreduce_min(self, value: float) -> float:
        """Return the value."""
        return value

    def exchange(self, words: Sequence[Array]) -> list[Array]:
        """Return the words."""
        return list(words)

    def alltoallv(self, words: Array, counts: Array) -> Array:  # noqa: ARG002 - the signature of Comm
        """Return a copy of the words."""
        return np.copy(words)

    def exchange_and_vote(self, words: Array, counts: Array, votes: Array) -> tuple[Array, Array, Array]:
        """Return the words and the votes."""
        return words, counts, votes[None, :]

    def allgather_bytes(self, data: bytes) -> list[bytes]:
        """Return the bytes."""
        return [data]


class VotingExchange:
    """The exchanges of ``Comm`` without votes, by the one with votes."""

    def exchange_and_vote(self, words: Array, counts: Array, votes: Array) -> tuple[Array, Array, Array]:
        """Exchange words and votes as ``Comm`` says."""
        raise NotImplementedError

    def exchange(self, words: Sequence[Array]) -> list[Array]:
        """Exchange without votes."""
        counts = np.array([len(w) for w in words], np.int64)
        received, received_counts, _ = self.exchange_and_vote(np.concatenate(words), counts, np.zeros(0))
        return np.split(received, np.cumsum(received_counts)[:-1])

    def alltoallv(self, words: Array, counts: Array) -> Array:
        """Exchange without votes."""
        return self.exchange_and_vote(words, counts, np.zeros(0))[0]


class MpiComm(VotingExchange):
    """The ranks of an MPI communicator. ``sent_bytes`` counts the bytes sent to other ranks."""

    def __init__(self, comm: Any, piece_bytes: int = PIECE_BYTES) -> None:  # noqa: ANN401 - mpi4py's, which is optional
        self._comm = comm
        self._piece_words = max(1, piece_bytes // 8)
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self.sent_bytes = 0

    def allreduce_sum(self, votes: Array) -> Array:
        """Call ``Allreduce`` with SUM."""
        sums = np.empty_like(votes)
        self._comm.Allreduce(votes, sums)
        return sums

    def allgather(self, votes: Array) -> Array:
        """Call ``Allgather``."""
        all_votes = np.empty((self.size, len(votes)))
        self._comm.Allgather(votes, all_votes)
        return all_votes

    def allreduce_min(self, value: float) -> float:
        """Call ``Allreduce`` with MIN."""
        minimum = np.empty(1)
        self._comm.Allreduce(np.array([value]), minimum, op=_mpi().MIN)
        return float(minimum[0])

    def exchange_and_vote(self, words: Array, counts: Array, votes: Array) -> tuple[Array, Array, Array]:
        """Send counts and votes by ``Alltoall``, then words by ``Alltoallv`` in pieces, if any rank has words."""
        # Each rank sends its largest count beside the count, so all ranks compute the same number of pieces.
        header = np.empty((self.size, 2 + len(votes)))
        header[:, 0], header[:, 1], header[:, 2:] = counts, counts.max(), votes
        received_header = np.empty_like(header)
        self._comm.Alltoall(header, received_header)
        self.sent_bytes += 8 * int(counts.sum() - counts[self.rank])
        received_counts = received_header[:, 0].astype(np.int64)
        pieces = -(-int(received_header[:, 1].max()) // self._piece_words)
        received = np.empty(int(received_counts.sum()), np.int64)
        # The pieces of one message are not adjacent, so Alltoallv gets each piece's offset with its length.
        for low in range(0, pieces * self._piece_words, self._piece_words):
            self._alltoallv_piece((words, counts), (received, received_counts), low)
        return received, received_counts, received_header[:, 2:]

    def allgather_bytes(self, data: bytes) -> list[bytes]:
        """Call ``Allgather`` for the sizes, then ``Allgatherv`` in pieces."""
        sizes = np.empty(self.size, np.int64)
        self._comm.Allgather(np.array([len(data)], np.int64), sizes)
        sent = np.frombuffer(data, np.uint8)
        pieces: list[list[bytes]] = [[] for _ in range(self.size)]
        step = 8 * self._piece_words
        for low in range(0, int(sizes.max()), step):
            counts = np.clip(sizes - low, 0, step)
            starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
            received = np.empty(int(counts.sum()), np.uint8)
            piece = np.ascontiguousarray(sent[low : low + step])
            self._comm.Allgatherv(piece, [received, counts, starts, _mpi().BYTE])
            for r in range(self.size):
                pieces[r].append(received[starts[r] : starts[r] + counts[r]].tobytes())
        self.sent_bytes += len(data) * (self.size - 1)
        return [b"".join(p) for p in pieces]

    def _alltoallv_piece(self, out: tuple[Array, Array], into: tuple[Array, Array], low: int) -> None:
        """Send the piece of each message that begins at the message's word ``low``."""
        word_type, piece = _mpi().INT64_T, self._piece_words
        buffers = [
            [words, np.clip(counts - low, 0, piece), np.cumsum(counts) - counts + np.minimum(counts, low), word_type]
            for words, counts in (out, into)
        ]
        self._comm.Alltoallv(*buffers)


def _mpi() -> Any:  # noqa: ANN401 - mpi4py has no types
    from mpi4py import MPI  # noqa: PLC0415 - optional: local runs have none

    return MPI
