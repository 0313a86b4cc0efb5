"""An executor is killed with SIGKILL in the middle of the loop; without checkpoints, and with them."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes import executor_processes, iterations_now, left_after, sessions_in_executors
from queries import chain, chain_total, total
from stage import session, slots_of, tell, wait_until

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LENGTH = 3000
KILL_AFTER = 1000
INTERVAL = 250
CHECKPOINTS = Path("checkpoints").absolute()


def undisturbed(spark: SparkSession) -> dict[str, Any]:
    """The same query in peace, to compare."""
    return run(spark, kill=False)


def killed(spark: SparkSession) -> dict[str, Any]:
    """Nothing kept: the stage begins anew."""
    return run(spark, kill=True)


def killed_with_checkpoints(spark: SparkSession) -> dict[str, Any]:
    """It goes on from the newest complete checkpoint. Tasks are not interrupted, so peers must tell each other."""
    spark.conf.set("spark.paralagg.checkpoint.dir", CHECKPOINTS.as_uri())
    spark.conf.set("spark.paralagg.checkpoint.interval", INTERVAL)
    spark.conf.set("spark.sql.execution.interruptOnCancel", "false")
    try:
        told = run(spark, kill=True)
    finally:
        for key in ("spark.paralagg.checkpoint.dir", "spark.paralagg.checkpoint.interval"):
            spark.conf.unset(key)
        spark.conf.unset("spark.sql.execution.interruptOnCancel")
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not list(CHECKPOINTS.iterdir()), 5, "checkpoints are gone")
    return {**told, "kept": sorted(str(p.relative_to(CHECKPOINTS)) for p in CHECKPOINTS.rglob("*"))}


def run(spark: SparkSession, *, kill: bool) -> dict[str, Any]:
    """A long chain on two executors, one of which may die on the way."""
    wait_until(lambda: slots_of(spark) == 2, 60, "two executors")
    df = chain(spark, LENGTH, backend="spark")
    answer: list[list[int]] = []
    began = time.monotonic()
    thread = threading.Thread(target=lambda: answer.append(total(df)))
    thread.start()
    told: dict[str, Any] = {}
    if kill:
        wait_until(lambda: iterations_now(spark) > KILL_AFTER and thread.is_alive(), 60, "the loop is in its middle")
        told["killed_at"] = iterations_now(spark)
        victims = executor_processes(spark)
        os.kill(victims[-1], signal.SIGKILL)
        dead = time.monotonic()
    thread.join()
    told["seconds"] = time.monotonic() - began
    if kill:
        told["seconds_after_kill"] = time.monotonic() - dead
        told["same_executors"] = executor_processes(spark) == victims
    report = ra.report(df)
    assert report is not None
    return {
        **told,
        "right": answer == [chain_total(LENGTH)],
        "iterations": report.iterations,
        "applied_in_last_attempt": len(report.per_iteration),
        "report": report.seconds,
        "sessions": sessions_in_executors(spark),
        "left": left_after(spark),
    }


if __name__ == "__main__":
    spark = session("local-cluster[2,1,1024]")
    tell(spark, undisturbed, killed, killed_with_checkpoints)
    spark.stop()
