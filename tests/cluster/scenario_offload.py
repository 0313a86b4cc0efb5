"""Kill, stop or cancel ranks; the session still runs the next query after each."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes import iterations_now
from queries import chain, chain_total, endless_growth, total
from scala_objects import scala_object
from stage import print_facts, session, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

LENGTH = 400_000
STARTED_SECONDS = 3
SMALL = 100
HERE = Path.cwd()
STAGING = HERE / "staging"
MASTER, LAUNCHER, FILES = sys.argv[1:]  # FILES: shared through STAGING, or apart


def succeeded(spark: SparkSession) -> dict[str, Any]:
    """Two ranks succeed and leave nothing, also nothing of executors that were killed before."""
    if FILES == "apart":
        executors = list((HERE / "local").glob("spark-*/executor-*"))
        assert executors
        for folder in executors:
            (folder / "paralagg-0-killed").mkdir()
            (folder / "paralagg-0-killed" / "here").touch()  # nobody holds its lock
    return {"right": total(chain(spark, SMALL, backend="mpi")) == chain_total(SMALL), "left": left_after(spark)}


def cancelled(spark: SparkSession) -> dict[str, Any]:
    """The job is cancelled after its description has changed."""
    facts: dict[str, Any] = {}

    def cancel() -> None:
        tracker, store = spark.sparkContext.statusTracker(), spark._jsparkSession.sparkContext().statusStore()
        wait_until(lambda: iterations_now(spark) > 0, 10, "progress")
        wait_until(
            lambda: "iteration" in str(store.job(tracker.getActiveJobsIds()[0]).description()), 10, "description"
        )
        facts["described"] = str(store.job(tracker.getActiveJobsIds()[0]).description())
        spark.sparkContext.cancelAllJobs()

    return {**failed(spark, "mpi", cancel), **facts}


def cancelled_without_interrupts(spark: SparkSession) -> dict[str, Any]:
    """Tasks check whether they are cancelled."""
    spark.conf.set("spark.sql.execution.interruptOnCancel", "false")
    try:
        return failed(spark, "mpi", spark.sparkContext.cancelAllJobs)
    finally:
        spark.conf.unset("spark.sql.execution.interruptOnCancel")


def killed(spark: SparkSession) -> dict[str, Any]:
    """One of two ranks is killed, as by the kernel when memory runs out."""
    return failed(spark, "mpi", lambda: os.kill(ranks()[-1], signal.SIGKILL))


def killed_alone(spark: SparkSession) -> dict[str, Any]:
    """The only rank is killed. Its loop has no rounds, so it reports no progress."""

    def kill() -> None:
        time.sleep(STARTED_SECONDS)
        os.kill(ranks()[-1], signal.SIGKILL)

    spark.conf.set("spark.paralagg.backend", "local")
    try:
        return failed(spark, "local", kill, lambda: endless_growth(spark).count(), lambda: len(ranks()) > 0)
    finally:
        spark.conf.unset("spark.paralagg.backend")


def stopped(spark: SparkSession) -> dict[str, Any]:
    """A rank is stopped."""
    return failed(spark, "mpi", lambda: os.kill(ranks()[-1], signal.SIGSTOP))


def executor_lost(spark: SparkSession) -> dict[str, Any]:
    """A waiting task dies with its executor. Ranks continue, or restart if they ran in that executor."""
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
    """Run a query of minutes and harm it. Return its error, its duration after that, and what is left."""
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
    except Exception as problem:  # noqa: BLE001 - any error is a fact
        return str(problem)
    return "none"


def are_at_work(spark: SparkSession) -> bool:
    """Return whether two ranks run and have iterations, which alone may be those of the previous query."""
    return iterations_now(spark) > 0 and len(ranks()) == 2


def ranks() -> list[int]:
    """Return the process ids of this scenario's ranks, whatever their parent."""
    ids = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            folder = (process / "cwd").readlink()
            is_ours = any(word.startswith(str(STAGING).encode()) for word in words) or folder.is_relative_to(HERE)
            if is_ours and b"run" in words and b"mpi_backend" in words and b"-n" not in words:
                ids.append(int(process.name))
    return sorted(ids)


def files() -> list[str]:
    """Return the files of the folders where ranks read and write rows."""
    places = [*STAGING.iterdir(), *(HERE / "local").rglob("paralagg-*")]
    return [place.name for place in places]


def left_after(spark: SparkSession) -> dict[str, Any]:
    """Return the ranks, runs and files that are left after a few seconds."""
    runs = scala_object(spark, "offload.Offloads")
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
        print_facts(spark, succeeded, killed, stopped, cancelled_without_interrupts, executor_lost, context_stopped)
    elif MASTER.startswith("local-cluster"):
        print_facts(spark, succeeded, killed, cancelled_without_interrupts, executor_lost, context_stopped)
    else:
        print_facts(
            spark, succeeded, cancelled, cancelled_without_interrupts, killed, killed_alone, stopped, context_stopped
        )
