"""Define recursions for scenarios, and compute their expected results in plain Python."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the usual name

import pyspark_paralagg  # noqa: F401 - adds recursive_agg

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FOREVER = 10**9


def chain(spark: SparkSession, length: int, **options: Any) -> DataFrame:  # noqa: ANN401 - options of the call
    """Return shortest paths along ``length`` edges, which take ``length + 1`` iterations."""
    edges = spark.range(length).selectExpr("id as src", "id + 1 as dst", "1L as w")
    return paths(spark.range(1).selectExpr("id as node", "0L as dist"), edges, **options)


def chain_total(length: int) -> list[int]:
    """Return the count of rows and the sum of distances of a chain."""
    return [length + 1, length * (length + 1) // 2]


def paths(base: DataFrame, edges: DataFrame, **options: Any) -> DataFrame:  # noqa: ANN401 - options of the call
    """Return shortest paths."""
    return base.recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.w).alias("dist")
        ),
        assume="w >= 0",
        **options,
    )


def total(df: DataFrame) -> list[int]:
    """Return the count of rows and the sum of distances."""
    return list(df.agg(F.count("*"), F.sum("dist")).first() or ())


def scattered_edges(spark: SparkSession, vertices: int) -> DataFrame:
    """Return six edges for each vertex, to distant vertices, with small weights."""
    columns = (
        f"id % {vertices} as src",
        f"(id * 7919 + 13 + id div {vertices}) % {vertices} as dst",
        "1 + id % 17 as w",
    )
    return spark.range(6 * vertices).selectExpr(*columns)


def scattered_distances(vertices: int) -> dict[int, int]:
    """Return distances from vertex 0 along ``scattered_edges``, by Dijkstra's algorithm."""
    out: dict[int, list[tuple[int, int]]] = {}
    for i in range(6 * vertices):
        out.setdefault(i % vertices, []).append(((i * 7919 + 13 + i // vertices) % vertices, 1 + i % 17))
    distances: dict[int, int] = {}
    queue = [(0, 0)]
    while queue:
        dist, node = heapq.heappop(queue)
        if node not in distances:
            distances[node] = dist
            for target, w in out[node]:
                heapq.heappush(queue, (dist + w, target))
    return distances


def endless_rounds(spark: SparkSession, keys: int = 1000) -> DataFrame:
    """Return a recursion that counts without end, in rounds that all tasks end together."""
    base = spark.range(keys).selectExpr("id as node", "0L as level")
    return base.recursive_agg(
        "node",
        {"level": "max"},
        step=lambda r: r.selectExpr(f"(node + 1) % {keys} as node", "level + 1 as level"),
        max_iterations=FOREVER,
        on_limit="return",
    )


def endless_growth(spark: SparkSession) -> DataFrame:
    """Return a set that gains one number in each pass, up to 10^9: in place, without a limit."""
    base = spark.range(1).selectExpr("id as node")
    return base.recursive_agg("node", step=lambda r: r.where(f"node < {FOREVER}").selectExpr("node + 1 as node"))


def one_long_iteration(spark: SparkSession, drivers: int = 20_000, fan: int = 30_000) -> DataFrame:
    """Return a recursion with one application of the step that has ``drivers * fan`` matches."""
    base = spark.range(drivers).selectExpr("id as node", "0L as hub", "id as least")
    spokes = spark.range(fan).selectExpr("0L as at", "id as there")
    return base.recursive_agg(
        ["node", "hub"],
        {"least": "min"},
        step=lambda r: r.join(spokes, r.hub == spokes.at).select(
            spokes.there.alias("node"), F.lit(1).cast("bigint").alias("hub"), r.least
        ),
    )
