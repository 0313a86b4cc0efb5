"""Make the archive of loaded Java classes that the JVMs of tests share (``jvm_options.ARCHIVE``).

By Java's dynamic application class-data sharing: the JVM writes at its end what it has loaded. It holds Spark's own
classes; those of jars that a session adds (the shim, Delta) have a class loader that such archives leave out.
"""

from __future__ import annotations

import os
import sys
import tempfile

from jvm_options import ARCHIVE, QUICK, QUIET, VARIABLE
from pyspark.sql import SparkSession

import pyspark_paralagg as ra

_WRITTEN_WITHIN_SECONDS = 300  # 15 on a quiet machine


def make() -> None:
    """Run a session that loads what most tests need, and wait until its JVM has written the archive.

    A Java that writes none is named, and tests run without the archive.
    """
    ARCHIVE.parent.mkdir(exist_ok=True)
    ARCHIVE.unlink(missing_ok=True)
    unfinished = ARCHIVE.with_suffix(".part")
    unfinished.unlink(missing_ok=True)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ[VARIABLE] = f"{QUICK} {QUIET} -XX:ArchiveClassesAtExit={unfinished}"
    with tempfile.TemporaryDirectory() as folder:
        spark = _session(folder)
        _use(spark, folder)
        gateway = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_WRITTEN_WITHIN_SECONDS)
    if unfinished.exists():
        unfinished.rename(ARCHIVE)
    else:
        print("This Java has written no archive of classes: the JVMs of tests start more slowly.")  # noqa: T201


def _session(folder: str) -> SparkSession:
    builder = (
        SparkSession.builder.master("local-cluster[1,2,1024]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.local.dir", f"{folder}/local")
        .config("spark.sql.warehouse.dir", f"{folder}/warehouse")
    )
    return ra.configure(builder).getOrCreate()


def _use(spark: SparkSession, folder: str) -> None:
    rows = spark.createDataFrame([(1, 2, 3.0, "a"), (2, 3, 4.0, "b")], "src long, dst long, w double, name string")
    rows.write.parquet(f"{folder}/rows")
    edges = spark.read.parquet(f"{folder}/rows")
    edges.createOrReplaceTempView("edges")
    edges.groupBy("name").agg({"w": "max"}).orderBy("name").collect()
    edges.alias("a").join(edges.alias("b"), on="src").distinct().toPandas()
    spark.sql("SELECT src, row_number() OVER (PARTITION BY dst ORDER BY w) FROM edges WHERE w > 1 LIMIT 5").collect()
    edges.mapInArrow(lambda parts: parts, edges.schema).count()
    ra.graph.shortest_paths(edges, sources=[1], weight="w").collect()
    edges.write.mode("overwrite").json(f"{folder}/json")


if __name__ == "__main__":
    make()
