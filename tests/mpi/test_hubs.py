"""Test that the edges of hubs are work for all ranks, and that this changes no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from benchmarks.balance import QUERIES, measure, stars, write

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

pytestmark = pytest.mark.rotates(runs=3)

MOST = 1.3
"""The largest work of a rank by the average, over the whole run."""


def rows(folder: Path) -> pa.Table:
    return pq.read_table(folder / "out" / "found.parquet").sort_by([("x", "ascending")])


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(("graph", "ranks"), [("out-star", 2), ("both", 3), ("out-star", 5)])
def test_edges_of_hubs_are_spread(tmp_path: Path, graph: str, ranks: int, query: str) -> None:
    write(tmp_path, *stars(30_000)[graph])
    spread, _, form = measure(tmp_path, query, "mpi", ranks, 8)
    assert "edges of 1 hub spread" in form
    expected = rows(tmp_path)
    whole, _, form = measure(tmp_path, query, "mpi", ranks, 0)
    assert "hub" not in form
    assert spread < whole
    assert spread <= MOST
    assert rows(tmp_path) == expected


def test_a_hub_is_found_if_each_rank_reads_few_edges(tmp_path: Path) -> None:
    """With 42 edges a rank has 21 sources. All edges over these would be five times the mean degree of 2."""
    leaves, rng = 8 + np.arange(100), np.random.default_rng(0)
    src = np.concatenate([np.full(12, 7), np.repeat(leaves, 2)])
    write(tmp_path, src, np.concatenate([leaves[:12], rng.integers(8, 108, 200)]))
    _, _, form = measure(tmp_path, "shortest paths", "mpi", 5, 8)
    assert "edges of 1 hub spread" in form
