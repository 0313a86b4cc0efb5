"""Inspect a running application: the progress of a run, and what runs have left behind.

The functions read the JVM through py4j, because Spark and the engine have no Python API for most of this.
"""

from __future__ import annotations

import contextlib
import gc
import re
import subprocess
from typing import TYPE_CHECKING, Any

from scala_objects import ENGINE, scala_object
from stage import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ASK_EXECUTORS = True


def newest_query(spark: SparkSession) -> int:
    """Return the execution id of the newest query that the store of Spark's UI has, or -1."""
    executions = spark._jsparkSession.sharedState().statusStore().executionsList()
    return -1 if executions.isEmpty() else int(executions.last().executionId())


def iterations_now(spark: SparkSession, *, over: bool = False) -> int:
    """Return the metric `iterations` of the running query, or (``over``) of the last one if it has ended; else 0."""
    store = spark._jsparkSession.sharedState().statusStore()
    executions = store.executionsList()
    if executions.isEmpty():
        return 0
    newest = executions.last()
    if newest.completionTime().isDefined() != over:
        return 0
    values = store.executionMetrics(newest.executionId())
    metrics = newest.metrics()
    iterations = 0
    for i in range(metrics.size()):
        metric = metrics.apply(i)  # under AQE also those of discarded plans
        if metric.name() == "iterations" and values.get(metric.accumulatorId()).isDefined():
            iterations = max(iterations, int(re.sub(r"\D", "", values.get(metric.accumulatorId()).get())))
    return iterations


def metrics_now(spark: SparkSession) -> dict[str, str]:
    """Return the metrics that the SQL tab shows for the fixpoint of the newest query."""
    store = spark._jsparkSession.sharedState().statusStore()
    newest = store.executionsList().last()
    values = store.executionMetrics(newest.executionId())
    nodes = store.planGraph(newest.executionId()).allNodes()
    fixpoint = next(n for n in (nodes.apply(i) for i in range(nodes.size())) if n.name() == "Fixpoint")
    metrics = [fixpoint.metrics().apply(i) for i in range(fixpoint.metrics().size())]
    values_by_name = {m.name(): values.get(m.accumulatorId()) for m in metrics}
    return {name: str(value.get()) for name, value in values_by_name.items() if value.isDefined()}


def sessions_in_executors(spark: SparkSession) -> list[int]:
    """Return the number of live gang sessions in the JVM of each task's executor."""
    count = f"reflect('{ENGINE}.gang.GangSession', 'liveCount') as n"
    return [int(row.n) for row in spark.range(0, 8, 1, 8).selectExpr(count).collect()]


def confs(spark: SparkSession) -> dict[str, str]:
    """Return the session's confs."""
    return {row.key: row.value for row in spark.sql("SET").collect()}


def block_manager(spark: SparkSession) -> Any:  # noqa: ANN401 - an object of the JVM
    """Return the driver's block manager, from the field: py4j loads all types of a class whose method it calls.

    Those of ``SparkEnv`` are not all there in Spark 4.3.
    """
    assert spark._jvm is not None
    field = spark._jvm.java.lang.Class.forName("org.apache.spark.SparkEnv").getDeclaredField("blockManager")
    field.setAccessible(True)
    return field.get(spark.sparkContext._jsc.sc().env())


def left_behind(spark: SparkSession) -> dict[str, Any]:
    """Return all that runs may leave in the driver's JVM: empty lists and zeros if they left nothing."""
    entries = block_manager(spark).blockInfoManager().entries()
    blocks = []
    while entries.hasNext():
        blocks.append(entries.next()._1().name())
    threads = [t.getName() for t in spark._jvm.Thread.getAllStackTraces().keySet()]
    return {
        "persisted": sorted(str(k) for k in spark.sparkContext._jsc.getPersistentRDDs()),
        "sessions": scala_object(spark, "gang.GangSession").liveCount(),
        "runs": scala_object(spark, "driver.RunRegistry").liveCount(),
        "threads": sorted(t for t in threads if "paralagg" in t.lower()),
        "blocks": sorted(b for b in blocks if re.match(r"broadcast_\d+_g_", b)),
        "jobs": list(spark.sparkContext.statusTracker().getActiveJobsIds()),
    }


NOTHING = {"persisted": [], "sessions": 0, "runs": 0, "threads": [], "blocks": [], "jobs": []}


def left_after(spark: SparkSession, seconds: float = 5) -> dict[str, Any]:
    """Return what is left after ``seconds``: Spark notifies listeners of a query's end after its caller."""
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: left_behind(spark) == NOTHING, seconds, "all is cleared away")
    return left_behind(spark)


def shuffle_files(spark: SparkSession) -> list[str]:
    """Return the shuffle files of the driver's (in local mode, the only) block manager."""
    files = block_manager(spark).diskBlockManager().getAllFiles()
    names = [files.apply(i).getName() for i in range(files.size())]
    return sorted(name for name in names if name.startswith("shuffle_"))


def shuffle_files_after_collection(spark: SparkSession, seconds: float = 15) -> list[str]:
    """Return the shuffle files that remain after both garbage collectors ran."""

    def all_gone() -> bool:
        gc.collect()
        spark._jvm.System.gc()
        return not shuffle_files(spark)

    with contextlib.suppress(TimeoutError):
        wait_until(all_gone, seconds, "shuffle files are gone")
    return shuffle_files(spark)


def broadcast_id(spark: SparkSession) -> int:
    """Return the id that the next broadcast would have had."""
    broadcast = spark.sparkContext.broadcast(0)
    number = int(broadcast._jbroadcast.id())
    broadcast.destroy()
    return number


def blocks_on_executors(spark: SparkSession, ids: range, meetings: range) -> list[str]:
    """Return blocks of gangs on two executors. All executors are queried: the driver does not know the blocks."""
    master = block_manager(spark).master()
    block_id = spark._jvm.org.apache.spark.storage.BlockId
    names = (f"broadcast_{i}_g_0_{m}_{direction}" for i in ids for m in meetings for direction in ("0_1", "1_0"))
    return [name for name in names if not master.getBlockStatus(block_id.apply(name), ASK_EXECUTORS).isEmpty()]


def executor_processes(spark: SparkSession) -> list[int]:
    """Return the process ids of this application's executors on this machine.

    Two masters give the applications that start in one second the same id. The port of the driver is its own.
    """
    pattern = f"CoarseGrainedExecutorBackend.*:{spark.sparkContext.getConf().get('spark.driver.port')} "
    run = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return [int(line) for line in run.stdout.split()]
