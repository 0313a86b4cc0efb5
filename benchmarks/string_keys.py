"""Components over keys that are strings, beside Spark's `distinct` of the same keys and DuckDB.

    python -m benchmarks.string_keys [--vertices 950000] [--links 1500000] [--runs 4]

The keys are e-mail addresses with equal beginnings; links are taken both ways by a union. Each system runs the query so
many times in one session; the last run counts. `numbers` is this project on the same graph with numbers as keys.
"""
# ruff: noqa: S608 (what goes into these statements is our own: a path in the cache)

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pyspark_paralagg as ra
from benchmarks.datasets import DEFAULT_CACHE
from benchmarks.systems.duckdb_using_key import THREADS
from benchmarks.systems.spark_session import builder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

SEED = 7
FIRST = ("anna", "ben", "carla", "daniel", "eva", "frank", "gina", "hans", "ida", "jan")
LAST = ("mueller", "schmidt", "schneider", "fischer", "weber", "meyer", "wagner", "becker")
HOSTS = ("gmail.com", "example.org", "web.de", "outlook.com", "company-mail.example.net")
_DUCKDB = """
    WITH RECURSIVE component(v, label) USING KEY (v, min(label)) AS (
        SELECT src, src FROM link
        UNION
        SELECT l.dst, min(c.label) FROM component c JOIN link l ON c.v = l.src GROUP BY l.dst)
    SELECT count(*), max(label) FROM component"""


def address(number: int) -> str:
    """Return the e-mail address of a vertex."""
    name = f"{FIRST[number % len(FIRST)]}.{LAST[number // len(FIRST) % len(LAST)]}{number}"
    return f"{name}@{HOSTS[number % len(HOSTS)]}"


def write(folder: Path, vertices: int, links: int) -> None:
    """Write the links with strings, and with numbers, as Parquet files."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(SEED)
    names = np.array([address(n) for n in range(vertices)], dtype=object)
    src, dst = draw.integers(0, vertices, links), draw.integers(0, vertices, links)
    rows = max(1, links // 6)
    pq.write_table(pa.table({"src": names[src], "dst": names[dst]}), folder / "strings.parquet", row_group_size=rows)
    pq.write_table(pa.table({"src": src, "dst": dst}), folder / "numbers.parquet", row_group_size=rows)


def both_ways(spark: SparkSession, file: Path) -> DataFrame:
    """Return the links and their reverses."""
    links = spark.read.parquet(str(file))
    return links.union(links.select(links.dst.alias("src"), links.src.alias("dst")))


def components(links: DataFrame) -> int:
    """Return the number of vertices; all labels are computed."""
    found = links.select(links.src.alias("node"), links.src.alias("label")).recursive_agg(
        "node",
        {"label": "min"},
        step=lambda c: c.join(links, c.node == links.src).select(links.dst.alias("node"), c.label),
        backend="spark",
    )
    count, _ = found.selectExpr("count(*)", "max(label)").first() or (0, None)
    return int(count)


def in_duckdb(file: Path) -> int:
    """Return the number of vertices by DuckDB, in the best form of `systems/duckdb_using_key.py`."""
    connection = duckdb.connect()
    connection.execute(f"SET threads = {THREADS}")
    connection.execute(f"CREATE VIEW one AS SELECT src, dst FROM '{file}'")
    connection.execute("CREATE TEMP TABLE link AS SELECT src, dst FROM one UNION ALL SELECT dst, src FROM one")
    found = connection.execute(_DUCKDB).fetchone()
    return int(found[0]) if found else 0


def last_seconds(query: Callable[[], int], runs: int) -> tuple[float, int]:
    """Return the seconds of the last run, and its answer."""
    seconds, answer = 0.0, 0
    for _ in range(runs):
        began = time.perf_counter()
        answer = query()
        seconds = time.perf_counter() - began
    return seconds, answer


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.string_keys", description=__doc__.splitlines()[0])
    parser.add_argument("--vertices", type=int, default=950_000)
    parser.add_argument("--links", type=int, default=1_500_000)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--memory", default="8g")
    options = parser.parse_args()
    folder = DEFAULT_CACHE.absolute() / f"addresses-{options.vertices}-{options.links}"
    if not (folder / "numbers.parquet").exists():
        write(folder, options.vertices, options.links)
    spark = ra.configure(builder(options.memory)).getOrCreate()
    strings, numbers = both_ways(spark, folder / "strings.parquet"), both_ways(spark, folder / "numbers.parquet")
    systems: dict[str, Callable[[], int]] = {
        "paralagg": lambda: components(strings),
        "paralagg, numbers": lambda: components(numbers),
        "Spark's distinct": lambda: strings.select("src").distinct().count(),
        "DuckDB": lambda: in_duckdb(folder / "strings.parquet"),
    }
    for name, query in systems.items():
        seconds, answer = last_seconds(query, 2 if name == "DuckDB" else options.runs)
        print(f"{name}: {seconds:.2f} s, {answer:,} vertices", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
