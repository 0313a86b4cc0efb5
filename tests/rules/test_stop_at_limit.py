"""A set under a LIMIT ends once it has enough rows, in each form of evaluation; a value or a filter ends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plans import optimized, without

import pyspark_paralagg as ra
from pyspark_paralagg.api.dataframe import Declaration, recursive

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

LENGTH = 400


def steps(spark: SparkSession) -> DataFrame:
    """A chain of ``LENGTH`` edges."""
    return spark.range(LENGTH).selectExpr("id AS src", "id + 1 AS dst")


def reached(spark: SparkSession) -> DataFrame:
    e = steps(spark)
    return (
        spark.range(1)
        .toDF("node")
        .recursive_agg("node", step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node")), backend="spark")
    )


def closure(spark: SparkSession, *more: str) -> DataFrame:
    e = steps(spark)
    return (
        steps(spark)
        .selectExpr("src AS a", "dst AS b", *more)
        .recursive_agg(
            ["a", "b", *(name.split()[-1] for name in more)],
            step=lambda d: d.join(e, d.b == e.src).select(d.a, e.dst.alias("b"), *(d[c] for c in d.columns[2:])),
            backend="spark",
        )
    )


def closure_with_text(spark: SparkSession) -> DataFrame:
    """Its third key is carried, so that one pair of values is evaluated at a time."""
    return closure(spark, "CAST(src AS string) AS name")


ALL_PAIRS = LENGTH * (LENGTH + 1) // 2


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize(
    ("recursion", "rows"), [(reached, LENGTH + 1), (closure, ALL_PAIRS), (closure_with_text, ALL_PAIRS)]
)
def test_it_ends_with_enough_rows(
    spark: SparkSession, recursion: Callable[[SparkSession], DataFrame], rows: int, partitions: int
) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    found = recursion(spark)
    every = set(found.collect())
    assert len(every) == rows
    assert ra.report(found).tuples == rows
    few = found.limit(10)
    got = few.collect()
    assert len(set(got)) == 10
    assert set(got) <= every
    report = ra.report(found)
    assert report.form is not None
    assert report.form.endswith(", ends at 10 rows (LIMIT)")
    assert 10 <= report.tuples < rows * 3 / 4  # a task's first 64 sources, of which the first have most rows
    assert found.count() == rows
    assert len(found.unionAll(few).collect()) == rows + 10


def test_show_and_is_empty_take_a_limit(spark: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    found = reached(spark)
    assert not found.isEmpty()
    assert ra.report(found).tuples < LENGTH / 2
    found.show(3)
    assert "only showing top 3 rows" in capsys.readouterr().out
    assert ra.report(found).tuples < LENGTH / 2
    assert found.offset(20).limit(5).count() == 5


def test_a_limit_that_is_never_reached_changes_nothing(spark: SparkSession) -> None:
    assert reached(spark).limit(LENGTH * 2).count() == LENGTH + 1


def test_values_filters_and_orders_end_nothing(spark: SparkSession) -> None:
    found = reached(spark)
    assert any("ends at 7 rows" in line for line in optimized(found.selectExpr("node * 2 AS n").limit(7)))
    e = steps(spark).selectExpr("*", "1L AS w")
    values = spark.range(1).selectExpr("id AS node", "0L AS d")
    distances = values.recursive_agg(
        "node",
        {"d": "min"},
        step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node"), (d.d + e.w).alias("d")),
        backend="spark",
    )
    complete = [found.where("node % 7 = 0").limit(3), found.orderBy("node").limit(3), distances.limit(3)]
    for query in complete:
        assert not any("ends at" in line for line in optimized(query))
    with without(spark, "StopAtLimit"):
        assert not any("ends at" in line for line in optimized(found.limit(7)))


def test_rows_that_continue_a_fixpoint_are_not_the_first_ones(spark: SparkSession) -> None:
    """Only new rows are results, and the limit is about them."""
    e, old = steps(spark), spark.range(100).toDF("node")
    declaration = Declaration(spark.range(100, 101).toDF("node"), "node", None, initial=old, settled=True)
    [new] = recursive(
        {"r": declaration},
        lambda r: {"r": r.join(e, r.node == e.src).select(e.dst.alias("node"))},
        backend="spark",
    ).values()
    assert new.count() == LENGTH + 1 - 100
    assert new.limit(20).count() == 20


def test_a_limit_of_iterations_is_not_met_before_that_of_rows(spark: SparkSession) -> None:
    e = steps(spark)
    found = (
        spark.range(1)
        .toDF("node")
        .recursive_agg(
            "node",
            step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node")),
            max_iterations=20,
            backend="spark",
        )
    )
    assert len(found.limit(5).collect()) == 5
    with pytest.raises(Exception, match="PARALAGG_LIMIT_REACHED"):
        found.collect()
