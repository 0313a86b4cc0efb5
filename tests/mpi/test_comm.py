"""Ranks tell each other words and bytes, in pieces of any size; one rank alone talks to itself."""

from __future__ import annotations

import numpy as np
import pytest
from mpi.staged import mpiexec

from mpi_backend.comm import PIECE_BYTES, SingleRank


@pytest.mark.parametrize("piece_bytes", [PIECE_BYTES, 64, 8, 1])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_is_sent_arrives(ranks: int, piece_bytes: int) -> None:
    mpiexec(ranks, "exchanges.py", piece_bytes)


def test_one_rank_hears_what_it_says() -> None:
    alone = SingleRank()
    assert [w.tolist() for w in alone.exchange([np.array([1, 2])])] == [[1, 2]]
    assert alone.allgather_bytes(b"x") == [b"x"]
    assert alone.allreduce_sum(np.array([2.0])).tolist() == [2.0]
