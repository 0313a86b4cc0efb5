"""Paths and hops in the head of a recursive query: the rows of ``ra.path``."""

# ruff: noqa: S608 - the tests' own queries

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

Rows = list[tuple[object, ...]]

BRANCHES = "SELECT 1, 0 UNION SELECT e.dst, sp.dist + e.w FROM sp JOIN few e ON sp.node = e.src"
SHORTEST = f"WITH RECURSIVE sp(node, min() AS dist, path(dist) AS route, hops(dist) AS legs) AS ({BRANCHES})"
ROWS = [(1, 0, [1], 0), (2, 4, [1, 2], 1), (3, 9, [1, 2, 3], 2), (4, 10, [1, 2, 3, 4], 3)]


def test_the_route_of_each_row(run: Callable[[str], Rows]) -> None:
    assert run(f"{SHORTEST} SELECT node, dist, route, legs FROM sp ORDER BY node") == ROWS
    assert run(f"{SHORTEST} SELECT legs, route FROM sp WHERE node = 3") == [(2, [1, 2, 3])]
    assert run(f"{SHORTEST} SELECT count(*), max(dist) FROM sp") == [(4, 10)]


def test_a_result_may_be_read_twice(run: Callable[[str], Rows]) -> None:
    both = f"{SHORTEST} SELECT a.route, b.route FROM sp a JOIN sp b ON a.legs = b.legs + 2 ORDER BY a.node"
    assert run(both) == [([1, 2, 3], [1]), ([1, 2, 3, 4], [1, 2])]


@pytest.mark.parametrize(
    "head",
    [
        "sp(path(dist) AS route, node, hops(dist) AS legs, min() AS dist)",
        "sp(node, dist, route, legs) USING KEY (node, min(dist), path(route, dist), hops(legs, dist))",
    ],
)
def test_other_spellings(run: Callable[[str], Rows], head: str) -> None:
    query = f"WITH RECURSIVE {head} AS ({BRANCHES}) SELECT node, dist, route, legs FROM sp ORDER BY node"
    assert run(query) == ROWS


def test_the_first_branch_may_name_the_columns(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    branches = BRANCHES.replace("SELECT 1, 0", "SELECT 1 AS node, 0 AS dist")
    query = f"WITH RECURSIVE sp USING KEY (node, min(dist), path(route, dist)) AS ({branches}) SELECT * FROM sp"
    assert sorted(run(query)) == [row[:3] for row in ROWS]
    assert spark.sql(query).dtypes[2] == ("route", "array<bigint>")


def test_pairs_of_keys_without_an_aggregate(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    """Of all ways the one with the fewest steps counts, and rows are those of ``ra.path``."""
    query = (
        "WITH RECURSIVE reach(a, b, path() AS way) AS (SELECT src, dst FROM graph WHERE src < 3 UNION "
        "SELECT r.a, e.dst FROM reach r JOIN graph e ON r.b = e.src) SELECT a, b, way FROM reach"
    )
    graph = spark.table("graph")
    base = graph.where("src < 3").selectExpr("src AS a", "dst AS b").distinct()
    frames = base.recursive_agg(
        ["a", "b"], {"way": ra.path()}, step=lambda r: r.join(graph, r.b == graph.src).select(r.a, graph.dst.alias("b"))
    )
    rows = sorted(run(query))
    assert len(rows) > 100
    assert rows == sorted(tuple(r) for r in frames.collect())


def test_without_its_route_a_query_makes_none(spark: SparkSession, views: None) -> None:  # noqa: ARG001 - made once
    assert "Routes [" in _plan(spark, f"{SHORTEST} SELECT route FROM sp")
    assert "Routes [" not in _plan(spark, f"{SHORTEST} SELECT node, legs FROM sp")


def _plan(spark: SparkSession, query: str) -> str:
    return str(spark.sql(query)._jdf.queryExecution().executedPlan().toString())
