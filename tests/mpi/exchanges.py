"""Under mpiexec: every rank sends to every other what can be told by who sent it; a piece size is the argument."""

from __future__ import annotations

import sys

import numpy as np
from mpi4py import MPI

from mpi_backend.comm import MpiComm


def told(by: int, to: int, round_: int) -> np.ndarray:  # type: ignore[type-arg]
    """What rank ``by`` sends to ``to``; sometimes nothing."""
    count = (by * 31 + to * 17 + round_ * 7) % 23
    return np.arange(count, dtype=np.int64) * 1000 + by * 10 + to


def main() -> None:
    """Ends with an exception, and so with an exit code, where something is not as it was sent."""
    comm = MpiComm(MPI.COMM_WORLD, int(sys.argv[1]))
    everyone = range(comm.size)
    for n in range(8):
        got = comm.exchange([told(comm.rank, to, n) for to in everyone])
        assert [g.tolist() for g in got] == [told(by, comm.rank, n).tolist() for by in everyone], n
    one_sided = comm.exchange([np.arange(100) if comm.rank == 0 else np.zeros(0, np.int64) for _ in everyone])
    assert [len(w) for w in one_sided] == [100, *[0] * (comm.size - 1)]
    nothing = comm.exchange([np.zeros(0, np.int64) for _ in everyone])
    assert [len(w) for w in nothing] == [0] * comm.size
    for size in (0, 1, 7, 8, 100, 1001):
        mine = [bytes([r]) * (size * (r % 2 + 1)) for r in everyone]
        assert comm.allgather_bytes(mine[comm.rank]) == mine
    assert comm.allreduce_sum(np.array([1.0, float(comm.rank)])).tolist() == [comm.size, sum(everyone)]
    before = comm.sent_bytes
    comm.exchange([np.zeros(5, np.int64) for _ in everyone])
    assert comm.sent_bytes - before == 8 * 5 * (comm.size - 1)


main()
