"""A Spark driver that the campaign harms: ``python driver.py LAUNCHER``; JSON lines in and out.

In: ``{"query": backend, "length": n}``, answered by rows or an error; ``{"cancel": true}`` at any time;
``{"probe": true}``, answered by what Spark still holds.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import queue
import sys
import threading
import time
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession
from scala_objects import scala_object

import pyspark_paralagg as ra
from pyspark_paralagg.command.failure import interruption

HERE, LAUNCHER = sys.argv[1:]
CONFS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.default.parallelism": "2",
    "spark.local.dir": str(Path.cwd() / "local"),
    "spark.sql.warehouse.dir": str(Path.cwd() / "warehouse"),
    # Spark notices a stopped executor by this, which is two minutes unless it is set.
    "spark.executor.heartbeatInterval": "1s",
    "spark.network.timeout": "8s",
    "spark.network.timeoutInterval": "1s",
    "spark.paralagg.mpi.launcher": LAUNCHER,
    "spark.paralagg.mpi.ranks": "2",
    "spark.paralagg.mpi.oversubscribe": "true",
    **({"spark.paralagg.mpi.stagingDir": f"{HERE}/staging"} if LAUNCHER == "local" else {}),
}


def tell(**answer: Any) -> None:
    """Print a line."""
    print(json.dumps(answer), flush=True)


def main() -> None:
    """Answer until stdin closes."""
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for key, value in CONFS.items():
        builder = builder.config(key, value)
    spark = ra.configure(builder).getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    wanted: queue.Queue[dict[str, Any]] = queue.Queue()
    groups = [""]  # the job group of each query; the last one is that of the running query
    threading.Thread(target=read, args=(spark, wanted, groups), daemon=True).start()
    tell(ready=True)
    while True:
        try:
            message = wanted.get()
            if "query" in message:
                wait_for_slots(spark)
                groups.append(f"query-{len(groups)}")
                spark.sparkContext.setJobGroup(groups[-1], "a query of the campaign", interruptOnCancel=True)
                tell(started=True)
                tell(rows=shortest(spark, message["length"], message["query"]))
            else:
                tell(held=held(spark))
        except KeyboardInterrupt:  # noqa: PERF203 - each query is its own
            tell(error="[KEYBOARD_INTERRUPT] KeyboardInterrupt")
        except Py4JNetworkError:
            # PySpark's handler of SIGINT calls the JVM in the middle of another call of this thread.
            spark._jvm.System.nanoTime()  # raises if the JVM is lost
            tell(error="[KEYBOARD_INTERRUPT] Py4JNetworkError")
        except Exception as problem:  # noqa: BLE001 - the campaign judges it
            # PySpark's clean-up after an interrupt may raise an error of its own.
            code = "[KEYBOARD_INTERRUPT] " if interruption(problem) else ""
            tell(error=f"{code}{type(problem).__name__}: {problem}"[:4000])


def read(spark: SparkSession, wanted: queue.Queue[dict[str, Any]], groups: list[str]) -> None:
    """Cancel at once; put other messages into the queue.

    `cancelAllJobs` would do nothing if it came between two jobs of the query.
    """
    for line in sys.stdin:
        message = json.loads(line)
        if "cancel" in message:
            with contextlib.suppress(Exception):
                spark.sparkContext._jsc.sc().cancelJobGroupAndFutureJobs(groups[-1])
        else:
            wanted.put(message)
    os._exit(0)


def shortest(spark: SparkSession, length: int, backend: str) -> list[list[int]]:
    """Shortest paths along a chain."""
    edges = spark.range(length).selectExpr("id as src", "id + 1 as dst", "1L as w")
    base = spark.range(1).selectExpr("id as node", "0L as dist")
    found = base.recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.w).alias("dist")
        ),
        assume="w >= 0",
        backend=backend,
    )
    rows = sorted([row.node, row.dist] for row in found.collect())
    if backend == "dataframe":
        # The result is a local checkpoint. Spark frees the last one that nobody reads late, ours or any other.
        leaves = found._jdf.queryExecution().analyzed().collectLeaves()
        for n in range(leaves.size()):
            leaves.apply(n).rdd().unpersist(False)  # noqa: FBT003 - py4j knows no names
    return rows


def wait_for_slots(spark: SparkSession) -> None:
    """Until executors that were lost are there again: the query before may have lost one."""
    from pyspark_paralagg.session.attach import bridge  # noqa: PLC0415 - needs the session

    until = time.monotonic() + 60
    while int(bridge(spark).slots(spark._jsparkSession)) < 2 and time.monotonic() < until:
        time.sleep(0.05)


def held(spark: SparkSession) -> dict[str, Any]:
    """What Spark keeps: nothing, when no query runs."""
    gc.collect()
    spark._jvm.System.gc()  # a checkpoint whose making was interrupted is freed when Spark hears that nobody reads it
    counted = ("driver.RunRegistry", "offload.Offloads", "gang.GangSession")
    return {
        "persisted": sorted(str(k) for k in spark.sparkContext._jsc.getPersistentRDDs()),
        "jobs": list(spark.sparkContext.statusTracker().getActiveJobsIds()),
        "runs": sum(int(scala_object(spark, name).liveCount()) for name in counted),
    }


if __name__ == "__main__":
    main()
