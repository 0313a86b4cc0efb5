"""Test that the edges of hubs are work for all ranks, and that this changes no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

from benchmarks.balance import QUERIES, measure, stars, write

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

MOST = 1.3
"""The largest work of a rank by the average, over the whole run."""


def rows(folder: Path) -> pa.Table:
    return pq.read_table(folder / "out" / "found.parquet").sort_by([("x", "ascending")])


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
