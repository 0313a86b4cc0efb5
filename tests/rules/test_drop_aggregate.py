"""An aggregate by the keys of a fixpoint, or a distinct, is a projection of its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plans import all_pairs, executed, optimized, sorted_rows, tree, without
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import frame

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def is_dropped(df: DataFrame) -> bool:
    return not any(line.strip().startswith("Aggregate") for line in optimized(df))


def test_distinct_vanishes(spark: SparkSession) -> None:
    found = tree(spark).distinct()
    assert is_dropped(found)
    assert len(sorted_rows(found)) == 4
    with without(spark, "DropAggregate"):  # Spark's own rules drop it as well: they know the keys
        assert sorted_rows(tree(spark).distinct()) == sorted_rows(found)


def test_an_aggregate_by_the_keys_is_a_projection(spark: SparkSession) -> None:
    aggregates = [
        F.min("dist"), F.max("parent"), F.sum("dist"), F.sum("parent"), F.count("*"), F.count("parent"),
        F.avg("dist"), F.first("dist"), F.countDistinct("parent"), (F.max("dist") + F.count("*")).alias("both"),
    ]  # fmt: skip
    found = tree(spark).groupBy("node").agg(*aggregates)
    assert is_dropped(found)
    with without(spark, "DropAggregate"):
        grouped = tree(spark).groupBy("node").agg(*aggregates)
        assert not is_dropped(grouped)
        assert sorted_rows(found) == sorted_rows(grouped)
        assert found.dtypes == grouped.dtypes


def test_more_than_the_keys_is_enough_and_less_is_not(spark: SparkSession) -> None:
    pairs = all_pairs(spark)
    assert is_dropped(pairs.groupBy("dst", "src", "dist").count())
    by_one = pairs.groupBy("src").agg(F.min("dist"))
    assert not is_dropped(by_one)
    assert sorted_rows(by_one) == [(1, 1.0), (2, 1.0), (3, 1.0), (4, 1.0), (7, 2.0)]
    assert not is_dropped(pairs.agg(F.count("*")))


@pytest.mark.parametrize("aggregate", ["collect_list(dist)", "stddev(dist)"])
def test_an_aggregate_that_the_rule_does_not_know_stays(spark: SparkSession, aggregate: str) -> None:
    found = tree(spark).groupBy("node").agg(F.expr(aggregate))
    assert not is_dropped(found)
    assert len(sorted_rows(found)) == 4


def test_a_filtered_aggregate_stays(spark: SparkSession) -> None:
    tree(spark).createOrReplaceTempView("tree")
    found = spark.sql("SELECT node, count(*) FILTER (WHERE dist > 2) AS n FROM tree GROUP BY node")
    assert not is_dropped(found)
    assert sorted_rows(found) == [(1, 0), (2, 1), (3, 1), (7, 0)]


def test_keys_below_a_filter_and_other_names_are_still_keys(spark: SparkSession) -> None:
    found = tree(spark).where("dist < 3").withColumnRenamed("node", "n").groupBy("n").agg(F.min("dist"))
    assert is_dropped(found)
    assert sorted_rows(found) == [(1, 2.0), (7, 0.0)]


def test_a_join_may_repeat_keys(spark: SparkSession) -> None:
    other = frame(spark, "node bigint, tag string", [(1, "a"), (1, "b")])
    found = tree(spark).join(other, "node").groupBy("node").agg(F.count("*"))
    assert not is_dropped(found)
    assert sorted_rows(found) == [(1, 2)]


def test_a_group_by_that_stays_shuffles_nothing(spark: SparkSession) -> None:
    found = tree(spark).groupBy("node").agg(F.collect_list("dist"))
    sorted_rows(found)
    assert not any("Exchange" in line for line in executed(found))
