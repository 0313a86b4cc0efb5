"""Run cancellation, Ctrl-C, three queries at once, waiting for slots on local[2], and report what each leaves."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes import confs, iterations_now, left_after, metrics_now, shuffle_files, shuffle_files_after_collection
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark import InheritableThread
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from queries import (
    chain,
    chain_total,
    endless_growth,
    endless_rounds,
    one_long_iteration,
    paths,
    scattered_distances,
    scattered_edges,
    total,
)
from scala_objects import ENGINE
from spark_versions import CANCELLED, INTERRUPTED
from stage import print_facts, session, wait_until

import pyspark_paralagg as ra
from pyspark_paralagg.command.failure import interruption
from pyspark_paralagg.session.condition import condition_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

VERTICES = 5000
BUSY_MILLIS = 5000
BEFORE: dict[str, str] = {}


def success(spark: SparkSession) -> dict[str, Any]:
    """A run leaves nothing, and no shuffle file once the DataFrame is collected."""
    right = total(chain(spark, 200, backend="spark")) == chain_total(200)
    wrote = len(shuffle_files(spark))
    return {"right": right, "left": left_after(spark), "wrote": wrote, "kept": shuffle_files_after_collection(spark)}


def cancelled_in_rounds(spark: SparkSession) -> dict[str, Any]:
    """Cancel rounds by job group, without interrupts."""
    return cancelled(spark, endless_rounds(spark), interrupt=False)


def cancelled_in_rounds_with_interrupts(spark: SparkSession) -> dict[str, Any]:
    """Cancel rounds by job group, with interrupts."""
    return cancelled(spark, endless_rounds(spark), interrupt=True)


def cancelled_in_place(spark: SparkSession) -> dict[str, Any]:
    """Cancel a loop without rounds, without interrupts."""
    return cancelled(spark, endless_growth(spark), interrupt=False)


def cancelled_in_one_long_iteration(spark: SparkSession) -> dict[str, Any]:
    """Cancel an iteration that has no meeting for many seconds."""
    return cancelled(spark, one_long_iteration(spark), interrupt=False, started=lambda: time.sleep(2.5))


def cancelled_while_it_waits(spark: SparkSession) -> dict[str, Any]:
    """Cancel a gang of which one task may not have started, because one of two slots is busy."""
    with Busy(spark):
        return cancelled(spark, endless_rounds(spark), interrupt=False, started=lambda: time.sleep(1))


def cancelled_between_checkpoints(spark: SparkSession) -> dict[str, Any]:
    """Cancel a run that writes a checkpoint in every round, so probably while one is written."""
    folder = Path("checkpoints").absolute()
    ra.attach(spark, {"spark.paralagg.checkpoint.dir": folder.as_uri()})
    spark.conf.set("spark.paralagg.checkpoint.interval", "1")
    facts = cancelled(spark, endless_rounds(spark), interrupt=False)
    ra.attach(spark, dict.fromkeys(("spark.paralagg.checkpoint.dir", "spark.paralagg.checkpoint.interval")))
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not list(folder.iterdir()), 5, "checkpoints are gone")
    return {**facts, "kept": sorted(str(p.relative_to(folder)) for p in folder.rglob("*"))}


def cancelled(
    spark: SparkSession, df: DataFrame, *, interrupt: bool, started: Callable[[], Any] | None = None
) -> dict[str, Any]:
    """Cancel a query from another thread. Return when its caller and tasks end, its error, and what is left."""
    sc = spark.sparkContext
    spark.conf.set("spark.sql.execution.interruptOnCancel", str(interrupt).lower())
    outcome: dict[str, Any] = {"raised": ""}

    def query() -> None:
        sc.setJobGroup("to-cancel", "an endless recursion", interruptOnCancel=interrupt)
        try:
            df.count()
        except Exception as problem:  # noqa: BLE001 - the text is the fact
            outcome["raised"] = str(problem)
        outcome["back"] = time.monotonic()

    thread = InheritableThread(target=query)
    thread.start()
    if started is None:
        wait_until(lambda: iterations_now(spark) > 0, 60, "the loop runs")
    else:
        started()
    assert thread.is_alive()
    cancelled_at = time.monotonic()
    sc.cancelJobGroup("to-cancel")
    # The slots are free when the tasks have ended, which may be after the caller is back.
    running = spark.sparkContext._jsc.sc().taskScheduler()
    thread.join(60)
    free = wait_until(lambda: running_tasks(running) <= Busy.tasks, 60, "the tasks have ended")
    spark.conf.unset("spark.sql.execution.interruptOnCancel")
    back = outcome["back"] - cancelled_at
    print(f"cancelled: caller back after {back:.3f} s, slots free {free:.3f} s later", file=sys.stderr)  # noqa: T201
    return {
        "back": back,
        "free": back + free,
        "is_cancelled": CANCELLED in outcome["raised"],
        "left": None if Busy.tasks else left_after(spark),
        "next_is_right": Busy.tasks > 0 or total(chain(spark, 20, backend="spark")) == chain_total(20),
    }


def running_tasks(scheduler: Any) -> int:  # noqa: ANN401 - a py4j object
    """Return the number of tasks that hold a slot."""
    return int(scheduler.rootPool().runningTasks())


class Busy:
    """An ordinary task that sleeps in one of the two slots."""

    tasks = 0

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark

    def __enter__(self) -> None:
        sleep = f"reflect('java.lang.Thread', 'sleep', {BUSY_MILLIS}L)"
        df = self.spark.range(0, 1, 1, 1).selectExpr(sleep)
        self.thread = InheritableThread(target=df.collect)
        self.thread.start()
        scheduler = self.spark.sparkContext._jsc.sc().taskScheduler()
        wait_until(lambda: running_tasks(scheduler) == 1, 20, "the ordinary task runs")
        Busy.tasks = 1

    def __exit__(self, *_: object) -> None:
        self.thread.join()
        Busy.tasks = 0


def waiting_for_slots(spark: SparkSession) -> dict[str, Any]:
    """Run a gang of two beside an ordinary task: it reports that it waits, and its rows are right."""
    with Busy(spark):
        started_at = time.monotonic()
        right = total(chain(spark, 50, name="patience", backend="spark")) == chain_total(50)
        return {"right": right, "seconds": time.monotonic() - started_at}


def interrupted(spark: SparkSession) -> dict[str, Any]:
    """Press Ctrl-C while the main thread waits for a result."""
    pressed: list[float] = []

    def press() -> None:
        wait_until(lambda: iterations_now(spark) > 0, 60, "the loop runs")
        pressed.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)

    df = endless_rounds(spark)
    thread = threading.Thread(target=press)
    thread.start()
    is_raised = False
    try:
        df.count()
    except INTERRUPTED:
        is_raised = True
    back = time.monotonic() - pressed[0]
    thread.join()
    # The call that Ctrl-C broke leaves py4j a connection that it may find dead only at the next call, which then fails.
    with contextlib.suppress(Py4JNetworkError):
        spark.sparkContext.statusTracker()
    tracker = spark.sparkContext.statusTracker()
    try:
        ended = wait_until(lambda: not tracker.getActiveJobsIds(), 3, "the job is cancelled")
    except TimeoutError:
        ended = None
        spark.sparkContext.cancelAllJobs()
    return {
        "raised": is_raised,
        "back": back,
        "job_ended": ended,
        "left": left_after(spark),
        "next_is_right": total(chain(spark, 20, backend="spark")) == chain_total(20),
    }


def interrupted_dataframes(spark: SparkSession) -> dict[str, Any]:
    """Press Ctrl-C at several moments of a recursion on plain DataFrames."""
    raised, left = [], []
    for seconds in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0):
        timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            chain(spark, 500, backend="dataframe")
        except (Py4JError, OSError):  # py4j's own, if the interrupt comes between two calls
            raised.append(seconds)
        except BaseException as problem:
            # PySpark's clean-up of a socket that it had not opened yet raises an error of its own.
            if interruption(problem) is None:
                raise
            raised.append(seconds)
        timer.join()
        with contextlib.suppress(Py4JError):  # a dead connection, if the recursion had not begun
            spark.sparkContext.statusTracker()
        left += left_after(spark)["persisted"]
    return {"raised": raised, "left": left}


def three_at_once(spark: SparkSession) -> dict[str, Any]:
    """Run three gangs of two tasks from three threads in two slots, three times."""
    expected = scattered_distances(VERTICES)
    edges = scattered_edges(spark, VERTICES)
    results: dict[int, bool] = {}

    def query(start: int) -> None:
        base = spark.range(1).selectExpr("id as node", f"{start}L as dist")
        rows = {r.node: r.dist - start for r in paths(base, edges, backend="spark").collect()}
        results[start] = rows == expected

    for round_ in range(3):
        threads = [InheritableThread(target=query, args=(3 * round_ + i,)) for i in range(3)]
        for t in threads:
            t.start()
        for t in threads:
            t.join(60)
    return {"right": [results.get(i) for i in range(9)], "left": left_after(spark)}


def rdd_beside_other_jobs(spark: SparkSession) -> dict[str, Any]:
    """Run a fixpoint outside of SQL executions beside other jobs, which must not end it."""
    jdf = chain(spark, 100_000, backend="spark")._jdf
    counts: list[int] = []
    thread = InheritableThread(target=lambda: counts.append(int(jdf.rdd().count())))
    thread.start()
    while thread.is_alive():
        spark.sparkContext._jsc.sc().range(0, 10, 1, 2).count()
    thread.join()
    return {"right": counts == [100_001], "left": left_after(spark)}


def error_at_the_limit(spark: SparkSession) -> dict[str, Any]:
    """Raise the error of `on_limit="error"` in the engine."""
    return error(spark, lambda: chain(spark, 50, max_iterations=10, backend="spark").collect())


def error_of_a_cycle(spark: SparkSession) -> dict[str, Any]:
    """Count paths on a cycle."""
    edges = spark.createDataFrame([(0, 1), (1, 2), (2, 0)], "src long, dst long")
    base = spark.range(1).selectExpr("id as node", "1L as paths")

    def run() -> Any:  # noqa: ANN401 - never returns
        return base.recursive_agg(
            "node",
            {"paths": "sum"},
            step=lambda p: p.join(edges, p.node == edges.src).select(
                edges.dst.alias("node"), (p.paths * 1).alias("paths")
            ),
            backend="spark",
        ).collect()

    return error(spark, run)


def error_of_arithmetic(spark: SparkSession) -> dict[str, Any]:
    """Overflow a sum in an expression of the step, in ANSI mode."""
    edges = spark.range(10).selectExpr("id as src", "id + 1 as dst", "4611686018427387904L as w")
    base = spark.range(1).selectExpr("id as node", "0L as dist")
    spark.conf.set("spark.sql.ansi.enabled", "true")  # the default from Spark 4.0 on
    found = error(spark, lambda: paths(base, edges, backend="spark").collect())
    spark.conf.unset("spark.sql.ansi.enabled")
    return found


def error(spark: SparkSession, run: Callable[[], Any]) -> dict[str, Any]:
    """Return the error, and what is left. Spark must not have retried the stage."""
    started_at = time.monotonic()
    try:
        run()
    except Exception as problem:  # noqa: BLE001 - the text is the fact
        raised = f"{condition_of(problem)}: {problem}"
    else:
        raised = ""
    return {"raised": raised[:600], "seconds": time.monotonic() - started_at, "left": left_after(spark)}


def more_partitions_than_slots(spark: SparkSession) -> dict[str, Any]:
    """Configure 200 partitions; the gang uses the slots that there are, with AQE and without."""
    results = []
    for aqe in ("true", "false"):
        spark.conf.set("spark.sql.shuffle.partitions", "200")
        spark.conf.set("spark.sql.adaptive.enabled", aqe)
        df = chain(spark, 100, backend="spark")
        results.append([total(df) == chain_total(100), df.rdd.getNumPartitions()])
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    return {"found": results, "is_alive": spark.range(3).count() == 3}


def live_metrics(spark: SparkSession) -> dict[str, Any]:
    """Return the metrics in the SQL tab after a run."""
    df = chain(spark, 5000, backend="spark")
    df.select(F.sum("dist")).collect()
    report = ra.report(df)
    assert report is not None
    wait_until(
        lambda: iterations_now(spark, over=True) == report.iterations, 10, "the metric says what the report says"
    )
    return {"iterations": iterations_now(spark, over=True)}


def events(spark: SparkSession) -> list[dict[str, Any]]:
    """Return the event log of a run that succeeds and of one that fails."""
    chain(spark, 60, name="logged", backend="spark").count()
    with contextlib.suppress(Exception):  # it reaches its limit
        chain(spark, 60, name="logged", max_iterations=10, backend="spark").collect()

    def logged() -> list[dict[str, Any]]:
        files = [file for file in Path("events").rglob("[!.]*") if file.is_file()]  # checksums have names with a dot
        lines = [line for file in files for line in file.read_bytes().splitlines(keepends=True)]
        complete = [line for line in lines if line.endswith(b"\n")]
        ours = [json.loads(line) for line in complete if ENGINE.encode() in line]
        return [e for e in ours if e["Event"].startswith(f"{ENGINE}.") and e["name"] == "logged"]

    wait_until(lambda: sum(e["Event"].endswith("Ended") for e in logged()) == 2, 20, "both have ended")
    return logged()


def while_it_runs(spark: SparkSession) -> dict[str, Any]:
    """Return what the jobs page and the SQL tab show during a run; also check the jobs page after it."""
    sc = spark.sparkContext
    df = endless_rounds(spark)

    def query() -> None:
        sc.setJobGroup("shown", "my own words", interruptOnCancel=False)
        with contextlib.suppress(Exception):  # it is cancelled
            df.count()

    def described() -> str:
        return str(sc._jsc.sc().statusStore().job(job).description().get())

    thread = InheritableThread(target=query)
    thread.start()
    wait_until(lambda: iterations_now(spark) > 0, 60, "the loop runs")
    job = sc.statusTracker().getJobIdsForGroup("shown")[0]
    wait_until(lambda: "iteration" in described(), 10, "the description says how far it is")
    first, iterations = described(), iterations_now(spark)
    metrics = metrics_now(spark)
    wait_until(lambda: described() != first, 10, "the description moves")
    wait_until(lambda: iterations_now(spark) > iterations, 10, "the metric moves")
    sc.cancelJobGroup("shown")
    thread.join()
    wait_until(lambda: described() == "my own words", 10, "the description is the user's again")
    return {"first": first, "metrics": metrics}


def confs_are_as_before(spark: SparkSession) -> dict[str, list[str]]:
    """Return the confs that the runs have changed."""
    return {k: [BEFORE.get(k, ""), v] for k, v in confs(spark).items() if BEFORE.get(k) != v}


if __name__ == "__main__":
    Path("events").mkdir()
    confs_of_logs = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": Path("events").absolute().as_uri(),
        "spark.eventLog.compress": "false",
    }
    spark = session("local[2]", {"spark.sql.adaptive.enabled": "true", "spark.driver.memory": "2g", **confs_of_logs})
    BEFORE.update(confs(spark))
    print_facts(
        spark,
        success,
        live_metrics,
        events,
        while_it_runs,
        cancelled_in_rounds,
        cancelled_in_rounds_with_interrupts,
        cancelled_in_place,
        cancelled_in_one_long_iteration,
        cancelled_while_it_waits,
        cancelled_between_checkpoints,
        waiting_for_slots,
        interrupted,
        interrupted_dataframes,
        three_at_once,
        rdd_beside_other_jobs,
        error_at_the_limit,
        error_of_a_cycle,
        error_of_arithmetic,
        more_partitions_than_slots,
        confs_are_as_before,
    )
    spark.stop()
