"""Rules change no result: generated recursions below generated queries, with all rules, without each, without any."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from plans import RULES, without
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import assert_same_rows, frame, rows_of
from test_property import draw, expected, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    Query = Callable[[DataFrame], DataFrame]

QUERIES: tuple[Query, ...] = (
    lambda r: r.where("x = 3"),
    lambda r: r.where("y = 3"),
    lambda r: r.where("x > 2 AND y < 5"),
    lambda r: r.where("x IS NULL OR x + y = 7"),
    lambda r: r.where("v < 6").select("x"),
    lambda r: r.select("v"),
    lambda r: r.where("x IN (1, 2)").select("x", "y"),
    lambda r: r.groupBy("x", "y").agg(F.min("v"), F.count("v"), F.sum("v"), F.avg("v")),
    lambda r: r.groupBy("y").agg(F.max("v"), F.count("*")),
    lambda r: r.select("x", "y").distinct(),
    lambda r: r.select("x").distinct(),
    lambda r: r.where("x = 1").union(r.where("x = 1 AND y > 2")),
    lambda r: r.alias("a").join(r.alias("b"), F.expr("a.x = b.x AND a.y = 2 AND b.x = 4")).select("a.x", "b.y", "a.v"),
    lambda r: r.where("x = 2").groupBy("x", "y").agg(F.max("v").alias("v")).where("v > 1").select("y"),
    lambda r: r.dropDuplicates(["x", "y"]).where("x < 4").selectExpr("x - y AS z"),
)


@pytest.mark.rotates(runs=4)
@pytest.mark.parametrize("seed", range(16))
def test_results_are_the_same(spark: SparkSession, seed: int) -> None:
    case = draw(seed + 100)
    dice = random.Random(seed)  # noqa: S311 - a test's dice
    queries = [q for q in QUERIES if case.aggregator != "set"]
    queries = dice.sample(queries or [QUERIES[i] for i in (0, 1, 2, 3, 6, 9, 10)], 3)
    spark.conf.set("spark.sql.shuffle.partitions", (1, 2, 7)[seed % 3])
    spark.conf.set("spark.sql.adaptive.enabled", ("true", "false")[seed % 2])
    ddl = "x bigint, y bigint" + ("" if case.aggregator == "set" else ", v bigint")
    meant = frame(spark, ddl, expected(case))
    for query in queries:
        wanted = rows_of(query(meant))
        for off in ((), *((r,) for r in RULES), RULES):
            with without(spark, *off):
                assert_same_rows(rows_of(query(run(spark, case, mode="trust", backend="spark"))), wanted)


@pytest.mark.parametrize("adaptive", ["true", "false"])
def test_a_key_in_both_parts_of_a_union_is_aggregated_once(spark: SparkSession, adaptive: str) -> None:
    """Both parts are distributed by the key. Spark's union reports that it keeps this, and keeps it for rows only."""
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set("spark.sql.adaptive.enabled", adaptive)
    edges = spark.range(12).selectExpr("id AS x", "id + 1 AS y")
    r = edges.recursive_agg(
        ["x", "y"], step=lambda d: d.alias("d").join(edges.alias("e"), F.expr("d.y = e.x")).selectExpr("d.x", "e.y")
    )
    both = r.union(r.where("x < 9"))
    assert both.distinct().count() == r.count() == 78
    assert both.groupBy("x").count().count() == 12
