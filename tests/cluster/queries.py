"""Recursions for scenarios, with what must come out, worked out here by plain Python."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it

import pyspark_paralagg  # noqa: F401 - brings recursive_agg

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOREVER = 10**9


def chain(spark: SparkSession, length: int, **where: Any) -> DataFrame:  # noqa: ANN401 - options of the call
    """Shortest paths along ``length`` edges: as many iterations, and one more."""
    edges = spark.range(length).selectExpr("id as src", "id + 1 as dst", "1L as w")
    return paths(spark.range(1).selectExpr("id as node", "0L as dist"), edges, **where)


def chain_total(length: int) -> list[int]:
    """Count of rows and sum of distances of a chain."""
    return [length + 1, length * (length + 1) // 2]


def paths(base: DataFrame, edges: DataFrame, **where: Any) -> DataFrame:  # noqa: ANN401 - options of the call
    """Shortest paths."""
    return base.recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.w).alias("dist")
        ),
        assume="w >= 0",
        **where,
    )


def total(df: DataFrame) -> list[int]:
    """Count of rows and sum of distances."""
    return list(df.agg(F.count("*"), F.sum("dist")).first() or ())


def scattered_edges(spark: SparkSession, vertices: int) -> DataFrame:
    """Six edges a vertex that lead far away, with small weights."""
    columns = (
        f"id % {vertices} as src",
        f"(id * 7919 + 13 + id div {vertices}) % {vertices} as dst",
        "1 + id % 17 as w",
    )
    return spark.range(6 * vertices).selectExpr(*columns)


def scattered_distances(vertices: int) -> dict[int, int]:
    """Distances from vertex 0 along ``scattered_edges``, by Dijkstra's algorithm."""
    out: dict[int, list[tuple[int, int]]] = {}
    for i in range(6 * vertices):
        out.setdefault(i % vertices, []).append(((i * 7919 + 13 + i // vertices) % vertices, 1 + i % 17))
    found: dict[int, int] = {}
    queue = [(0, 0)]
    while queue:
        dist, node = heapq.heappop(queue)
        if node not in found:
            found[node] = dist
            for there, w in out[node]:
                heapq.heappush(queue, (dist + w, there))
    return found


def endless_rounds(spark: SparkSession, keys: int = 1000) -> DataFrame:
    """Counts up for ever, in rounds that end together."""
    base = spark.range(keys).selectExpr("id as node", "0L as level")
    return base.recursive_agg(
        "node",
        {"level": "max"},
        step=lambda r: r.selectExpr(f"(node + 1) % {keys} as node", "level + 1 as level"),
        max_iterations=FOREVER,
        on_limit="return",
    )


def endless_growth(spark: SparkSession) -> DataFrame:
    """A set that takes in one more number in each pass, to 10^9: in place, without a limit."""
    base = spark.range(1).selectExpr("id as node")
    return base.recursive_agg("node", step=lambda r: r.where(f"node < {FOREVER}").selectExpr("node + 1 as node"))


def one_long_iteration(spark: SparkSession, drivers: int = 20_000, fan: int = 30_000) -> DataFrame:
    """One application of the step that goes through ``drivers * fan`` matches."""
    base = spark.range(drivers).selectExpr("id as node", "0L as hub", "id as least")
    spokes = spark.range(fan).selectExpr("0L as at", "id as there")
    return base.recursive_agg(
        ["node", "hub"],
        {"least": "min"},
        step=lambda r: r.join(spokes, r.hub == spokes.at).select(
            spokes.there.alias("node"), F.lit(1).cast("bigint").alias("hub"), r.least
        ),
    )
