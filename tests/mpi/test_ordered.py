"""Test the loop that applies the best rows first: results do not depend on how often the compiled loop returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from mpi.staged import Staged, run_on_ranks
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components, dijkstra

from mpi_backend.loop import ordered
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from pathlib import Path

    from mpi.staged import Row

COLUMNS = {
    "edge": [("x", "bigint"), ("y", "bigint"), ("w", "bigint")],
    "start": [("x", "bigint")],
    "vertex": [("x", "bigint")],
}
TEXTS = {
    "paths": "found(x, $MIN(0)) :- start(x). found(y, $MIN(d + w)) :- found(x, d), edge(x, y, w).",
    "widest": "found(x, $MAX(1000)) :- start(x). found(y, $MAX(min(d, w))) :- found(x, d), edge(x, y, w).",
    "components": """
        found(x, $MIN(x)) :- vertex(x).
        found(y, $MIN(c)) :- found(x, c), edge(x, y, _).
        found(y, $MIN(c)) :- found(x, c), edge(y, x, _).
    """,
}
VERTICES, EDGES = 4000, 8000
MAX_ROWS = (1, 300, 1 << 22)
"""Rows after which the loop returns: at once, in the middle of a pass, never."""


def graph() -> np.ndarray:  # type: ignore[type-arg]
    """Return distinct edges (x, y, weight).

    Vertex 0 has eight neighbours, hubs through which all other vertices are at the same distance. So a rank whose
    loop returns with many rows to apply also receives many rows from others.
    """
    random = np.random.default_rng(3)
    others = np.arange(9, VERTICES)
    hubs = np.arange(1, 9)
    pairs = np.unique(random.integers(9, VERTICES, (EDGES, 2)), axis=0)
    return np.concatenate(
        [
            np.stack([np.zeros(8, np.int64), hubs, np.ones(8, np.int64)], axis=1),
            np.stack([1 + others % 8, others, np.zeros(len(others), np.int64)], axis=1),
            np.concatenate([pairs, random.integers(1, 100, (len(pairs), 1))], axis=1),
        ]
    )


@pytest.fixture(scope="module", params=TEXTS)
def case(request: pytest.FixtureRequest) -> tuple[Staged, list[Row]]:
    """Return a program over the graph, and its expected rows."""
    x, y, w = graph().T
    resolved = resolve_text(parse(TEXTS[request.param], request.param), COLUMNS)
    facts = {
        "edge": pa.table({"x": x, "y": y, "w": w}),
        "start": pa.table({"x": [0]}),
        "vertex": pa.table({"x": range(VERTICES)}),
    }
    matrix = coo_array((w, (x, y)), shape=(VERTICES, VERTICES)).tocsr()
    if request.param == "paths":
        distances = dijkstra(matrix, indices=0)
        rows = [(n, int(d)) for n, d in enumerate(distances) if np.isfinite(d)]
    elif request.param == "components":
        _, labels = connected_components(matrix, directed=False)
        minima = {c: int(np.flatnonzero(labels == c)[0]) for c in set(labels.tolist())}
        rows = [(n, minima[c]) for n, c in enumerate(labels.tolist())]
    else:
        rows = widest(x, y, w)
    staged = Staged(resolved, facts, ["found"])
    assert staged.plan.strata[-1].ordered_by == 0
    return staged, sorted(rows)


def widest(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> list[Row]:  # type: ignore[type-arg]
    """Compute the widest paths by rounds over all edges."""
    width = np.full(VERTICES, -1, np.int64)
    width[0] = 1000
    for _ in range(VERTICES):
        before = width.copy()
        np.maximum.at(width, y, np.minimum(width[x], w))
        if (before == width).all():
            break
    return [(n, int(v)) for n, v in enumerate(width) if v >= 0]


@pytest.fixture(scope="module")
def endless() -> tuple[Staged, list[Row]]:
    """Return distances of which many are infinite. No limit exceeds these, so their rows are applied last."""
    x, y, w = graph().T
    weights = np.where(y % 3 == 0, np.inf, w + 0.5)
    columns = {**COLUMNS, "edge": [("x", "bigint"), ("y", "bigint"), ("w", "double")]}
    facts = {"edge": pa.table({"x": x, "y": y, "w": weights}), "start": pa.table({"x": [0]})}
    # Without the assumption, infinities of both signs could meet, and an infinite weight would be refused.
    text = TEXTS["paths"].replace("$MIN(0)", "$MIN(0.0)") + "\n.assume edge.w >= 0"
    distances = np.full(VERTICES, np.nan)
    distances[0] = 0.0
    for _ in range(VERTICES):
        before = distances.copy()
        np.fmin.at(distances, y, distances[x] + weights)
        if np.array_equal(before, distances, equal_nan=True):
            break
    staged = Staged(resolve_text(parse(text, "endless"), columns), facts, ["found"])
    return staged, [(n, float(d)) for n, d in enumerate(distances) if not np.isnan(d)]


@pytest.mark.parametrize("edges_a_rank", [-1, 1000])
@pytest.mark.parametrize("ranks", [2, 3])
def test_infinite_values_are_applied(
    endless: tuple[Staged, list[Row]], ranks: int, edges_a_rank: int, tmp_path: Path
) -> None:
    staged, rows = endless
    assert sum(d == np.inf for _, d in rows) > VERTICES // 4
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", ranks, "--edges-a-rank", edges_a_rank)
    assert sorted(staged.read(tmp_path / "case" / "out-x")["found"]) == rows
    assert sorted(staged.run_local()["found"]) == rows


@pytest.mark.parametrize("edges_a_rank", [-1, 1000])
@pytest.mark.parametrize("ranks", [2, 3])
def test_labels_with_nan_on_some_ranks(ranks: int, edges_a_rank: int, tmp_path: Path) -> None:
    """Check that all ranks use the same width, though only some have a NaN among their first rows."""
    x = np.arange(VERTICES)
    first = np.where(x == 8, np.nan, x * 7919 % 1009)
    starts = x[x % 10 != 9]
    facts = {"edge": pa.table({"x": starts, "y": starts + 1}), "vertex": pa.table({"x": x, "v": first})}
    columns = {"edge": COLUMNS["edge"][:2], "vertex": [("x", "bigint"), ("v", "double")]}
    text = "found(x, $MIN(v)) :- vertex(x, v). found(y, $MIN(c)) :- found(x, c), edge(x, y)."
    staged = Staged(resolve_text(parse(text, "labels"), columns), facts, ["found"])
    assert staged.plan.strata[-1].ordered_by == 0
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", ranks, "--edges-a-rank", edges_a_rank)
    minima = np.fmin.accumulate(first.reshape(-1, 10), axis=1).ravel()
    assert sorted(staged.read(tmp_path / "case" / "out-x")["found"]) == [(n, float(v)) for n, v in enumerate(minima)]


@pytest.mark.parametrize("max_rows", MAX_ROWS)
def test_in_one_process(case: tuple[Staged, list[Row]], max_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    staged, rows = case
    monkeypatch.setattr(ordered, "_ROWS_PER_CALL", max_rows)
    assert sorted(staged.run_local()["found"]) == rows


@pytest.mark.parametrize("ranks", [2, 3])
def test_on_ranks_with_mirrors(case: tuple[Staged, list[Row]], ranks: int, tmp_path: Path) -> None:
    staged, rows = case
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", ranks, "--edges-a-rank", -1)
    assert sorted(staged.read(tmp_path / "case" / "out-x")["found"]) == rows


@pytest.mark.parametrize("max_rows", MAX_ROWS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_on_ranks(case: tuple[Staged, list[Row]], ranks: int, max_rows: int, tmp_path: Path) -> None:
    staged, rows = case
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", ranks, "--enough", max_rows, "--edges-a-rank", 1000)
    assert sorted(staged.read(tmp_path / "case" / "out-x")["found"]) == rows
