"""Test rounds that add up sums by target, on Spark and on the engine without it, against matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pytest
from rows import assert_same_rows, rows_of
from spark_versions import KNOWS_SIZES

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

VERTICES, EDGES, ROUNDS = 300, 2500, 6
BY_TARGET = "rows, sums by target, in "
RUNS = pytest.mark.parametrize(("backend", "tasks"), [("spark", 1), ("spark", 2), ("spark", 7), ("local", 1)])


@pytest.fixture(scope="module")
def edges() -> np.ndarray:  # type: ignore[type-arg]
    """Distinct edges between 250 of the vertices; 50 have none, and one has edges to all others."""
    random = np.random.default_rng(5)
    pairs = random.integers(0, VERTICES - 50, (EDGES, 2))
    star = np.stack([np.zeros(VERTICES - 50, np.int64), np.arange(VERTICES - 50)], axis=1)
    return np.unique(np.concatenate([pairs, star]), axis=0)


def matrix_of(edges: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """The matrix whose product with the ranks of all sources is one step of PageRank without its base."""
    matrix = np.zeros((VERTICES, VERTICES))
    matrix[edges[:, 1], edges[:, 0]] = 0.85 / np.bincount(edges[:, 0], minlength=VERTICES)[edges[:, 0]]
    return matrix


def damped_rank(r: DataFrame, degrees: DataFrame) -> list[Column]:
    return [(r.rank * 0.85 / degrees.n).alias("rank")]


def run(  # noqa: PLR0913, PLR0917 - a query and where it runs
    spark: SparkSession,
    backend: str,
    tasks: int,
    edges: np.ndarray,  # type: ignore[type-arg]
    aggs: dict[str, str],
    values: Callable[[DataFrame, DataFrame], list[Column]],
    where: str = "true",
    base: list[tuple[Any, ...]] | None = None,
) -> tuple[list[tuple[Any, ...]], str]:
    """Return the rows after some rounds along the edges, and the form of the loop."""
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    links = spark.createDataFrame(pd.DataFrame(edges, columns=["src", "dst"]))
    ids, counts = np.unique(edges[:, 0], return_counts=True)
    degrees = spark.createDataFrame(pd.DataFrame({"id": ids, "n": counts}))
    first = base or [(v, *(0.15 for _ in aggs)) for v in range(VERTICES)]
    df = spark.createDataFrame(first, "node bigint, " + ", ".join(f"{name} double" for name in aggs)).recursive_agg(
        "node",
        aggs,
        step=lambda r: (
            r.join(degrees, r.node == degrees.id)
            .where(where)
            .join(links, r.node == links.src)
            .select(links.dst.alias("node"), *values(r, degrees))
        ),
        max_iterations=ROUNDS,
        on_limit="return",
        backend=backend,
    )
    rows = rows_of(df)
    report = ra.report(df)
    assert report is not None
    return rows, report.form


@RUNS
def test_pagerank(spark: SparkSession, edges: np.ndarray, backend: str, tasks: int) -> None:  # type: ignore[type-arg]
    ranks = base = np.full(VERTICES, 0.15)
    for _ in range(ROUNDS):
        ranks = base + matrix_of(edges) @ ranks
    rows, form = run(spark, backend, tasks, edges, {"rank": "sum"}, damped_rank)
    assert_same_rows(rows, enumerate(ranks))
    assert form.startswith(BY_TARGET) or not KNOWS_SIZES


@RUNS
def test_two_sums(spark: SparkSession, edges: np.ndarray, backend: str, tasks: int) -> None:  # type: ignore[type-arg]
    a = b = base = np.full(VERTICES, 0.15)
    for _ in range(ROUNDS):
        a, b = base + matrix_of(edges) @ a, base + matrix_of(edges) @ (b / 2)
    rows, form = run(
        spark,
        backend,
        tasks,
        edges,
        {"a": "sum", "b": "sum"},
        lambda r, d: [(r.a * 0.85 / d.n).alias("a"), (r.b / 2 * 0.85 / d.n).alias("b")],
    )
    assert_same_rows(rows, zip(range(VERTICES), a, b, strict=True))
    assert form.startswith(BY_TARGET) or not KNOWS_SIZES


@RUNS
def test_sources_that_a_filter_drops_contribute_nothing(
    spark: SparkSession,
    edges: np.ndarray,  # type: ignore[type-arg]
    backend: str,
    tasks: int,
) -> None:
    """The number of sources that contribute is too small, so the round adds edge by edge."""
    matrix = matrix_of(edges)
    matrix[:, np.bincount(edges[:, 0], minlength=VERTICES) >= 12] = 0.0
    ranks = base = np.full(VERTICES, 0.15)
    for _ in range(ROUNDS):
        ranks = base + matrix @ ranks
    rows, form = run(spark, backend, tasks, edges, {"rank": "sum"}, damped_rank, "n < 12")
    assert_same_rows(rows, enumerate(ranks))
    assert not form.startswith(BY_TARGET)


@RUNS
def test_few_sources_at_first(spark: SparkSession, edges: np.ndarray, backend: str, tasks: int) -> None:  # type: ignore[type-arg]
    """One row at first: later rounds reach every source, earlier ones add edge by edge."""
    base = np.zeros(VERTICES)
    base[1] = 1.0
    ranks, has_row = base, base > 0
    for _ in range(ROUNDS):
        ranks = base + matrix_of(edges) @ ranks
        has_row |= matrix_of(edges) @ has_row > 0
    rows, form = run(
        spark,
        backend,
        tasks,
        edges,
        {"rank": "sum"},
        damped_rank,
        base=[(1, 1.0)],
    )
    assert_same_rows(rows, ((v, float(ranks[v])) for v in np.flatnonzero(has_row).tolist()))
    assert form.startswith(BY_TARGET) or not KNOWS_SIZES


@RUNS
def test_null_sums_are_added_edge_by_edge(
    spark: SparkSession,
    edges: np.ndarray,  # type: ignore[type-arg]
    backend: str,
    tasks: int,
) -> None:
    base: list[tuple[int, float | None]] = [(v, None if v % 3 == 0 else 0.15) for v in range(VERTICES)]
    first = np.array([0.0 if value is None else value for _, value in base])
    ranks, has_value = first, first > 0
    for _ in range(ROUNDS):
        ranks = first + matrix_of(edges) @ ranks
        has_value |= matrix_of(edges) @ has_value > 0
    rows, form = run(spark, backend, tasks, edges, {"rank": "sum"}, damped_rank, base=base)
    assert_same_rows(rows, ((v, ranks[v] if has_value[v] else None) for v in range(VERTICES)))
    assert not form.startswith(BY_TARGET)
