"""``ra.h_index`` beyond the fixtures: two keys in a non-linear step, totals that are too large, long chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

import networkx as nx
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the customary name
from rows import frame, rows_of

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ENGINES = ("spark", "local")


@pytest.mark.slow("three joins of rows that are read twice")
@pytest.mark.parametrize("backend", ENGINES)
def test_truss_numbers(spark: SparkSession, backend: str) -> None:
    """An edge is in the k-truss if k - 2 triangles within it have the edge."""
    graph = nx.gnp_random_graph(40, 0.3, seed=4)
    graph.add_edges_from(nx.gnp_random_graph(14, 0.9, seed=4).edges)
    trusses = {k: nx.k_truss(graph, k) for k in range(2, 20)}
    expected = {(min(e), max(e)): max(k for k, g in trusses.items() if g.has_edge(*e)) - 2 for e in graph.edges}
    edges = frame(spark, "a bigint, b bigint", [p for e in graph.edges for p in (e, e[::-1])])
    triangles = edges.join(edges.toDF("b", "c"), "b").join(edges.toDF("a", "c"), ["a", "c"]).select("a", "b", "c")
    supports = edges.join(triangles, ["a", "b"], "left").groupBy("a", "b").agg(F.count("c").alias("n"))

    def step(levels: DataFrame) -> DataFrame:
        ac, bc = (levels.select(*(F.col(c).alias(f"{c}_{n}") for c in ("a", "b", "h"))) for n in (1, 2))
        return (
            triangles.join(supports, ["a", "b"])
            .join(ac, (F.col("a") == F.col("a_1")) & (F.col("c") == F.col("b_1")))
            .join(bc, (F.col("b") == F.col("a_2")) & (F.col("c") == F.col("b_2")))
            .select("a", "b", "n", F.least("h_1", "h_2").alias("h"), "c")
        )

    found = supports.selectExpr("a", "b", "n", "n AS h", "a AS c").recursive_agg(
        ["a", "b"], {"h": ra.h_index("n", "h", "c")}, step=step, backend=backend
    )
    assert {(a, b): h for a, b, h in rows_of(found) if a < b} == expected


@pytest.mark.parametrize("backend", ENGINES)
def test_a_total_that_needs_too_much_memory_is_an_overflow(spark: SparkSession, backend: str) -> None:
    base = spark.sql("SELECT 1L AS node, 1L << 41 AS total, 5L AS value, 2L AS who")
    found = base.recursive_agg(
        "node",
        {"h": ra.h_index("total", "value", "who")},
        step=lambda d: d.selectExpr("node", "9L AS total", "h AS value", "node AS who"),
        backend=backend,
    )
    with pytest.raises(Exception, match=r"PARALAGG_OVERFLOW.*h_index"):
        found.collect()


@pytest.mark.parametrize("backend", ENGINES)
def test_numbers_that_fall_one_after_the_other(spark: SparkSession, backend: str) -> None:
    """Of a path the inner vertices fall from 2 to 1 from both ends, so the iterations are half of its length."""
    edges = spark.range(300).selectExpr("id AS src", "id + 1 AS dst")
    found = ra.graph.k_core(edges, backend=backend)
    assert {core for _, core in rows_of(found)} == {1}
    report = ra.report(found)
    assert report is not None
    assert report.iterations >= 150
