"""Test the collective calls: words and bytes in pieces of any size, and a single rank."""

from __future__ import annotations

import numpy as np
import pytest
from mpi.staged import mpiexec

from mpi_backend.comm import PIECE_BYTES, SingleRank


@pytest.mark.parametrize("piece_bytes", [PIECE_BYTES, 64, 8, 1])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_ranks_receive_the_words_that_others_send(ranks: int, piece_bytes: int) -> None:
    mpiexec(ranks, "exchanges.py", piece_bytes)


def test_a_single_rank_receives_its_own_words() -> None:
    comm = SingleRank()
    assert [w.tolist() for w in comm.exchange([np.array([1, 2])])] == [[1, 2]]
    assert comm.allgather_bytes(b"x") == [b"x"]
    assert comm.allreduce_sum(np.array([2.0])).tolist() == [2.0]
