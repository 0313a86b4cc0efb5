"""Make the archive of loaded Java classes that the JVMs of tests share (``jvm_options.ARCHIVE``).

By Java's dynamic application class-data sharing: the JVM writes at its end what it has loaded. It holds Spark's own
classes; those of jars that a session adds (the shim, Delta) have a class loader that such archives leave out.
"""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TYPE_CHECKING

from jvm_options import ARCHIVE, QUICK, QUIET, VARIABLE
from stage import session

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
        os.chdir(folder)
        # Executors without the driver's options: they would write the same file.
        confs = {"spark.executor.extraJavaOptions": QUICK, "spark.ui.showConsoleProgress": "false"}
        spark = session("local-cluster[1,2,1024]", confs)
        _use(spark)
        gateway = spark.sparkContext._gateway
        spark.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(_WRITTEN_WITHIN_SECONDS)
        os.chdir(ARCHIVE.parent)
    if unfinished.exists():
        unfinished.rename(ARCHIVE)
    else:
        print("This Java has written no archive of classes: the JVMs of tests start more slowly.")  # noqa: T201


def _use(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(1, 2, 3.0, "a"), (2, 3, 4.0, "b")], "src long, dst long, w double, name string")
    rows.write.parquet("rows")
    edges = spark.read.parquet("rows")
    edges.createOrReplaceTempView("edges")
    edges.groupBy("name").agg({"w": "max"}).orderBy("name").collect()
    edges.alias("a").join(edges.alias("b"), on="src").distinct().toPandas()
    spark.sql("SELECT src, row_number() OVER (PARTITION BY dst ORDER BY w) FROM edges WHERE w > 1 LIMIT 5").collect()
    edges.mapInArrow(lambda parts: parts, edges.schema).count()
    ra.graph.shortest_paths(edges, sources=[1], weight="w").collect()
    edges.write.mode("overwrite").json("json")


if __name__ == "__main__":
    make()
