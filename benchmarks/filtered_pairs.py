"""``src = 7`` on all pairs of a road network, beside a query from that one source.

    python -m benchmarks.filtered_pairs [--side 141] [--repeat 7]

Both are recursions over the same grid of roads; the first is filtered afterwards, and Catalyst's rule ``PushKeyFilter``
takes the filter into its base. Whole queries, warm, in one session, in turn; minimum and median of seconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import SparkSession

import pyspark_paralagg as ra
from benchmarks.generators import grid

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

SOURCE = 7


def all_pairs(edges: DataFrame) -> DataFrame:
    """Distances of all pairs, of which the query wants those from one source."""
    more = edges.toDF("s", "t", "w")
    pairs = edges.toDF("src", "dst", "dist").recursive_agg(
        ["src", "dst"],
        {"dist": "min"},
        step=lambda d: d.join(more, d.dst == more.s).select(
            d.src, more.t.alias("dst"), (d.dist + more.w).alias("dist")
        ),
        assume="w >= 0",
    )
    return pairs.where(f"src = {SOURCE}")


def single_source(edges: DataFrame) -> DataFrame:
    """The same distances, asked for as one knows it."""
    first = edges.where(f"src = {SOURCE}").selectExpr("dst AS node", "weight AS dist")
    return first.recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.weight).alias("dist")
        ),
        assume="weight >= 0",
    )


def timed(query: Callable[[DataFrame], DataFrame], edges: DataFrame) -> tuple[float, int]:
    """Seconds from the call to the last row, and how many rows."""
    began = time.perf_counter()
    rows = query(edges).selectExpr("count(*)", "sum(dist)").first()
    assert rows is not None
    return time.perf_counter() - began, rows[0]


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--side", type=int, default=141, help="vertices along one side of the grid")
    parser.add_argument("--repeat", type=int, default=7)
    args = parser.parse_args()
    spark = ra.configure(SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")).getOrCreate()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "roads.parquet")
        table = pa.table(dict(zip(("src", "dst", "weight"), grid(args.side), strict=True)))
        spark.createDataFrame(table).coalesce(1).write.parquet(path)
        edges = spark.read.parquet(path)
        seconds: dict[str, list[float]] = {"all pairs where src = 7": [], "from 7": []}
        for turn in range(args.repeat + 2):
            found = [timed(all_pairs, edges), timed(single_source, edges)]
            assert found[0][1] == found[1][1], found
            if turn > 1:  # the first two warm up
                for own, (took, _) in zip(seconds.values(), found, strict=True):
                    own.append(took)
    for name, own in seconds.items():
        print(f"{name:24} {min(own):.3f} s at best, {statistics.median(own):.3f} s in the middle")
    spark.stop()


if __name__ == "__main__":
    main()
