"""Equal fixpoints of a query run once, however they came to be equal."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

import pytest
from plans import all_pairs, sorted_rows, tree
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import frame
from spark_versions import RUN_ERRORS, since

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession


def runs(spark: SparkSession, query: Callable[[], object]) -> int:
    """How many fixpoints ran: each has a broadcast marker of its own."""
    registry = spark._jvm.org.apache.spark.sql.paralagg.driver.RunRegistry
    before = registry.begun()
    query()
    return int(registry.begun() - before)


@pytest.mark.parametrize("aqe", ["true", "false"])
def test_a_fixpoint_that_is_used_twice_runs_once(spark: SparkSession, aqe: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", aqe)
    found = tree(spark)
    twice = found.where("dist < 3").union(found.where("dist >= 3"))
    assert runs(spark, lambda: sorted_rows(twice)) == 1
    assert len(sorted_rows(twice)) == 4
    joined = found.join(found.toDF("n", "d", "p"), found.node == F.col("p"))
    assert runs(spark, lambda: sorted_rows(joined)) == 1


def test_a_fixpoint_over_a_cached_table_runs_once(spark: SparkSession) -> None:
    """An adaptive plan reads a cached table in a stage of its own, and each such stage has another number."""
    edges = frame(spark, "src bigint, dst bigint, w bigint", [(1, 2, 4), (2, 3, 5), (1, 3, 20)]).cache()
    base = frame(spark, "node bigint, dist bigint", [(1, 0)])
    found = base.recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.w).alias("dist")
        ),
        assume=["w >= 0"],
        backend="spark",
    )
    joined = found.join(found.toDF("n", "d"), F.col("d") == found.node)
    assert runs(spark, lambda: sorted_rows(joined)) == 1
    edges.unpersist()


@since("4.0", "equal rows of the driver are equal plans")
def test_fixpoints_that_are_written_twice_run_once(spark: SparkSession) -> None:
    one, other = tree(spark), tree(spark)
    assert one.sameSemantics(other)
    assert runs(spark, lambda: sorted_rows(one.union(other))) == 1
    assert len(sorted_rows(one.union(other))) == 8
    reports = [ra.report(df) for df in (one, other)]
    assert [r and r.tuples for r in reports] == [4, 4]
    assert ra.report(tree(spark)) is None  # an equal one, which has not run


def test_other_rows_steps_or_filters_are_other_fixpoints(spark: SparkSession) -> None:
    def reach(start: int, most: int) -> DataFrame:
        e = frame(spark, "src bigint, dst bigint", [(1, 2), (2, 3), (3, 4)])
        return frame(spark, "node bigint", [(start,)]).recursive_agg(
            "node",
            step=lambda d: d.join(e, d.node == e.src).where(e.dst <= most).select(e.dst.alias("node")),
            backend="spark",
        )

    assert not reach(1, 3).sameSemantics(reach(2, 3))
    assert not reach(1, 3).sameSemantics(reach(1, 4))
    assert sorted_rows(reach(1, 3).union(reach(1, 4))) == [(1,), (1,), (2,), (2,), (3,), (3,), (4,)]
    pairs = all_pairs(spark)
    both = pairs.where("src = 7").union(pairs.where("src = 4"))
    assert runs(spark, lambda: sorted_rows(both)) == 2
    assert sorted_rows(both) == [(4, 4, 1.0), (7, 1, 2.0), (7, 2, 3.0), (7, 3, 4.0)]


def test_two_queries_are_two_runs_and_nothing_is_kept(spark: SparkSession) -> None:
    found = tree(spark)
    assert runs(spark, lambda: (sorted_rows(found), sorted_rows(found.select("*")))) == 2
    shared = spark._jvm.org.apache.spark.sql.paralagg.driver.SharedResults
    until = time.monotonic() + 10
    while shared.liveCount() and time.monotonic() < until:
        time.sleep(0.05)  # the listener bus is a little behind
    assert shared.liveCount() == 0


def test_a_fixpoint_whose_input_cannot_be_had_has_not_begun(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", "false")  # else the broadcast is a stage of its own, and fails before
    broken = F.broadcast(spark.range(3).selectExpr("id AS node", "raise_error('no rows') AS e").where("e IS NULL"))
    starts = spark.range(3)
    e = frame(spark, "src bigint, dst bigint", [(1, 2)])
    found = (
        starts.join(broken, starts.id == broken.node)
        .select("node")
        .recursive_agg("node", step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node")), backend="spark")
    )

    def fails() -> None:
        with pytest.raises(Exception, match="no rows"):
            found.collect()

    assert runs(spark, fails) == 0


EVEN_AND_ODD = """
    .decl next(x: number, y: number)
    .input next
    .output even, odd
    even(0).
    odd(y) :- even(x), next(x, y).
    even(y) :- odd(x), next(x, y).
    {more}
"""


def even_and_odd(spark: SparkSession, more: str = "") -> ra.Relations:
    """Return two sets that read each other."""
    rows = frame(spark, "x bigint, y bigint", [(n, n + 1) for n in range(6)])
    return ra.datalog(spark, EVEN_AND_ODD.format(more=more), {"next": rows}, backend="spark")


@pytest.mark.parametrize("tasks", [1, 2, 7])
@pytest.mark.parametrize("aqe", ["true", "false"])
def test_the_outputs_of_a_mutual_recursion_are_of_one_run(spark: SparkSession, aqe: str, tasks: int) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", aqe)
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    found = even_and_odd(spark)
    assert runs(spark, lambda: sorted_rows(found["even"])) == 1
    assert sorted_rows(found["even"]) == [(0,), (2,), (4,), (6,)]
    assert runs(spark, lambda: sorted_rows(found["odd"])) == 0
    assert sorted_rows(found["odd"]) == [(1,), (3,), (5,)]
    reports = [ra.report(found[name]) for name in ("even", "odd")]
    assert [r and r.tuples for r in reports] == [7, 7]
    found.unpersist()
    assert runs(spark, lambda: sorted_rows(found["odd"].select("*"))) == 1  # a query of its own
    assert runs(spark, lambda: sorted_rows(found["even"].where("y > 2"))) == 0


def test_outputs_in_one_query_are_of_one_run(spark: SparkSession) -> None:
    found = even_and_odd(spark, "both(x) :- even(x). both(x) :- odd(x). .output both")
    assert runs(spark, lambda: sorted_rows(found["both"])) == 1
    assert sorted_rows(found["both"]) == [(n,) for n in range(7)]
    assert runs(spark, lambda: sorted_rows(found["odd"].union(found["even"]))) == 0


def test_a_run_that_fails_is_not_kept(spark: SparkSession) -> None:
    found = even_and_odd(spark, "even(10 / (y - 4)) :- odd(x), next(x, y).")
    for name in ("even", "odd", "odd"):
        begun = runs(spark, partial(fails, found[name].select("*")))
        assert begun == 1


def fails(df: DataFrame) -> None:
    """Run a query that divides by zero."""
    with pytest.raises(RUN_ERRORS, match="DIVIDE_BY_ZERO"):
        df.collect()
