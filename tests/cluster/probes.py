"""Looks into a live application: how far a run is, and what runs have left behind.

Through the JVM, since neither Spark nor the engine has a Python name for most of it.
"""

from __future__ import annotations

import contextlib
import gc
import re
import subprocess
from typing import TYPE_CHECKING, Any

from stage import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASK_EXECUTORS = True
ENGINE = "org.apache.spark.sql.paralagg"


def iterations_now(spark: SparkSession, *, over: bool = False) -> int:
    """The metric `iterations` of the query that runs now, or of the last one, if it is over; 0 before its loop."""
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    if executions.isEmpty():
        return 0
    newest = executions.last()
    if newest.completionTime().isDefined() != over:
        return 0
    values = store.executionMetrics(newest.executionId())
    metrics = newest.metrics()
    found = 0
    for i in range(metrics.size()):
        metric = metrics.apply(i)  # under AQE also those of plans that were given up
        if metric.name() == "iterations" and values.get(metric.accumulatorId()).isDefined():
            found = max(found, int(re.sub(r"\D", "", values.get(metric.accumulatorId()).get())))
    return found


def metrics_now(spark: SparkSession) -> dict[str, str]:
    """What the SQL tab shows at the fixpoint of the newest query, whether it is over or not."""
    store = spark._jsparkSession.sharedState().statusStore()
    newest = store.executionsList().last()
    values = store.executionMetrics(newest.executionId())
    nodes = store.planGraph(newest.executionId()).allNodes()
    fixpoint = next(n for n in (nodes.apply(i) for i in range(nodes.size())) if n.name() == "Fixpoint")
    metrics = [fixpoint.metrics().apply(i) for i in range(fixpoint.metrics().size())]
    shown = {m.name(): values.get(m.accumulatorId()) for m in metrics}
    return {name: str(value.get()) for name, value in shown.items() if value.isDefined()}


def module(spark: SparkSession, name: str) -> Any:  # noqa: ANN401 - a py4j object
    """A Scala object of the engine, in the driver."""
    loader = spark._jvm.Thread.currentThread().getContextClassLoader()
    return loader.loadClass(f"{ENGINE}.{name}$").getField("MODULE$").get(None)


def sessions_in_executors(spark: SparkSession) -> list[int]:
    """Live gang sessions in the JVM of each task's executor."""
    count = f"reflect('{ENGINE}.gang.GangSession', 'liveCount') as n"
    return [int(row.n) for row in spark.range(0, 8, 1, 8).selectExpr(count).collect()]


def confs(spark: SparkSession) -> dict[str, str]:
    """The session's confs."""
    return {row.key: row.value for row in spark.sql("SET").collect()}


def left_behind(spark: SparkSession) -> dict[str, Any]:
    """All that runs may leave in the driver's JVM; empty lists and zeros where they left nothing."""
    env = spark.sparkContext._jsc.sc().env()
    entries = env.blockManager().blockInfoManager().entries()
    blocks = []
    while entries.hasNext():
        blocks.append(entries.next()._1().name())
    threads = [t.getName() for t in spark._jvm.Thread.getAllStackTraces().keySet()]
    return {
        "persisted": sorted(str(k) for k in spark.sparkContext._jsc.getPersistentRDDs()),
        "sessions": module(spark, "gang.GangSession").liveCount(),
        "runs": module(spark, "driver.RunRegistry").liveCount(),
        "threads": sorted(t for t in threads if "paralagg" in t.lower()),
        "blocks": sorted(b for b in blocks if re.match(r"broadcast_\d+_g_", b)),
        "jobs": list(spark.sparkContext.statusTracker().getActiveJobsIds()),
    }


NOTHING = {"persisted": [], "sessions": 0, "runs": 0, "threads": [], "blocks": [], "jobs": []}


def left_after(spark: SparkSession, seconds: float = 5) -> dict[str, Any]:
    """What is still left after so long: Spark's listeners hear of a query's end a little later than its caller."""
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: left_behind(spark) == NOTHING, seconds, "all is cleared away")
    return left_behind(spark)


def shuffle_files(spark: SparkSession) -> list[str]:
    """Shuffle files of the driver's (in local mode, the only) block manager."""
    files = spark.sparkContext._jsc.sc().env().blockManager().diskBlockManager().getAllFiles()
    names = [files.apply(i).getName() for i in range(files.size())]
    return sorted(name for name in names if name.startswith("shuffle_"))


def shuffle_files_after_collection(spark: SparkSession, seconds: float = 15) -> list[str]:
    """Shuffle files once nobody holds a DataFrame any more and both garbage collectors went by."""

    def all_gone() -> bool:
        gc.collect()
        spark._jvm.System.gc()
        return not shuffle_files(spark)

    with contextlib.suppress(TimeoutError):
        wait_until(all_gone, seconds, "shuffle files are gone")
    return shuffle_files(spark)


def broadcast_id(spark: SparkSession) -> int:
    """The id that the next broadcast would have had."""
    broadcast = spark.sparkContext.broadcast(0)
    number = int(broadcast._jbroadcast.id())
    broadcast.destroy()
    return number


def blocks_on_executors(spark: SparkSession, ids: range, meetings: range) -> list[str]:
    """Blocks of gangs on two executors, all asked: senders do not tell the driver of them."""
    master = spark.sparkContext._jsc.sc().env().blockManager().master()
    block_id = spark._jvm.org.apache.spark.storage.BlockId
    names = (f"broadcast_{i}_g_0_{m}_{way}" for i in ids for m in meetings for way in ("0_1", "1_0"))
    return [name for name in names if not master.getBlockStatus(block_id.apply(name), ASK_EXECUTORS).isEmpty()]


def executor_processes(spark: SparkSession) -> list[int]:
    """Process ids of this application's executors on this machine."""
    pattern = f"CoarseGrainedExecutorBackend.*{spark.sparkContext.applicationId}"
    found = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return [int(line) for line in found.stdout.split()]
