"""A field-insensitive points-to analysis by the Spark engine and without Spark.

    python -m benchmarks.points_to [--variables 20000] [--objects 4000] [--runs 4]

Random assigns (variables - 500), loads and stores (a twentieth of the variables). Both outputs are counted. Each engine
runs the text so many times in one session; the last run counts.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pyspark_paralagg as ra
from benchmarks.datasets import DEFAULT_CACHE
from benchmarks.systems.spark_session import builder

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SEED = 11
TEXT = """
pt(v, o) :- new(v, o).
pt(v, o) :- assign(v, w), pt(w, o).
pt(v, o) :- load(v, w), pt(w, p), hpt(p, o).
hpt(p, o) :- store(v, w), pt(v, p), pt(w, o).
"""
OUTPUTS = ("pt", "hpt")
INPUTS = {"new": ("v", "o"), "assign": ("v", "w"), "load": ("v", "w"), "store": ("v", "w")}


def write(folder: Path, variables: int, objects: int) -> None:
    """Write the inputs as Parquet files. Each object is made by one variable; all else is uniform."""
    folder.mkdir(parents=True, exist_ok=True)
    draw = np.random.default_rng(SEED)
    pairs = {
        "new": (draw.integers(0, variables, objects), np.arange(objects)),
        "assign": draw.integers(0, variables, (2, variables - 500)),
        "load": draw.integers(0, variables, (2, variables // 20)),
        "store": draw.integers(0, variables, (2, variables // 20)),
    }
    for name, columns in pairs.items():
        pq.write_table(pa.table(dict(zip(INPUTS[name], columns, strict=True))), folder / f"{name}.parquet")


def count(spark: SparkSession, folder: Path, backend: str) -> tuple[list[int], float, str]:
    """Return the sizes of both outputs, the seconds of the loop, and its form."""
    frames = {name: spark.read.parquet(str(folder / f"{name}.parquet")) for name in INPUTS}
    relations = ra.datalog(spark, TEXT, frames, backend=backend)
    sizes = [relations[name].count() for name in OUTPUTS]
    report = ra.report(relations[OUTPUTS[0]])
    return sizes, report.seconds["loop"] if report else 0.0, report.form if report else ""


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.points_to", description=__doc__.splitlines()[0])
    parser.add_argument("--variables", type=int, default=20_000)
    parser.add_argument("--objects", type=int, default=4_000)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--memory", default="8g")
    options = parser.parse_args()
    folder = DEFAULT_CACHE.absolute() / f"points-to-{options.variables}-{options.objects}"
    if not (folder / "store.parquet").exists():
        write(folder, options.variables, options.objects)
    spark = ra.configure(builder(options.memory)).getOrCreate()
    for backend in ("spark", "local"):
        for _ in range(options.runs):
            began = time.perf_counter()
            sizes, loop, form = count(spark, folder, backend)
            seconds = time.perf_counter() - began
        print(
            f"{backend}: {seconds:.2f} s, loop {loop:.3f} s, {sizes[0]:,} and {sizes[1]:,} pairs ({form})", flush=True
        )
    spark.stop()


if __name__ == "__main__":
    main()
