"""Measure what more than the value costs: hops, routes, and the proof of one row, beside the query itself.

    python -m benchmarks.explained                        # shortest paths, R-MAT 2^16
    python -m benchmarks.explained --graph grid-300 --backend local --repeat 5

Needs the extra `bench`. Each turn runs the four questions one after the other; the first turn warms up and is not
counted. The table has the medians, and their ratio to the query's.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
from typing import TYPE_CHECKING

import pyspark_paralagg as ra
from benchmarks.datasets import open_graph
from benchmarks.systems.spark_session import builder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from pyspark_paralagg.program.trace import Hops, Path


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--graph", default="rmat-16")
    parser.add_argument("--backend", default="spark")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--memory", default="4g")
    options = parser.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # workers make the routes
    spark = ra.configure(builder(options.memory)).getOrCreate()
    graph = open_graph(options.graph)
    edges = spark.read.parquet(str(graph.edges_file)).alias("edges")
    start = spark.sql(f"SELECT {graph.source}L AS node, 0L AS dist")

    def paths(traces: Mapping[str, Hops | Path]) -> DataFrame:
        return ra.recursive_agg(
            start,
            "node",
            {"dist": "min", **traces},
            step=lambda d: d.join(edges, d.node == edges.src).selectExpr("dst AS node", "dist + w AS dist"),
            name="dist",
            backend=options.backend,
        )

    farthest = paths({}).orderBy("dist", ascending=False).first()
    assert farthest is not None
    questions: dict[str, Callable[[], object]] = {
        "the query": lambda: _rows(paths({})),
        "with ra.hops": lambda: _rows(paths({"legs": ra.hops("dist")})),
        "with ra.path": lambda: _rows(paths({"route": ra.path("dist")})),
        "ra.why of the farthest node": lambda: ra.why(paths({}), node=farthest.node).depth,
    }
    seconds: dict[str, list[float]] = {name: [] for name in questions}
    for turn in range(options.repeat + 1):
        for name, ask in questions.items():
            began = time.perf_counter()
            ask()
            if turn:
                seconds[name].append(time.perf_counter() - began)
    base = statistics.median(seconds["the query"])
    print(f"| shortest paths, {options.graph}, {options.backend} | s | ÷ query |\n|---|--:|--:|")
    for name, all_seconds in seconds.items():
        median = statistics.median(all_seconds)
        print(f"| {name} | {median:.2f} | {median / base:.1f} |")
    spark.stop()


def _rows(df: DataFrame) -> int:
    """Run the query without moving its rows to this process."""
    df.write.format("noop").mode("overwrite").save()
    return 0


if __name__ == "__main__":
    main()
