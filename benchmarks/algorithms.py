"""Algorithms by name, beside GraphFrames: seconds of each call from the Parquet files to a checksum of its rows.

    python -m benchmarks.algorithms                                       # this project alone, R-MAT 2^18
    PYTHONPATH=graphframes/python python -m benchmarks.algorithms --jar graphframes.jar
    python -m benchmarks.algorithms --algorithm k_core --graph rmat-16

Needs the extra `bench`. The second command needs a checkout of GraphFrames, and a jar of it for the installed Spark.
Each pair of algorithm and system runs in a process of its own, several times; the first run warms up. A process that
takes more than `--cap` seconds is ended.
"""

from __future__ import annotations

import argparse
import importlib
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark import StorageLevel

import pyspark_paralagg as ra
from benchmarks.datasets import open_graph
from benchmarks.systems.spark_session import builder

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

ROUNDS = 10
SYSTEMS = ("paralagg", "graphframes")


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of both systems. `checksums` are expressions over each result; both have the same value."""

    ours: Callable[[DataFrame, DataFrame, int], DataFrame]
    theirs: Callable[[Any, int], DataFrame]
    checksums: tuple[str, str]


ALGORITHMS = {
    "bfs": Algorithm(
        lambda e, _v, s: ra.graph.bfs(e, [s], src="dst", dst="src"),
        lambda g, s: (
            g.shortestPaths([s]).where("size(distances) = 1").selectExpr("id", "map_values(distances)[0] AS d")
        ),
        ("sum(distance)", "sum(d)"),
    ),
    "connected_components": Algorithm(
        lambda e, v, _s: ra.graph.connected_components(e, v),
        lambda g, _s: g.connectedComponents(),
        ("count(DISTINCT component)", "count(DISTINCT component)"),
    ),
    "strongly_connected_components": Algorithm(
        lambda e, v, _s: ra.graph.strongly_connected_components(e, v),
        lambda g, _s: g.stronglyConnectedComponents(maxIter=ROUNDS),
        ("count(DISTINCT component)", "count(DISTINCT component)"),
    ),
    "pagerank": Algorithm(  # ranks of vertices without outgoing edges are passed on here, and not there
        lambda e, v, _s: ra.graph.pagerank(e, v, tol=None, max_iter=ROUNDS),
        lambda g, _s: g.pageRank(resetProbability=0.15, maxIter=ROUNDS).vertices,
        ("count(pagerank)", "count(pagerank)"),
    ),
    "label_propagation": Algorithm(  # ties are broken differently
        lambda e, v, _s: ra.graph.label_propagation(e, v, max_iter=5),
        lambda g, _s: g.labelPropagation(maxIter=5),
        ("count(label)", "count(label)"),
    ),
    "triangle_count": Algorithm(
        lambda e, v, _s: ra.graph.triangle_count(e, v),
        lambda g, _s: g.triangleCount(StorageLevel.MEMORY_AND_DISK),
        ("sum(count)", "sum(count)"),
    ),
    "k_core": Algorithm(
        lambda e, v, _s: ra.graph.k_core(e, v), lambda g, _s: simple(g).k_core(), ("sum(core)", "sum(kcore)")
    ),
}


def simple(graph: Any) -> Any:  # noqa: ANN401 - GraphFrames is no dependency
    """Return `graph` with each pair of neighbours once, since GraphFrames' k_core counts parallel edges."""
    pairs = graph.edges.where("src != dst").selectExpr("least(src, dst) AS src", "greatest(src, dst) AS dst")
    return type(graph)(graph.vertices, pairs.distinct())


def measure(system: str, algorithm: str, options: argparse.Namespace) -> None:
    """Run one algorithm of one system, and print a line with its checksum and seconds for each run."""
    configured = builder(options.memory).config("spark.sql.shuffle.partitions", "2")
    if options.jar is not None:
        configured = configured.config("spark.jars", options.jar)
    spark = ra.configure(configured).getOrCreate()
    files, question = open_graph(options.graph), ALGORITHMS[algorithm]
    with tempfile.TemporaryDirectory() as checkpoints:
        spark.sparkContext.setCheckpointDir(checkpoints)
        for _ in range(options.runs):
            began = time.perf_counter()
            edges = spark.read.parquet(files.edges_file).select("src", "dst")
            vertices = spark.read.parquet(files.vertices_file).selectExpr("v AS id")
            if system == "paralagg":
                found = question.ours(edges, vertices, files.source)
            else:
                frame = importlib.import_module("graphframes").GraphFrame(vertices, edges)
                found = question.theirs(frame, files.source)
            value = found.selectExpr(question.checksums[SYSTEMS.index(system)]).collect()[0][0]
            print(f"run {value} {time.perf_counter() - began:.3f}", flush=True)
            spark.catalog.clearCache()
    spark.stop()


def cell(system: str, algorithm: str, options: argparse.Namespace) -> tuple[str, float | None]:
    """Return checksum and median seconds of a measurement in a process of its own, or a reason and None."""
    command = [sys.executable, "-m", "benchmarks.algorithms", "--one", system, "--algorithm", algorithm]
    command += ["--graph", options.graph, "--runs", str(options.runs), "--memory", options.memory]
    command += [] if options.jar is None else ["--jar", options.jar]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=options.cap, check=False)  # noqa: S603
    except subprocess.TimeoutExpired as e:
        printed = e.stdout.decode() if isinstance(e.stdout, bytes) else ""
        return f"more than {options.cap:.0f} s, {printed.count('run ')} runs", None
    rows = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("run ")]
    if done.returncode or not rows:
        sys.stderr.write(done.stderr)
        return "failed", None
    return rows[-1][0], statistics.median(float(seconds) for _, seconds in rows[1:] or rows)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--algorithm", action="append", choices=ALGORITHMS)
    parser.add_argument("--graph", default="rmat-18")
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--memory", default="8g")
    parser.add_argument("--cap", type=float, default=300, help="seconds for all runs of one algorithm")
    parser.add_argument("--jar", help="the jar of GraphFrames")
    parser.add_argument("--one", choices=SYSTEMS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        measure(options.one, options.algorithm[0], options)
        return
    print("| algorithm | here, s | GraphFrames, s | ratio | checksum |\n|---|--:|--:|--:|---|")
    for name in options.algorithm or ALGORITHMS:
        value, seconds = cell("paralagg", name, options)
        other, slower = ("not run", None) if options.jar is None else cell("graphframes", name, options)
        assert seconds is None or slower is None or value == other, (name, value, other)
        times = [v if s is None else f"{s:.2f}" for v, s in ((value, seconds), (other, slower))]
        ratio = "" if seconds is None or slower is None else f"{slower / seconds:.1f}"
        print(f"| {name} | {times[0]} | {times[1]} | {ratio} | {value} |", flush=True)


if __name__ == "__main__":
    main()
