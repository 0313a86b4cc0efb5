"""What every example stands on: a session, a folder for its picture, a command line.

An example is a module with a function `tell(spark, out)` that answers its question and returns the picture that it has
drawn into the folder ``out``. `run` calls it between the start and the stop of a session; a notebook starts with
`session` and runs the same lines (`examples.notebooks`).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import SparkSession

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable

CONFS = {
    "spark.sql.shuffle.partitions": "4",  # the data are small
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}
DELTA_CONFS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.databricks.delta.snapshotPartitions": "2",  # 50 by default, for logs of many files
}


def session(name: str, *, with_delta: bool = False, over_connect: bool = False) -> SparkSession:
    """A Spark session of this machine's cores that knows recursion, and Delta tables if it has to.

    ``over_connect``: a client of Spark Connect, and the server that PySpark starts for it.
    """
    if over_connect:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of the server's workers
        return ra.configure(SparkSession.builder.remote("local[*]")).getOrCreate()
    builder = SparkSession.builder.master("local[*]").appName(name)
    for key, value in {**CONFS, **(DELTA_CONFS if with_delta else {})}.items():
        builder = builder.config(key, value)
    builder = ra.configure(builder)
    if with_delta:
        from delta import configure_spark_with_delta_pip  # noqa: PLC0415 - one example needs it

        builder = configure_spark_with_delta_pip(builder)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def run(
    about: str, tell: Callable[[SparkSession, Path], Path], *, with_delta: bool = False, over_connect: bool = False
) -> None:
    """Run an example from the command line; ``about`` is its docstring."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("demo-output"), help="folder of the picture")
    out = parser.parse_args().out
    spark = session(about.partition(":")[0], with_delta=with_delta, over_connect=over_connect)
    try:
        print(f"\nPicture: {tell(spark, out)}")
    finally:
        spark.stop()
