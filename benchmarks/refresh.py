"""Recursive tables on Delta: what a refresh after 0.1 % new edges costs beside a full one.

    python -m benchmarks.refresh                            # components and shortest paths, R-MAT 2^18
    python -m benchmarks.refresh --graph rmat-16 --rounds 5

Needs the extras `bench` and `delta`. The edges lie in a Delta table with a change feed; all but the last ones are there
at first. A first full refresh and a first incremental one warm up and are not counted; each counted round puts 0.1 %
in, refreshes, and then computes the whole into another table, whose rows have to be the same.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import time
from typing import TYPE_CHECKING, Any

import pyspark_paralagg as ra
from benchmarks.datasets import DEFAULT_CACHE, open_graph
from benchmarks.systems.spark_session import builder
from pyspark_paralagg.delta.tables import DELTA_CONFS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SHARE = 0.001
QUERIES = ("components", "sssp")


def session(memory: str) -> SparkSession:
    """Return a session with Delta, its files below the working folder."""
    from delta import configure_spark_with_delta_pip  # noqa: PLC0415 - an extra

    made = builder(memory)
    confs = {**DELTA_CONFS, "spark.databricks.delta.snapshotPartitions": "2", "spark.sql.shuffle.partitions": "2"}
    for key, value in confs.items():
        made = made.config(key, value)
    return configure_spark_with_delta_pip(ra.configure(made)).getOrCreate()


def view(spark: SparkSession, query: str, folder: Path, target: str) -> ra.delta.RecursiveTable:
    """Return the maintained table of a query."""

    def labels(t: Mapping[str, DataFrame]) -> DataFrame:
        e = t["edges"]
        return e.selectExpr("src AS node", "src AS label").unionAll(e.selectExpr("dst AS node", "dst AS label"))

    def spread(d: DataFrame, t: Mapping[str, DataFrame]) -> DataFrame:
        e = t["edges"]
        there = d.join(e, d.node == e.src).selectExpr("dst AS node", "label")
        return there.unionAll(d.join(e, d.node == e.dst).selectExpr("src AS node", "label"))

    def walk(d: DataFrame, t: Mapping[str, DataFrame]) -> DataFrame:
        e = t["edges"]
        return d.join(e, d.node == e.src).selectExpr("dst AS node", "dist + w AS dist")

    sources = {"edges": str(folder / "edges")}
    options: dict[str, Any] = {"aggs": {"label": "min"}, "base": labels, "step": spread}
    if query == "sssp":
        sources["starts"] = str(folder / "starts")
        options = {"aggs": {"dist": "min"}, "base": lambda t: t["starts"], "step": walk}
    return ra.delta.RecursiveTable(spark, str(folder / target), keys="node", sources=sources, **options)


def measure(spark: SparkSession, query: str, graph: str, folder: Path, rounds: int) -> None:
    """Print a line for each round and the medians."""
    shutil.rmtree(folder, ignore_errors=True)
    found = open_graph(graph)
    edges = spark.read.parquet(found.edges_file).cache()
    part = f"pmod(xxhash64(src, dst), {round(1 / SHARE)})"

    def put(condition: str) -> None:
        writer = edges.where(condition).write.format("delta").mode("append")
        writer.option("delta.enableChangeDataFeed", "true").save(str(folder / "edges"))

    put(f"{part} > {rounds}")
    starts = spark.sql(f"SELECT {found.source}L AS node, 0L AS dist")
    starts.write.format("delta").option("delta.enableChangeDataFeed", "true").save(str(folder / "starts"))
    kept = view(spark, query, folder, "kept")
    kept.refresh()
    spent: dict[str, list[float]] = {"incremental": [], "full": []}
    for turn in range(rounds + 1):
        put(f"{part} = {turn}")
        spark.read.format("delta").load(str(folder / "edges")).isEmpty()  # neither of the two pays for opening the log
        began = time.perf_counter()
        report = kept.refresh()
        between = time.perf_counter()
        whole = view(spark, query, folder, f"whole-{turn}").refresh()
        ended = time.perf_counter()
        assert (report.kind, whole.kind) == ("incremental", "full"), report.reason
        tables = [spark.read.format("delta").load(str(folder / name)) for name in ("kept", f"whole-{turn}")]
        assert tables[0].exceptAll(tables[1]).isEmpty()
        assert tables[0].count() == tables[1].count()
        phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in report.seconds.items())
        print(
            f"{query} {graph}: incremental {between - began:.2f} s ({phases}; {report.inserted:,} + "
            f"{report.updated:,} rows), full {ended - between:.2f} s{' (not counted)' if turn == 0 else ''}"
        )
        if turn > 0:
            spent["incremental"].append(between - began)
            spent["full"].append(ended - between)
    of = {kind: statistics.median(seconds) for kind, seconds in spent.items()}
    print(f"{query} {graph}: {of['incremental']:.2f} s of {of['full']:.2f} s, {of['incremental'] / of['full']:.0%}")


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.refresh", description=__doc__.splitlines()[0])
    parser.add_argument("--graph", default="rmat-18")
    parser.add_argument("--query", choices=QUERIES, action="append")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", default="6g")
    asked = parser.parse_args()
    spark = session(asked.memory)
    for query in asked.query or QUERIES:
        measure(spark, query, asked.graph, DEFAULT_CACHE.absolute() / "refresh" / query, asked.rounds)
    spark.stop()


if __name__ == "__main__":
    main()
