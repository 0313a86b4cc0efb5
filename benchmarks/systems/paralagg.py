"""This project, through its public API only; the same steps on the Spark engine and on the plain-DataFrame executor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import pyspark_paralagg as ra
from benchmarks.queries import DAMPING, PAGERANK_ROUNDS, Checksum
from benchmarks.systems import Answer
from benchmarks.systems.run_facts import run_facts
from benchmarks.systems.spark_session import HeapPeak, builder

if TYPE_CHECKING:
    from benchmarks.datasets import Graph

_BACKENDS = {"paralagg": "spark", "dataframe": "dataframe", "offload": "mpi"}


def _shortest_paths(spark: SparkSession, graph: Graph, backend: str) -> DataFrame:
    edges = spark.read.parquet(graph.edges_file)
    source = spark.range(graph.source, graph.source + 1).select(
        f.col("id").alias("node"), f.lit(0).cast("bigint").alias("dist")
    )
    return source.recursive_agg(
        keys="node",
        aggs={"dist": "min"},
        backend=backend,
        step=lambda reached: reached.join(edges, reached.node == edges.src).select(
            edges.dst.alias("node"), (reached.dist + edges.w).alias("dist")
        ),
    )


def _multi_shortest_paths(spark: SparkSession, graph: Graph, backend: str) -> DataFrame:
    edges = spark.read.parquet(graph.edges_file)
    start = spark.createDataFrame(
        [(source, source, 0) for source in graph.sources], "source long, node long, dist long"
    )
    return start.recursive_agg(
        keys=["source", "node"],
        aggs={"dist": "min"},
        backend=backend,
        step=lambda reached: reached.join(edges, reached.node == edges.src).select(
            reached.source, edges.dst.alias("node"), (reached.dist + edges.w).alias("dist")
        ),
    )


def _components(spark: SparkSession, graph: Graph, backend: str) -> DataFrame:
    edges = spark.read.parquet(graph.edges_file).select("src", "dst")
    vertices = spark.read.parquet(graph.vertices_file).select(f.col("v").alias("node"), f.col("v").alias("label"))
    return vertices.recursive_agg(
        keys="node",
        aggs={"label": "min"},
        backend=backend,
        step=lambda component: (
            component.join(edges, component.node == edges.src)
            .select(edges.dst.alias("node"), component.label)
            .union(component.join(edges, component.node == edges.dst).select(edges.src.alias("node"), component.label))
        ),
    )


def _pagerank(spark: SparkSession, graph: Graph, backend: str) -> DataFrame:
    edges = spark.read.parquet(graph.edges_file).select("src", "dst")
    shares = edges.groupBy(f.col("src").alias("v")).agg((f.lit(DAMPING) / f.count("*")).alias("share"))
    vertices = spark.read.parquet(graph.vertices_file).select(f.col("v").alias("node"))
    return vertices.withColumn("rank", f.lit(1 - DAMPING)).recursive_agg(
        keys="node",
        aggs={"rank": "sum"},
        initial=vertices.withColumn("rank", f.lit(1.0)),
        backend=backend,
        max_iterations=PAGERANK_ROUNDS,
        on_limit="return",
        step=lambda ranked: (
            ranked.join(shares, ranked.node == shares.v)
            .join(edges, f.col("node") == f.col("src"))
            .select(f.col("dst").alias("node"), (f.col("rank") * f.col("share")).alias("rank"))
        ),
    )


def _closure(spark: SparkSession, graph: Graph, backend: str) -> DataFrame:
    edges = spark.read.parquet(graph.edges_file).select("src", "dst")
    paths = edges.select(f.col("src").alias("x"), f.col("dst").alias("z"))
    return paths.recursive_agg(
        keys=["x", "z"],
        backend=backend,
        step=lambda path: path.join(edges, path.z == edges.src).select(path.x, edges.dst.alias("z")),
    )


QUERIES = {
    "sssp": _shortest_paths,
    "multi-sssp": _multi_shortest_paths,
    "components": _components,
    "pagerank": _pagerank,
    "closure": _closure,
}
CHECKSUMS = {
    "sssp": ("count(*)", "sum(dist)"),
    "multi-sssp": ("count(*)", "sum(dist)"),
    "components": ("count(*)", "sum(label)"),
    "pagerank": ("count(*)", "sum(rank)", "sum(rank * rank)"),
    "closure": ("count(*)",),
}


class Paralagg:
    """One Spark session; `name` says which executor its queries insist on."""

    def __init__(self, name: str, memory: str) -> None:
        self._backend = _BACKENDS[name]
        self.session = ra.configure(builder(memory)).getOrCreate()
        self._heap = HeapPeak(self.session)
        self.version = f"PySpark {self.session.version}"

    def answer(self, query: str, graph: Graph) -> Answer:
        """Build the lazy DataFrame anew and reduce it; the loop's share is what `ra.report` says."""
        self._heap.reset()
        result = QUERIES[query](self.session, graph, self._backend)
        checksum: Checksum = tuple(result.selectExpr(*CHECKSUMS[query]).collect()[0])
        report = ra.report(result)
        facts: dict[str, Any] = {"heap_peak_mb": self._heap.megabytes()}
        if report is None:
            return Answer(checksum, None, facts)
        facts |= {"seconds": dict(report.seconds), **run_facts(report.iterations, report.rounds, report.ranks)}
        return Answer(checksum, report.seconds["loop"], facts)


def start(name: str, memory: str) -> Paralagg:
    """Start Spark, configured as a user would."""
    return Paralagg(name, memory)
