"""Ranks that are killed, stopped, or no longer wanted; the session is good for the next query after each."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes import iterations_now, module
from queries import chain, chain_total, endless_growth, total
from stage import session, tell, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

LENGTH = 400_000
STARTED_SECONDS = 3
SMALL = 100
HERE = Path.cwd()
STAGING = HERE / "staging"
MASTER, LAUNCHER, FILES = sys.argv[1:]  # FILES: shared by way of STAGING, or apart


def succeeded(spark: SparkSession) -> dict[str, Any]:
    """Two ranks, rows right, nothing left."""
    return {"right": total(chain(spark, SMALL, backend="mpi")) == chain_total(SMALL), "left": left_after(spark)}


def cancelled(spark: SparkSession) -> dict[str, Any]:
    """By job group; the description of the job moves before."""
    told: dict[str, Any] = {}

    def cancel() -> None:
        tracker, store = spark.sparkContext.statusTracker(), spark._jsparkSession.sparkContext().statusStore()
        wait_until(lambda: iterations_now(spark) > 0, 10, "progress")
        wait_until(
            lambda: "iteration" in str(store.job(tracker.getActiveJobsIds()[0]).description()), 10, "description"
        )
        told["described"] = str(store.job(tracker.getActiveJobsIds()[0]).description())
        spark.sparkContext.cancelAllJobs()

    return {**failed(spark, "mpi", cancel), **told}


def cancelled_without_interrupts(spark: SparkSession) -> dict[str, Any]:
    """Tasks look for themselves whether they are still wanted."""
    spark.conf.set("spark.sql.execution.interruptOnCancel", "false")
    try:
        return failed(spark, "mpi", spark.sparkContext.cancelAllJobs)
    finally:
        spark.conf.unset("spark.sql.execution.interruptOnCancel")


def killed(spark: SparkSession) -> dict[str, Any]:
    """One of two ranks, as the system does when memory runs out."""
    return failed(spark, "mpi", lambda: os.kill(ranks()[-1], signal.SIGKILL))


def killed_alone(spark: SparkSession) -> dict[str, Any]:
    """The only one. Its loop has no rounds, so nobody hears of it."""

    def kill() -> None:
        time.sleep(STARTED_SECONDS)
        os.kill(ranks()[-1], signal.SIGKILL)

    spark.conf.set("spark.paralagg.backend", "local")
    try:
        return failed(spark, "local", kill, lambda: endless_growth(spark).count(), lambda: len(ranks()) > 0)
    finally:
        spark.conf.unset("spark.paralagg.backend")


def stopped(spark: SparkSession) -> dict[str, Any]:
    """A rank that hangs."""
    return failed(spark, "mpi", lambda: os.kill(ranks()[-1], signal.SIGSTOP))


def executor_lost(spark: SparkSession) -> dict[str, Any]:
    """A task that waits dies with its executor. Ranks run on, or where they ran there, start again."""
    from probes import executor_processes  # noqa: PLC0415 - of no use in one JVM

    answer: list[list[int]] = []
    length = 20_000
    df = chain(spark, length, backend="mpi")
    thread = threading.Thread(target=lambda: answer.append(total(df)))
    thread.start()
    wait_until(lambda: are_at_work(spark), 60, "ranks are at work")
    before = ranks()
    os.kill(executor_processes(spark)[-1], signal.SIGKILL)
    thread.join()
    return {"right": answer == [chain_total(length)], "ranks": len(before), "left": left_after(spark)}


def context_stopped(spark: SparkSession) -> dict[str, Any]:
    """The session is stopped while ranks run."""
    df = chain(spark, LENGTH, backend="mpi")
    thread = threading.Thread(target=lambda: _error(lambda: total(df)))
    thread.start()
    wait_until(lambda: len(ranks()) > 0, 60, "ranks have started")
    spark.stop()
    thread.join()
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not ranks() and not files(), 10, "all is cleared away")
    return {"ranks": len(ranks()), "files": files()}


def failed(
    spark: SparkSession,
    backend: str,
    harm: Callable[[], Any],
    query: Callable[[], Any] | None = None,
    is_at_work: Callable[[], bool] | None = None,
) -> dict[str, Any]:
    """A query that would run for minutes, and does not."""
    harmed: list[float] = []

    def do_harm() -> None:
        wait_until(is_at_work or (lambda: are_at_work(spark)), 60, "ranks are at work")
        harm()
        harmed.append(time.monotonic())

    thread = threading.Thread(target=do_harm)
    thread.start()
    error = _error(query or (lambda: total(chain(spark, LENGTH, backend=backend))))
    ended = time.monotonic()
    thread.join()
    return {
        "error": error,
        "seconds": ended - harmed[0],
        "left": left_after(spark),
        "next_is_right": total(chain(spark, SMALL, backend=backend)) == chain_total(SMALL),
    }


def _error(run: Callable[[], Any]) -> str:
    try:
        run()
    except Exception as problem:  # noqa: BLE001 - whatever it was is told
        return str(problem)
    return "none"


def are_at_work(spark: SparkSession) -> bool:
    """Both: Spark may hear late that the query before has ended, whose iterations these were then."""
    return iterations_now(spark) > 0 and len(ranks()) == 2


def ranks() -> list[int]:
    """Process ids of this scenario's ranks, whoever is their parent by now."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            place = (process / "cwd").readlink()
            is_ours = any(word.startswith(str(STAGING).encode()) for word in words) or place.is_relative_to(HERE)
            if is_ours and b"run" in words and b"mpi_backend" in words and b"-n" not in words:
                found.append(int(process.name))
    return sorted(found)


def files() -> list[str]:
    """What lies where ranks get and leave their rows."""
    places = [*STAGING.iterdir(), *(HERE / "local").rglob("paralagg-*")]
    return [place.name for place in places]


def left_after(spark: SparkSession) -> dict[str, Any]:
    """Ranks, runs and files that are still there a little later."""
    runs = module(spark, "offload.Offloads")
    with contextlib.suppress(TimeoutError):
        wait_until(lambda: not ranks() and not runs.liveCount() and not files(), 5, "all is cleared")
    return {"ranks": len(ranks()), "runs": int(runs.liveCount()), "files": files()}


if __name__ == "__main__":
    STAGING.mkdir()
    confs = {
        "spark.paralagg.mpi.launcher": LAUNCHER,
        "spark.paralagg.mpi.ranks": "2",
        "spark.paralagg.mpi.oversubscribe": "true",
        **({"spark.paralagg.mpi.stagingDir": str(STAGING)} if FILES == "shared" else {}),
    }
    spark = session(MASTER, confs)
    if LAUNCHER == "spark":
        tell(spark, succeeded, killed, stopped, cancelled_without_interrupts, executor_lost, context_stopped)
    elif MASTER.startswith("local-cluster"):
        tell(spark, succeeded, killed, cancelled_without_interrupts, executor_lost, context_stopped)
    else:
        tell(spark, succeeded, cancelled, cancelled_without_interrupts, killed, killed_alone, stopped, context_stopped)
