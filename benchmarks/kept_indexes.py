"""Measure shortest paths from one start after another over one graph, without and with kept indexes.

    python -m benchmarks.kept_indexes                     # R-MAT 2^20, files and a cached table
    python -m benchmarks.kept_indexes --graph grid-300 --starts 12

Needs the extra `bench`. Each turn asks for the distances from another start in all ways, and compares their sums; the
first two turns warm up and leave the indexes, and are not counted. The table has the medians.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyspark_paralagg as ra
from benchmarks.datasets import open_graph
from benchmarks.systems.spark_session import builder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

KEEP = "spark.paralagg.keepIndexes"
_NOT_COUNTED = 2


@dataclass(frozen=True)
class Run:
    """One query: its seconds as a whole, to load and to loop; its form; what the rows add up to."""

    whole: float
    load: float
    loop: float
    form: str
    check: tuple[int, int]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="rmat-20")
    parser.add_argument("--starts", type=int, default=8)
    parser.add_argument("--memory", default="8g")
    options = parser.parse_args()
    spark = ra.configure(builder(options.memory)).getOrCreate()
    graph = open_graph(options.graph)
    files = spark.read.parquet(graph.edges_file)
    cached = files.select("*").where("w > 0").cache()
    ways = {
        "files": (files, "false"),
        "cached table": (cached, "false"),
        "files, kept indexes": (files, "true"),
        "cached table, kept indexes": (cached, "true"),
    }
    runs: dict[str, list[Run]] = {name: [] for name in ways}
    nodes = spark.read.parquet(graph.edges_file).select("src").distinct().orderBy("src").limit(10_000).collect()
    for turn in range(options.starts + _NOT_COUNTED):
        start = nodes[turn * len(nodes) // (options.starts + _NOT_COUNTED)].src
        for name, (edges, keeps) in ways.items():
            spark.conf.set(KEEP, keeps)
            runs[name].append(paths(edges, start))
            assert runs[name][-1].check == runs["files"][-1].check, (name, start)
    print(f"| shortest paths, {options.graph}, {options.starts} starts | whole, s | load, s | loop, s | form |")
    print("|---|--:|--:|--:|---|")
    for name, all_runs in runs.items():
        counted = all_runs[_NOT_COUNTED:]
        whole, load, loop = (statistics.median(getattr(r, part) for r in counted) for part in ("whole", "load", "loop"))
        print(f"| {name} | {whole:.2f} | {load:.2f} | {loop:.2f} | {counted[-1].form} |")
    spark.stop()


def paths(edges: DataFrame, start: int) -> Run:
    """Compute the distances from a node."""
    base = edges.sparkSession.range(start, start + 1).selectExpr("id AS node", "0L AS dist")
    began = time.perf_counter()
    found = ra.recursive_agg(
        base,
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).selectExpr("dst AS node", "dist + w AS dist"),
        name="dist",
        backend="spark",
    )
    totals = found.selectExpr("count(*) AS n", "sum(dist) AS s").collect()[0]
    whole = time.perf_counter() - began
    report = ra.report(found)
    assert report is not None
    seconds = report.seconds
    return Run(whole, seconds["load"], seconds["loop"], report.form, (totals.n, totals.s or 0))


if __name__ == "__main__":
    main()
