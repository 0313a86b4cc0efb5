"""What watching costs: 600 rounds of about a millisecond, alone, with progress bars, and with a listener.

    python -m benchmarks.watching [--runs 9] [--iterations 600]

The rounds are PageRank's on a random graph, without damping. Runs take turns, so that what else the machine
does meets all of them; the medians are compared, of the loop (``ra.report``) and of the whole call. Spark's UI is on,
and its metrics move in every run: they have no switch.
"""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import nullcontext, redirect_stderr
from io import StringIO
from statistics import median
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from pyspark.sql import DataFrame

VERTICES = 4_000
EDGES_A_VERTEX = 8
PART = f"{1 / EDGES_A_VERTEX}D"
"""Without damping nothing fades, so that each round has the same work."""
WARMING = 3

WAYS: dict[str, Callable[[], AbstractContextManager[None]]] = {
    "alone": nullcontext,
    "bars": ra.progress,
    "listener": lambda: ra.progress(lambda _: None),
}


def rounds(spark: SparkSession, iterations: int) -> DataFrame:
    """Ranks after so many rounds; each changes every rank."""
    edges = spark.range(VERTICES * EDGES_A_VERTEX).selectExpr(
        f"id % {VERTICES} as src", f"pmod(xxhash64(id), {VERTICES}) as dst"
    )
    base = spark.range(VERTICES).selectExpr("id as node", "0.15D as rank")
    return base.recursive_agg(
        "node",
        {"rank": "sum"},
        step=lambda r: r.join(edges, r.node == edges.src).selectExpr("dst as node", f"{PART} * rank as rank"),
        max_iterations=iterations,
        on_limit="return",
        name="rank",
        backend="spark",
    )


def timed(spark: SparkSession, iterations: int, way: str) -> tuple[float, float]:
    """Seconds of the loop and of the call; bars are drawn, but not on the screen."""
    found = rounds(spark, iterations)
    with redirect_stderr(StringIO()):
        began = time.perf_counter()
        with WAYS[way]():
            found.count()
        whole = time.perf_counter() - began
    report = ra.report(found)
    assert report is not None
    assert report.iterations == iterations
    return report.seconds["loop"], whole


def main() -> int:
    """Print a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument("--iterations", type=int, default=600)
    options = parser.parse_args()
    builder = SparkSession.builder.master("local[2]").config("spark.sql.shuffle.partitions", "2")
    builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.paralagg.progress", "on")
    spark = ra.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    for _ in range(WARMING):
        for way in WAYS:
            timed(spark, options.iterations, way)
    seconds: dict[str, list[tuple[float, float]]] = {way: [] for way in WAYS}
    for run in range(options.runs):
        ways = list(WAYS)
        for way in ways[run % len(ways) :] + ways[: run % len(ways)]:
            seconds[way].append(timed(spark, options.iterations, way))
    alone = [median(column) for column in zip(*seconds["alone"], strict=True)]
    print(f"{options.iterations} iterations, medians of {options.runs} runs")
    for way, found in seconds.items():
        loop, whole = (median(column) for column in zip(*found, strict=True))
        more = f"{loop / alone[0] - 1:+.1%} and {whole / alone[1] - 1:+.1%}"
        print(
            f"{way:9} loop {loop:.3f} s ({1000 * loop / options.iterations:.2f} ms each), whole {whole:.3f} s: {more}"
        )
    spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
