"""A result written to a Delta table, and a recursion over that table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession
from queries import chain, chain_total, paths, total
from stage import CONFS, tell

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from typing import Any


def delta(spark: SparkSession) -> dict[str, Any]:
    """Write, read, recurse over what was read."""
    path = str(Path("paths.delta").absolute())
    chain(spark, 30, backend="spark").write.format("delta").save(path)
    kept = spark.read.format("delta").load(path)
    edges = kept.selectExpr("node as src", "node + 1 as dst", "1L as w")
    again = paths(kept.where("node = 0"), edges, backend="spark")
    return {"kept": total(kept) == chain_total(30), "again": total(again) == chain_total(31)}


if __name__ == "__main__":
    builder = SparkSession.builder.master("local[2]")
    confs = {
        **CONFS,
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    }
    for key, value in confs.items():
        builder = builder.config(key, value)
    spark = configure_spark_with_delta_pip(ra.configure(builder)).getOrCreate()
    tell(spark, delta)
    spark.stop()
