"""A dependent column that nobody reads is not computed; one that others need, or that may climb, stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plans import edges, optimized, sorted_rows, tree, without
from rows import assert_same_rows, frame
from spark_versions import since

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def columns(df: DataFrame) -> str:
    """The columns that the fixpoint has in the optimised plan."""
    [line] = [line for line in optimized(df) if "RecursiveAggregate" in line]
    return line.rsplit("[", 1)[1].rstrip("]")


@pytest.mark.parametrize("aqe", ["true", "false"])
def test_a_projection_prunes(spark: SparkSession, aqe: str) -> None:
    spark.conf.set("spark.sql.adaptive.enabled", aqe)
    distances = tree(spark).select("node", "dist")
    assert columns(distances) == "node, dist"
    assert sorted_rows(distances) == [(1, 2.0), (2, 3.0), (3, 4.0), (7, 0.0)]
    with without(spark, "PruneDependents"):
        assert columns(tree(spark).select("node", "dist")) == "node, dist, parent"


def test_a_filter_and_a_limit_prune(spark: SparkSession) -> None:
    near = tree(spark).where("dist < 3").select("node")
    assert columns(near) == "node, dist"
    assert sorted_rows(near) == [(1,), (7,)]
    two = tree(spark).select("node", "dist").limit(2)
    assert columns(two) == "node, dist"
    assert len(sorted_rows(two)) == 2


@since("4.0", "rows of the driver lose columns that no one reads")
def test_the_base_and_the_edges_lose_what_the_column_needed(spark: SparkSession) -> None:
    e = frame(spark, "src bigint, dst bigint, weight double, label string", [(7, 1, 2.0, "road"), (1, 2, 1.0, "ferry")])
    base = frame(spark, "node bigint, dist double, by string", [(7, 0.0, None)])
    found = base.recursive_agg(
        "node",
        {"dist": "min", "by": ra.min_by("dist")},
        step=lambda d: d.join(e, d.node == e.src).select(
            e.dst.alias("node"), (d.dist + e.weight).alias("dist"), e.label.alias("by")
        ),
        backend="spark",
    )
    plan = "\n".join(optimized(found.select("node", "dist")))
    assert "label" not in plan
    assert "by" not in plan
    assert sorted_rows(found.select("node", "dist")) == [(1, 2.0), (2, 3.0), (7, 0.0)]
    assert sorted_rows(found) == [(1, 2.0, "road"), (2, 3.0, "ferry"), (7, 0.0, None)]


def test_what_decides_on_another_column_stays(spark: SparkSession) -> None:
    assert columns(tree(spark).select("node", "parent")) == "node, dist, parent"


def test_what_a_condition_reads_stays(spark: SparkSession) -> None:
    e = edges(spark)
    near = frame(spark, "node bigint, dist double", [(7, 0.0)]).recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: (
            d.where("dist < 3").join(e, d.node == e.src).select(e.dst.alias("node"), (d.dist + e.weight).alias("dist"))
        ),
        assume="weight >= 0",
        backend="spark",
    )
    assert columns(near.select("node")) == "node, dist"


def test_keys_alone_where_nothing_can_climb(spark: SparkSession) -> None:
    e = edges(spark)

    def labels(assume: str | None) -> DataFrame:
        return frame(spark, "node bigint, dist double", [(7, 0.0)]).recursive_agg(
            "node",
            {"dist": "min"},
            step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node"), (d.dist + e.weight).alias("dist")),
            assume=assume,
            backend="spark",
        )

    # A negative cycle is an error, with and without the rule: as long as there may be one, the distance is computed.
    assert columns(labels(None).select("node")) == "node, dist"
    assert columns(labels("weight >= 0").select("node")) == "node"
    assert sorted_rows(labels("weight >= 0").select("node")) == [(1,), (2,), (3,), (7,)]
    assert labels("weight >= 0").count() == 4


def test_one_of_two_sums(spark: SparkSession) -> None:
    e = frame(spark, "src string, dst string, n bigint, cost bigint", [("car", "wheel", 4, 9), ("wheel", "bolt", 5, 1)])
    base = frame(spark, "part string, n bigint, cost bigint", [("car", 1, 0)])
    parts = base.recursive_agg(
        "part",
        {"n": "sum", "cost": "sum"},
        step=lambda d: d.join(e, d.part == e.src).select(
            e.dst.alias("part"), (d.n * e.n).alias("n"), (d.cost + e.cost).alias("cost")
        ),
        backend="spark",
        mode="iterate",
    )
    # Neither may go: as long as the compiler cannot exclude that a sum climbs for ever, that is an error to be told.
    assert columns(parts.select("part", "n")) == "part, n, cost"
    limited = base.recursive_agg(
        "part",
        {"n": "sum", "cost": "sum"},
        step=lambda d: d.join(e, d.part == e.src).select(
            e.dst.alias("part"), (d.n * e.n).alias("n"), (d.cost * e.n).alias("cost")
        ),
        backend="spark",
        max_iterations=2,
        on_limit="return",
    )
    # A sum's relation keeps one of its sums; which rows there are does not depend on the other.
    assert columns(limited.select("part", "n")) in ("part, n", "part, n, cost")
    assert_same_rows(sorted_rows(limited.select("part", "n")), [("car", 1), ("wheel", 4), ("bolt", 20)])


def test_a_limit_that_is_an_error_stays_one(spark: SparkSession) -> None:
    e = edges(spark)
    base = frame(spark, "node bigint, dist double, parent bigint", [(7, 0.0, 7)])
    found = base.recursive_agg(
        "node",
        {"dist": "min", "parent": ra.min_by("dist")},
        step=lambda d: d.join(e, d.node == e.src).select(
            e.dst.alias("node"), (d.dist + e.weight).alias("dist"), d.node.alias("parent")
        ),
        max_iterations=2,
        backend="spark",
    )
    with pytest.raises(Exception, match="PARALAGG_LIMIT_REACHED"):
        sorted_rows(found.select("node", "dist"))


def test_the_report_is_that_of_the_smaller_run(spark: SparkSession) -> None:
    whole = tree(spark)
    sorted_rows(whole.select("node", "dist"))
    report = ra.report(whole)
    assert report is not None
    assert report.tuples == 4
    assert "not computed" not in ra.explain(whole)
    assert "because r: parent not computed: this query does not read it" in ra.explain(whole.select("node", "dist"))
