"""Best rows first: the same rows however often the compiled loop is left, alone and with other ranks."""

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
ENOUGH = (1, 300, 1 << 22)
"""Rows after which the loop is left: at once, in the midst of a pass's rows, never."""


def graph() -> np.ndarray:  # type: ignore[type-arg]
    """Edges (x, y, weight) without repeated ones.

    Vertex 0 has eight hubs beside it, through which every other vertex is as near: a rank that is left with many rows
    to apply hears of as many from others.
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
    """A text over the graph, and what it should find."""
    x, y, w = graph().T
    resolved = resolve_text(parse(TEXTS[request.param], request.param), COLUMNS)
    given = {
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
        least = {c: int(np.flatnonzero(labels == c)[0]) for c in set(labels.tolist())}
        rows = [(n, least[c]) for n, c in enumerate(labels.tolist())]
    else:
        rows = widest(x, y, w)
    staged = Staged(resolved, given, ["found"])
    assert staged.plan.strata[-1].ordered_by == 0
    return staged, sorted(rows)


def widest(x: np.ndarray, y: np.ndarray, w: np.ndarray) -> list[Row]:  # type: ignore[type-arg]
    """By rounds over all edges."""
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
    """Distances of which many are infinite: no limit lies beyond them, so their rows are applied at the end."""
    x, y, w = graph().T
    weights = np.where(y % 3 == 0, np.inf, w + 0.5)
    columns = {**COLUMNS, "edge": [("x", "bigint"), ("y", "bigint"), ("w", "double")]}
    given = {"edge": pa.table({"x": x, "y": y, "w": weights}), "start": pa.table({"x": [0]})}
    # Without the assumption, infinities of both signs could meet, and an infinite weight would be refused.
    text = TEXTS["paths"].replace("$MIN(0)", "$MIN(0.0)") + "\n.assume edge.w >= 0"
    found = np.full(VERTICES, np.nan)
    found[0] = 0.0
    for _ in range(VERTICES):
        before = found.copy()
        np.fmin.at(found, y, found[x] + weights)
        if np.array_equal(before, found, equal_nan=True):
            break
    staged = Staged(resolve_text(parse(text, "endless"), columns), given, ["found"])
    return staged, [(n, float(d)) for n, d in enumerate(found) if not np.isnan(d)]


@pytest.mark.parametrize("edges_a_rank", [-1, 1000])
@pytest.mark.parametrize("ranks", [2, 3])
def test_no_limit_lies_beyond_the_infinite(
    endless: tuple[Staged, list[Row]], ranks: int, edges_a_rank: int, tmp_path: Path
) -> None:
    staged, rows = endless
    assert sum(d == np.inf for _, d in rows) > VERTICES // 4
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", ranks, "--edges-a-rank", edges_a_rank)
    assert sorted(staged.read(tmp_path / "case" / "out-x")["found"]) == rows
    assert sorted(staged.run_here()["found"]) == rows


@pytest.mark.parametrize("edges_a_rank", [-1, 1000])
@pytest.mark.parametrize("ranks", [2, 3])
def test_all_ranks_order_labels_of_which_some_are_not_numbers(ranks: int, edges_a_rank: int, tmp_path: Path) -> None:
    """The same width on all ranks, though only some have a NaN among their first rows: a NaN is no label's minimum."""
    x = np.arange(VERTICES)
    first = np.where(x == 8, np.nan, x * 7919 % 1009)
    starts = x[x % 10 != 9]
    given = {"edge": pa.table({"x": starts, "y": starts + 1}), "vertex": pa.table({"x": x, "v": first})}
    columns = {"edge": COLUMNS["edge"][:2], "vertex": [("x", "bigint"), ("v", "double")]}
    text = "found(x, $MIN(v)) :- vertex(x, v). found(y, $MIN(c)) :- found(x, c), edge(x, y)."
    staged = Staged(resolve_text(parse(text, "labels"), columns), given, ["found"])
    assert staged.plan.strata[-1].ordered_by == 0
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", ranks, "--edges-a-rank", edges_a_rank)
    least = np.fmin.accumulate(first.reshape(-1, 10), axis=1).ravel()
    assert sorted(staged.read(tmp_path / "case" / "out-x")["found"]) == [(n, float(v)) for n, v in enumerate(least)]


@pytest.mark.parametrize("enough", ENOUGH)
def test_alone(case: tuple[Staged, list[Row]], enough: int, monkeypatch: pytest.MonkeyPatch) -> None:
    staged, rows = case
    monkeypatch.setattr(ordered, "_ROWS_PER_CALL", enough)
    assert sorted(staged.run_here()["found"]) == rows


@pytest.mark.parametrize("ranks", [2, 3])
def test_on_ranks_with_mirrors(case: tuple[Staged, list[Row]], ranks: int, tmp_path: Path) -> None:
    staged, rows = case
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", ranks, "--edges-a-rank", -1)
    assert sorted(staged.read(tmp_path / "case" / "out-x")["found"]) == rows


@pytest.mark.parametrize("enough", ENOUGH)
@pytest.mark.parametrize("ranks", [2, 3])
def test_on_ranks(case: tuple[Staged, list[Row]], ranks: int, enough: int, tmp_path: Path) -> None:
    staged, rows = case
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", ranks, "--enough", enough, "--edges-a-rank", 1000)
    assert sorted(staged.read(tmp_path / "case" / "out-x")["found"]) == rows
