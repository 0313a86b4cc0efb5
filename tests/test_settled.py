"""A relation that goes on from a fixpoint: the rows that change, in every way that the engine evaluates a lattice."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from rows import frame

import pyspark_paralagg as ra
from pyspark_paralagg.api.dataframe import Declaration

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

EDGES = "src bigint, dst bigint, w bigint"
BACKENDS = ("spark", "local", "mpi", "python")


def walk(edges: DataFrame) -> Callable[[DataFrame], DataFrame]:
    return lambda d: d.join(edges, d.node == edges.src).selectExpr("dst AS node", "dist + w AS dist")


def tree(edges: DataFrame) -> Callable[[DataFrame], DataFrame]:
    return lambda d: d.join(edges, d.node == edges.src).selectExpr("dst AS node", "dist + w AS dist", "src AS via")


def names(edges: DataFrame) -> Callable[[DataFrame], DataFrame]:
    """Put in front, a text keeps the order of what follows it; upwards only, since it gets longer."""
    up = edges.where("src < dst")
    return lambda d: d.join(up, d.node.cast("bigint") == up.src).selectExpr(
        "cast(dst AS string) AS node", "concat(cast(w % 2 AS string), name) AS name"
    )


def follow(edges: DataFrame) -> Callable[[DataFrame], DataFrame]:
    on = edges.selectExpr("src AS via", "dst AS last")
    return lambda d: d.join(on, d.dst == on.via).selectExpr("src", "last AS dst")


def double(_: DataFrame) -> Callable[[DataFrame], DataFrame]:
    def step(d: DataFrame) -> DataFrame:
        on = d.selectExpr("src AS via", "dst AS last")
        return d.join(on, d.dst == on.via).selectExpr("src", "last AS dst")

    return step


CASES: dict[str, tuple[Any, Any, Any, str]] = {
    "in place": ("node", {"dist": "min"}, walk, "0L AS node, 0L AS dist"),
    "carried": ("node", {"dist": "min", "via": ra.min_by("dist")}, tree, "0L AS node, 0L AS dist, -1L AS via"),
    "strings made on the way": ("node", {"name": "max"}, names, "'0' AS node, 'a' AS name"),
    "pairs, else by bitmaps": (["src", "dst"], None, follow, ""),
    "rounds, with a copy": (["src", "dst"], None, double, ""),
}


@pytest.fixture(autouse=True)
def two_ranks(spark: SparkSession) -> None:
    spark.conf.set("spark.paralagg.mpi.ranks", "2")
    spark.conf.set("spark.paralagg.mpi.oversubscribe", "true")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES)
def test_it_goes_on_to_the_rows_of_the_whole(spark: SparkSession, case: str, backend: str) -> None:
    keys, aggs, step, start = CASES[case]
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    rng = random.Random(case)  # noqa: S311 - the same each time
    rows = [(rng.randrange(20), rng.randrange(20), rng.randrange(1, 9)) for _ in range(34)]
    old, every, new = (frame(spark, EDGES, part) for part in (rows[:28], rows, rows[28:]))

    def base(edges: DataFrame) -> DataFrame:
        return spark.sql(f"SELECT {start}") if start else edges.select("src", "dst")

    before = base(old).recursive_agg(keys, aggs, step=step(old), backend="spark", mode="trust").localCheckpoint()
    whole = base(every).recursive_agg(keys, aggs, step=step(every), backend="spark", mode="trust")
    derived = base(new) if step is double else step(new)(before)
    candidates = derived if start else base(new).unionAll(derived)
    changed = continued(candidates, before, keys, aggs, step(every), backend)
    expected = {tuple(r) for r in whole.collect()} - {tuple(r) for r in before.collect()}
    assert {tuple(r) for r in changed.collect()} == expected
    assert len(expected) > 0
    assert changed.count() == len(expected)
    assert "settled" in ra.explain(changed, "plan")


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_engine_returns_the_rows_that_change(spark: SparkSession, backend: str) -> None:
    edges = [(0, 1, 5), (1, 2, 1), (2, 1, 1), (0, 2, 2), (7, 8, 1)]
    before = spark.sql("SELECT * FROM VALUES (0L, 0L), (1L, 5L), (2L, 6L) AS r(node, dist)")
    candidates = spark.sql("SELECT 2L AS node, 2L AS dist")
    changed = continued(candidates, before, "node", {"dist": "min"}, walk(frame(spark, EDGES, edges)), backend)
    assert sorted(tuple(r) for r in changed.collect()) == [(1, 3), (2, 2)]


@pytest.mark.parametrize("backend", BACKENDS)
def test_rules_read_no_settled_row(spark: SparkSession, backend: str) -> None:
    edges = frame(spark, EDGES, [*((i, i + 1, 1) for i in range(200)), (0, 150, 100)])
    before = spark.range(151).selectExpr("id AS node", "id AS dist").localCheckpoint()
    candidates = spark.sql("SELECT 150L AS node, 100L AS dist")
    changed = continued(candidates, before, "node", {"dist": "min"}, walk(edges), backend)
    assert changed.count() == 51
    report = ra.report(changed)
    assert report is not None
    assert report.tuples == 201
    assert sum(r["work"] for r in report.rounds) <= 51


def continued(  # noqa: PLR0913, PLR0917 - a recursion
    candidates: DataFrame,
    before: DataFrame,
    keys: str | list[str],
    aggs: dict[str, Any] | None,
    step: Callable[[DataFrame], DataFrame],
    backend: str,
) -> DataFrame:
    settled = Declaration(candidates, keys, aggs, before, settled=True)
    return ra.recursive({"r": settled}, lambda **state: {"r": step(state["r"])}, backend=backend)["r"]


def test_plain_dataframes_do_not_go_on(spark: SparkSession) -> None:
    before = spark.sql("SELECT 0L AS node, 0L AS dist")
    with pytest.raises(ra.UnsupportedError, match="cannot continue 'r' from its stored rows") as caught:
        continued(before, before, "node", {"dist": "min"}, walk(frame(spark, EDGES, [])), "dataframe")
    assert caught.value.code == "PARALAGG_NOT_CONTINUABLE"


def test_a_sum_does_not_go_on(spark: SparkSession) -> None:
    before = spark.sql("SELECT 0L AS node, 0L AS dist")
    with pytest.raises(ra.UnsupportedError, match="accumulating") as caught:
        continued(before, before, "node", {"dist": "sum"}, walk(frame(spark, EDGES, [])), "spark")
    assert caught.value.code == "PARALAGG_NOT_CONTINUABLE"
