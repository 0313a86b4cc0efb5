"""Under mpiexec, exchange arrays that identify sender and receiver. The argument is the size of a piece."""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

from mpi_backend.comm import MpiComm


def words_between(sender: int, receiver: int, round_: int) -> np.ndarray:  # type: ignore[type-arg]
    """Return the words that rank ``sender`` sends to ``receiver``, which may be none."""
    count = (sender * 31 + receiver * 17 + round_ * 7) % 23
    return np.arange(count, dtype=np.int64) * 1000 + sender * 10 + receiver


def main() -> None:
    """Run all collective calls. A wrong result raises, so the process has an exit code."""
    comm = MpiComm(MPI.COMM_WORLD, int(sys.argv[1]))
    ranks = range(comm.size)
    for n in range(8):
        received = comm.exchange([words_between(comm.rank, receiver, n) for receiver in ranks])
        assert [words.tolist() for words in received] == [
            words_between(sender, comm.rank, n).tolist() for sender in ranks
        ], n
    one_sided = comm.exchange([np.arange(100) if comm.rank == 0 else np.zeros(0, np.int64) for _ in ranks])
    assert [len(w) for w in one_sided] == [100, *[0] * (comm.size - 1)]
    empty = comm.exchange([np.zeros(0, np.int64) for _ in ranks])
    assert [len(w) for w in empty] == [0] * comm.size
    for size in (0, 1, 7, 8, 100, 1001):
        data = [bytes([r]) * (size * (r % 2 + 1)) for r in ranks]
        assert comm.allgather_bytes(data[comm.rank]) == data
    assert comm.allreduce_sum(np.array([1.0, float(comm.rank)])).tolist() == [comm.size, sum(ranks)]
    before = comm.sent_bytes
    comm.exchange([np.zeros(5, np.int64) for _ in ranks])
    assert comm.sent_bytes - before == 8 * 5 * (comm.size - 1)


main()
