"""Spark's own recursive CTEs under ``min`` and ``max``: which become recursive aggregates, and which not."""

# ruff: noqa: S608 - the tests' own queries

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rows import assert_same_rows
from spark_versions import since

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = [since("4.1", "its own recursive CTEs run"), pytest.mark.rotates(runs=3)]
Rows = list[tuple[object, ...]]

PATHS = """WITH RECURSIVE path(node, d, hops) AS (
    SELECT 1L, 0L, 0 UNION ALL SELECT e.dst, p.d + e.w, p.hops + 1 FROM path p JOIN few e ON p.node = e.src {}) """
FEW_HOPS = PATHS.format("WHERE p.hops < 5")
TAKEN = "RecursiveAggregate recursive_cte (recursive_cte, lattice)"


def optimized(df: DataFrame) -> str:
    return str(df._jdf.queryExecution().optimizedPlan().toString())


def test_the_least_of_each_key_ends_on_a_cycle(run: Callable[[str], Rows], spark: SparkSession) -> None:
    text = PATHS.format("") + "SELECT node, min(d) AS d FROM path GROUP BY node"
    assert_same_rows(run(text), [(1, 0), (2, 4), (3, 9), (4, 10)])
    df = spark.sql(text)
    assert TAKEN in optimized(df)
    assert "UnionLoop" not in optimized(df)
    assert ra.explain(df, "program").startswith("relation recursive_cte(node, min d) from input 0")
    assert "a recursive CTE under min or max, spark.paralagg.sql.rewrite is on" in ra.explain(df)


def test_a_conf_turns_it_off(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    text = PATHS.format("WHERE p.d < 30") + "SELECT node, min(d) FROM path GROUP BY node"
    found = run(text)
    assert TAKEN in optimized(spark.sql(text))
    spark.conf.set("spark.paralagg.sql.rewrite", "false")
    assert "UnionLoop" in optimized(spark.sql(text))
    assert_same_rows(run(text), found)


@pytest.mark.parametrize(
    ("query", "is_taken"),
    [
        (PATHS.format("WHERE p.d < 25") + "SELECT node, min(d) FROM path WHERE node > 2 GROUP BY node", True),
        (PATHS.format("WHERE p.d < 25") + "SELECT min(d), node * 2 FROM path GROUP BY node HAVING min(d) > 4", True),
        (FEW_HOPS + "SELECT min(hops), node FROM path GROUP BY node", True),
        (FEW_HOPS + "SELECT node FROM few JOIN (SELECT node, min(hops) h FROM path GROUP BY node) ON h = w", True),
        (FEW_HOPS + "SELECT * FROM few WHERE src IN (SELECT node FROM path GROUP BY node HAVING min(hops) = 2)", True),
        (FEW_HOPS + "SELECT node, hops, min(d) FROM path GROUP BY node, hops", True),
        (FEW_HOPS + "SELECT node, sum(d) FROM path GROUP BY node", False),
        (FEW_HOPS + "SELECT node, min(d), sum(hops) FROM path GROUP BY node", False),
        (FEW_HOPS + "SELECT node, d FROM path", False),
    ],
)
def test_results_are_those_of_spark(
    spark: SparkSession,
    run: Callable[[str], Rows],
    query: str,
    is_taken: bool,  # noqa: FBT001 - a parameter
) -> None:
    assert (TAKEN in optimized(spark.sql(query))) == is_taken
    if not is_taken:
        return  # then nothing has changed
    found = run(query)
    spark.conf.set("spark.paralagg.sql.rewrite", "false")
    assert_same_rows(found, run(query))


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (FEW_HOPS + "SELECT node, min(d) FROM path GROUP BY node", "its recursion reads column 3"),
        (FEW_HOPS + "SELECT node, min(d), min(hops) FROM path GROUP BY node", "PARALAGG_ROWS_MIXED: the filter"),
        (FEW_HOPS + "SELECT node, min(hops), max(hops) FROM path GROUP BY node", "taken in two ways"),
        (FEW_HOPS + "SELECT node, max(hops) FROM path GROUP BY node", "PARALAGG_NOT_MONOTONE"),
        (FEW_HOPS + "SELECT node, min(hops) FROM path WHERE hops > 0 GROUP BY node", "filtered by more than its keys"),
        (FEW_HOPS + "SELECT node, min(hops - 1) FROM path GROUP BY node", "is not of a column"),
        (FEW_HOPS + "SELECT node % 2, min(hops) FROM path GROUP BY 1", "groups by an expression"),
        (
            (
                "WITH RECURSIVE t(n, m) AS (SELECT 1, 1 UNION ALL SELECT a.n + 1, b.m FROM t a JOIN t b ON a.n = b.n "
                "WHERE a.n < 4) SELECT n, min(m) FROM t GROUP BY n"
            ),
            "reads itself more than once",
        ),
        (
            (
                "WITH RECURSIVE t(n, a, b) AS (SELECT 1, 5, 1 UNION ALL SELECT n + 1, a + b, b FROM t WHERE n < 4) "
                "SELECT n, min(a), min(b) FROM t GROUP BY n"
            ),
            "PARALAGG_ROWS_MIXED: the value a + b",
        ),
    ],
)
def test_what_is_left_to_spark_says_why(spark: SparkSession, views: None, query: str, reason: str) -> None:  # noqa: ARG001 - made once
    df = spark.sql(query)
    assert "UnionLoop" in optimized(df)
    assert reason in ra.explain(df)


ALL_PAIRS = """WITH RECURSIVE pairs(src, dst, d) AS (
    SELECT src, dst, w FROM few UNION ALL SELECT p.src, e.dst, p.d + e.w FROM pairs p JOIN few e ON p.dst = e.src)
    SELECT src, dst, min(d) AS d FROM pairs WHERE src = 3 GROUP BY src, dst"""
FROM_3 = [(3, 1, 1), (3, 2, 5), (3, 3, 10), (3, 4, 1)]


def test_only_the_source_that_is_asked_for_is_computed(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    assert_same_rows(run(ALL_PAIRS), FROM_3)
    df = spark.sql(ALL_PAIRS)
    assert "Filter (" not in optimized(df)
    assert "Aggregate [" not in optimized(df)
    df.collect()
    report = ra.report(df)
    assert report is not None
    assert report.tuples == len(FROM_3)


@pytest.mark.parametrize(
    ("rule", "operators"),
    [
        ("PushKeyFilter", ["Filter ("]),
        ("DropAggregate", ["Aggregate ["]),
        ("RewriteUnionLoop", ["Filter (", "Aggregate [", "UnionLoop"]),
    ],
)
def test_a_rule_that_is_off_is_off_there_too(
    spark: SparkSession, run: Callable[[str], Rows], rule: str, operators: list[str]
) -> None:
    spark.conf.set("spark.sql.optimizer.excludedRules", f"org.apache.spark.sql.paralagg.rules.{rule}")
    query = ALL_PAIRS.replace("JOIN few e", "JOIN (SELECT * FROM few WHERE src < 3) e")  # without cycles
    above = optimized(spark.sql(query)).split("RecursiveAggregate")[0]
    assert [o for o in ("Filter (", "Aggregate [", "UnionLoop") if o in above] == operators
    assert_same_rows(run(query), FROM_3)


def test_rows_that_nobody_derived_are_not_mixed(run: Callable[[str], Rows]) -> None:
    """3 is reached cheaply in 2 hops and dearly in 1: with both least values together, 4 would be had for 3."""
    text = """WITH RECURSIVE e(src, dst, w) AS (VALUES (1, 2, 1), (2, 3, 1), (1, 3, 9), (3, 4, 1)),
        path(node, d, hops) AS (
            SELECT 1, 0, 0 UNION ALL SELECT dst, d + w, hops + 1 FROM path JOIN e ON node = src WHERE hops < 2)
        SELECT node, min(d), min(hops) FROM path GROUP BY node"""
    assert_same_rows(run(text), [(1, 0, 0), (2, 1, 1), (3, 2, 1), (4, 10, 2)])


def test_without_a_compiler_spark_does_it(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    ra.attach(spark, {"spark.paralagg.python": "/nowhere/python"})
    asked_nowhere_else = PATHS.format("WHERE p.hops < 6")
    query = asked_nowhere_else + "SELECT node, min(hops) FROM path GROUP BY node"
    assert "PARALAGG_SQL_COMPILER" in ra.explain(spark.sql(query))
    assert_same_rows(run(query), [(1, 0), (2, 1), (3, 2), (4, 1)])


@pytest.mark.parametrize("says", ["no JSON", '{"strata": [{"relations": ["recursive_cte"], "plan": "{}"}], "id": 1}'])
def test_whatever_a_compiler_answers_spark_does_it(
    spark: SparkSession, run: Callable[[str], Rows], tmp_path: Path, says: str
) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nread question\necho '{says}'\n")
    python.chmod(0o755)
    ra.attach(spark, {"spark.paralagg.python": str(python)})
    query = PATHS.format("WHERE p.hops < 7") + "SELECT node, min(hops) FROM path GROUP BY node"
    assert "UnionLoop" in optimized(spark.sql(query))
    assert_same_rows(run(query), [(1, 0), (2, 1), (3, 2), (4, 1)])
