"""Kill an executor with SIGKILL in the middle of the loop, without checkpoints and with them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes import executor_processes, iterations_now, left_after, newest_query, sessions_in_executors
from queries import chain, chain_total, total
from stage import print_facts, session, slots_of, wait_until

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LENGTH = 5000
KILL_AFTER = 800
INTERVAL = 250
CHECKPOINTS = Path("checkpoints").absolute()


def killed(spark: SparkSession) -> dict[str, Any]:
    """Without checkpoints, the stage restarts."""
    return run(spark)


def killed_with_checkpoints(spark: SparkSession) -> dict[str, Any]:
    """Resume from the newest complete checkpoint. Tasks are not interrupted, so peers must notify each other."""
    ra.attach(spark, {"spark.paralagg.checkpoint.dir": CHECKPOINTS.as_uri()})
    spark.conf.set("spark.paralagg.checkpoint.interval", INTERVAL)
    spark.conf.set("spark.sql.execution.interruptOnCancel", "false")
    try:
        facts = run(spark)
    finally:
        ra.attach(spark, dict.fromkeys(("spark.paralagg.checkpoint.dir", "spark.paralagg.checkpoint.interval")))
        spark.conf.unset("spark.sql.execution.interruptOnCancel")
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not list(CHECKPOINTS.iterdir()), 5, "checkpoints are gone")
    return {**facts, "kept": sorted(str(p.relative_to(CHECKPOINTS)) for p in CHECKPOINTS.rglob("*"))}


def run(spark: SparkSession) -> dict[str, Any]:
    """Run a long chain on two executors, one of which is killed."""
    wait_until(lambda: slots_of(spark) == 2, 60, "two executors")
    df = chain(spark, LENGTH, backend="spark")
    results: list[list[int]] = []
    before = newest_query(spark)
    thread = threading.Thread(target=lambda: results.append(total(df)))
    thread.start()
    # The store of Spark's UI may lag and still show the query before.
    wait_until(lambda: newest_query(spark) > before, 60, "the query has begun")
    wait_until(lambda: iterations_now(spark) > KILL_AFTER, 60, "the loop is in its middle")
    killed_at = iterations_now(spark)
    complete = [int(p.parent.name.partition("-")[2]) for p in CHECKPOINTS.glob("*/run-*/iteration-*/complete")]
    executors = executor_processes(spark)
    os.kill(executors[-1], signal.SIGKILL)
    died_at = time.monotonic()
    thread.join()
    seconds = time.monotonic() - died_at
    report = ra.report(df)
    assert report is not None
    return {
        "killed_at": killed_at,
        "complete_before": complete,
        "seconds_after_kill": seconds,
        "same_executors": executor_processes(spark) == executors,
        "right": results == [chain_total(LENGTH)],
        "iterations": report.iterations,
        "applied_in_last_attempt": len(report.to_pandas()),
        "first_of_last_attempt": int(report.to_pandas()["iteration"].min()),
        "report": report.seconds,
        "sessions": sessions_in_executors(spark),
        "left": left_after(spark),
    }


if __name__ == "__main__":
    spark = session("local-cluster[2,1,1024]")
    print_facts(spark, killed, killed_with_checkpoints)
    spark.stop()
