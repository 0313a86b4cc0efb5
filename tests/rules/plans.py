"""What the tests of Catalyst's rules share: plans as text, rules turned off, a few recursions."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rows import frame, rows_of

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

EXCLUDED = "spark.sql.optimizer.excludedRules"
RULES = ("PushKeyFilter", "DropAggregate", "PruneDependents", "StopAtLimit")
EDGES = [(1, 2, 1.0), (2, 3, 1.0), (3, 1, 1.0), (7, 1, 2.0), (7, 3, 9.0), (4, 4, 1.0)]


@contextmanager
def without(spark: SparkSession, *rules: str) -> Iterator[None]:
    """With these rules off."""
    spark.conf.set(EXCLUDED, ",".join(f"org.apache.spark.sql.paralagg.rules.{r}" for r in rules))
    try:
        yield
    finally:
        spark.conf.unset(EXCLUDED)


def optimized(df: DataFrame) -> list[str]:
    """The operators of the optimised plan, a line each, without expression ids; deeper ones are indented."""
    return _lines(df._jdf.queryExecution().optimizedPlan().toString())


def executed(df: DataFrame) -> list[str]:
    """The operators of the physical plan that was run; of a query that has not run, as planned."""
    plan = df._jdf.queryExecution().executedPlan()
    if plan.getClass().getSimpleName() == "AdaptiveSparkPlanExec":
        plan = plan.executedPlan()
    return _lines(plan.toString())


def _lines(text: str) -> list[str]:
    plain = re.sub(r"#\d+L?|\*\(\d+\) |, \[plan_id=\d+\]", "", text)
    return [re.sub(r"^([ :]*)[+:]- ", lambda m: " " * len(m[1]) + "  ", line) for line in plain.splitlines()]


def sorted_rows(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted(rows_of(df), key=lambda row: [(v is not None, v) for v in row])


def edges(spark: SparkSession) -> DataFrame:
    return frame(spark, "src bigint, dst bigint, weight double", EDGES)


def tree(spark: SparkSession) -> DataFrame:
    """Distances from 7, each with the vertex before."""
    e = edges(spark)
    return frame(spark, "node bigint, dist double, parent bigint", [(7, 0.0, 7)]).recursive_agg(
        "node",
        {"dist": "min", "parent": ra.min_by("dist")},
        step=lambda d: d.join(e, d.node == e.src).select(
            e.dst.alias("node"), (d.dist + e.weight).alias("dist"), d.node.alias("parent")
        ),
        backend="spark",
    )


def all_pairs(spark: SparkSession) -> DataFrame:
    """Distances of all pairs, by edges at the end."""
    e, more = edges(spark), edges(spark).toDF("s", "t", "w")
    return e.toDF("src", "dst", "dist").recursive_agg(
        ["src", "dst"],
        {"dist": "min"},
        step=lambda d: d.join(more, d.dst == more.s).select(
            d.src, more.t.alias("dst"), (d.dist + more.w).alias("dist")
        ),
        backend="spark",
    )
