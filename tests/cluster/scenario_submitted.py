"""Run an application by spark-submit on a standalone cluster. ``HOW``: configure, attach, or listed (only --jars).

The package is imported before pyspark, which is a zip there: imports are usually sorted so.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING, Any

import pyspark_paralagg as ra

# isort: split
import pyspark
from probes import executor_processes
from pyspark.sql import SparkSession
from stage import print_facts, wait_until

from pyspark_paralagg.session.attach import bridge

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

HOW = sys.argv[1]
EDGES = [(1, 2, 7), (2, 3, 1), (1, 3, 9), (3, 1, 2)]
QUERY = """
WITH RECURSIVE r(node, min() AS dist) AS (
    SELECT 1, 0 UNION SELECT e.dst, r.dist + e.w FROM r JOIN edges e ON r.node = e.src)
SELECT * FROM r ORDER BY node"""
DATALOG = """
.decl e(src: number, dst: number, w: number)
.input e
.decl r(node: number, dist: number)
.output r
r(y, $MIN(d + w)) :- r(x, d), e(x, y, w).
r(1, $MIN(0)) :- e(_, _, _).
"""


def start() -> SparkSession:
    """Start the session as ``HOW`` says."""
    if HOW == "configure":
        return ra.configure(SparkSession.builder).getOrCreate()
    spark = SparkSession.builder.getOrCreate()
    return ra.attach(spark) if HOW == "attach" else spark


def surroundings(spark: SparkSession) -> dict[str, Any]:
    """Return the options of spark-submit as the session has them."""
    jars = spark.sparkContext.getConf().get("spark.jars", "").split(",")
    return {
        "extensions": spark.conf.get("spark.sql.extensions", ""),
        "jars": sorted(jar.rpartition("/")[2] for jar in jars if jar),
        "pyspark": pyspark.__file__,
        "executors": spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1,
    }


def extension(spark: SparkSession) -> int:
    """Call the user's extension on the driver."""
    return spark.sql("SELECT mine()").first()[0]


def function(spark: SparkSession) -> int:
    """Call the user's class on the executors."""
    spark.udf.registerJavaFunction("square", "mine.Square", "bigint")
    return spark.range(4).selectExpr("sum(square(id))").first()[0]


def on(backend: str) -> Callable[[SparkSession], dict[str, Any]]:
    def fact(spark: SparkSession) -> dict[str, Any]:
        result = paths(spark, backend=backend)
        return {"rows": rows(result), "by": ra.report(result).backend}

    fact.__name__ = backend
    return fact


def sql(spark: SparkSession) -> list[list[int]]:
    """Run a recursion in SQL."""
    edges(spark).createOrReplaceTempView("edges")
    return [list(row) for row in spark.sql(QUERY).collect()]


def sql_refused(spark: SparkSession) -> str:
    """Return the error of recursive SQL in a session without the extension."""
    try:
        return str(sql(spark))
    except Exception as problem:  # noqa: BLE001 - any error is a fact
        return str(problem)


def datalog(spark: SparkSession) -> list[list[int]]:
    """Run a recursion as a Datalog text."""
    return rows(ra.datalog(spark, DATALOG, e=edges(spark))["r"])


def restarting(spark: SparkSession) -> dict[str, Any]:
    """Define a recursion on the Spark engine while executors restart."""
    shim = bridge(spark)
    for process in executor_processes(spark):
        os.kill(process, signal.SIGKILL)
    wait_until(lambda: shim.slots(spark._jsparkSession) == 0, 60, "the loss of all executors")
    result = paths(spark, backend="spark")
    return {"rows": rows(result), "by": ra.report(result).backend}


def edges(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(EDGES, "src bigint, dst bigint, w bigint")


def paths(spark: SparkSession, **options: str) -> DataFrame:
    e = edges(spark)
    return spark.createDataFrame([(1, 0)], "node bigint, dist bigint").recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node"), (d.dist + e.w).alias("dist")),
        **options,
    )


def rows(df: DataFrame) -> list[list[int]]:
    return sorted(list(row) for row in df.collect())


def main() -> None:
    spark = start()
    spark.sparkContext.setLogLevel("WARN")
    print_facts(spark, extension, function, on("spark"), datalog, sql_refused if HOW == "attach" else sql)
    if HOW != "listed":
        wait_until(lambda: surroundings(spark)["executors"] == 2, 60, "two executors")
        print_facts(spark, on("dataframe"), on("local"), on("mpi"))
    print_facts(spark, surroundings)
    if HOW == "listed":
        print_facts(spark, restarting)
    spark.stop()


main()
