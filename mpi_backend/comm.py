"""How ranks talk: sums, words to each other, bytes to all. One rank talks to no one (``Alone``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.kernels.compiler import Array

PIECE_BYTES = 1 << 30
"""The most that one call sends to one rank: MPI counts in 32 bits.

Where a piece begins is told in words: what a rank sends in all goes beyond 16 GiB only by MPI 4, as of MPICH 4.
"""


class Comm(Protocol):
    """All calls are collective."""

    rank: int
    size: int
    sent: int

    def sum(self, votes: Array) -> Array:
        """The sums of everybody's votes."""

    def hear(self, votes: Array) -> Array:
        """Everybody's votes, a row a rank."""

    def least(self, value: float) -> float:
        """The least of everybody's values."""

    def exchange(self, words: Sequence[Array]) -> list[Array]:
        """Sends ``words[r]`` to rank r; what came from each rank."""

    def swap(self, words: Array, counts: Array) -> Array:
        """Sends the first ``counts[0]`` words to rank 0, the next to rank 1; what came, rank by rank."""

    def meet(self, words: Array, counts: Array, votes: Array) -> tuple[list[Array], Array]:
        """Sends words as ``swap`` does, and votes to all; what came from each rank, and its votes: a row a rank."""

    def gather(self, mine: bytes) -> list[bytes]:
        """What every rank has."""


class Alone:
    """A single rank."""

    rank = 0
    size = 1
    sent = 0

    def sum(self, votes: Array) -> Array:
        """The votes."""
        return votes

    def hear(self, votes: Array) -> Array:
        """The votes, as a row."""
        return votes[None, :]

    def least(self, value: float) -> float:
        """The value."""
        return value

    def exchange(self, words: Sequence[Array]) -> list[Array]:
        """What was sent."""
        return list(words)

    def swap(self, words: Array, counts: Array) -> Array:  # noqa: ARG002 - as ranks
        """A copy of what was sent."""
        return np.copy(words)

    def meet(self, words: Array, counts: Array, votes: Array) -> tuple[list[Array], Array]:  # noqa: ARG002 - as ranks
        """What was sent."""
        return [words], votes[None, :]

    def gather(self, mine: bytes) -> list[bytes]:
        """What it has."""
        return [mine]


class Ranks:
    """The ranks of an MPI communicator. ``sent`` counts the bytes that went to other ranks."""

    def __init__(self, comm: Any, piece_bytes: int = PIECE_BYTES) -> None:  # noqa: ANN401 - mpi4py's, which is optional
        self._comm = comm
        self._piece = max(1, piece_bytes // 8)
        self.rank: int = comm.Get_rank()
        self.size: int = comm.Get_size()
        self.sent = 0

    def sum(self, votes: Array) -> Array:
        """One ``Allreduce``."""
        out = np.empty_like(votes)
        self._comm.Allreduce(votes, out)
        return out

    def hear(self, votes: Array) -> Array:
        """One ``Allgather``."""
        out = np.empty((self.size, len(votes)))
        self._comm.Allgather(votes, out)
        return out

    def least(self, value: float) -> float:
        """One ``Allreduce``."""
        out = np.empty(1)
        self._comm.Allreduce(np.array([value]), out, op=_mpi().MIN)
        return float(out[0])

    def exchange(self, words: Sequence[Array]) -> list[Array]:
        """A meeting without votes."""
        return self.meet(np.concatenate(words), np.array([len(w) for w in words], np.int64), np.zeros(0))[0]

    def swap(self, words: Array, counts: Array) -> Array:
        """A meeting without votes."""
        return self._met(words, counts, np.zeros(0))[0]

    def meet(self, words: Array, counts: Array, votes: Array) -> tuple[list[Array], Array]:
        """Counts and votes, then words, cut into what each rank sent."""
        received, coming, heard = self._met(words, counts, votes)
        return np.split(received, np.cumsum(coming)[:-1]), heard

    def _met(self, words: Array, counts: Array, votes: Array) -> tuple[Array, Array, Array]:
        """Counts and votes by ``Alltoall``, then words by ``Alltoallv`` in pieces, if anybody has some."""
        # With its count each rank tells its largest one, so that all agree on how many pieces there are.
        told = np.empty((self.size, 2 + len(votes)))
        told[:, 0], told[:, 1], told[:, 2:] = counts, counts.max(), votes
        heard = np.empty_like(told)
        self._comm.Alltoall(told, heard)
        self.sent += 8 * int(counts.sum() - counts[self.rank])
        coming = heard[:, 0].astype(np.int64)
        pieces = -(-int(heard[:, 1].max()) // self._piece)
        received = np.empty(int(coming.sum()), np.int64)
        # Pieces of messages lie apart: where each begins is told with its length.
        for low in range(0, pieces * self._piece, self._piece):
            self._alltoallv((words, counts), (received, coming), low)
        return received, coming, heard[:, 2:]

    def gather(self, mine: bytes) -> list[bytes]:
        """Sizes, then ``Allgatherv`` in pieces."""
        sizes = np.empty(self.size, np.int64)
        self._comm.Allgather(np.array([len(mine)], np.int64), sizes)
        own = np.frombuffer(mine, np.uint8)
        parts: list[list[bytes]] = [[] for _ in range(self.size)]
        step = 8 * self._piece
        for low in range(0, int(sizes.max()), step):
            here = np.clip(sizes - low, 0, step)
            starts = np.concatenate([[0], np.cumsum(here)[:-1]])
            out = np.empty(int(here.sum()), np.uint8)
            piece = np.ascontiguousarray(own[low : low + step])
            self._comm.Allgatherv(piece, [out, here, starts, _mpi().BYTE])
            for r in range(self.size):
                parts[r].append(out[starts[r] : starts[r] + here[r]].tobytes())
        self.sent += len(mine) * (self.size - 1)
        return [b"".join(p) for p in parts]

    def _alltoallv(self, out: tuple[Array, Array], into: tuple[Array, Array], low: int) -> None:
        """The piece of each message that begins at its word ``low``."""
        kind, piece = _mpi().INT64_T, self._piece
        sides = [
            [words, np.clip(counts - low, 0, piece), np.cumsum(counts) - counts + np.minimum(counts, low), kind]
            for words, counts in (out, into)
        ]
        self._comm.Alltoallv(*sides)


def _mpi() -> Any:  # noqa: ANN401 - mpi4py has no types
    from mpi4py import MPI  # noqa: PLC0415 - optional: local runs have none

    return MPI
