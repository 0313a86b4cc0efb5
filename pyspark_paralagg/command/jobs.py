"""Show what Spark is doing in ``progress``: iterations of a recursion (``ra.progress``), else tasks of other jobs.

A thread reads the number of completed tasks from Spark's status store while no recursion iterates.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.report.progress import progress as watched
from pyspark_paralagg.report.run_progress import Rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from pyspark_paralagg.command.progress import Progress
    from pyspark_paralagg.report.run_progress import RunProgress

_POLL_SECONDS = 0.2


@contextmanager
def show_jobs(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """Show in ``progress`` what ``spark`` is doing until the context ends."""
    ended = threading.Event()
    jobs = _Jobs(spark, progress)
    thread = threading.Thread(target=jobs.follow, args=(ended,), name="paralagg-jobs", daemon=True)
    thread.start()
    try:
        with watched(jobs.on_progress, spark=spark):
            yield
    finally:
        ended.set()
        thread.join(1)


class _Jobs:
    """The activity of a session, as text for ``progress``."""

    def __init__(self, spark: SparkSession, progress: Progress) -> None:
        self._spark = spark
        self._progress = progress
        self._rate = Rate()
        self._is_iterating = False

    def on_progress(self, run: RunProgress) -> None:
        """Show the iteration of a recursion."""
        self._is_iterating = run.state == "running" and run.iteration > 0
        if self._is_iterating:
            self._progress.show(self._rate.describe(run))

    def follow(self, ended: threading.Event) -> None:
        """Show tasks until ``ended`` is set, while no recursion iterates."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 - slow to load

        while not ended.wait(_POLL_SECONDS):
            try:
                if not self._is_iterating:
                    self._progress.show(self._tasks())
            except (Py4JError, OSError):  # noqa: PERF203 - the session has ended, or is being interrupted
                return

    def _tasks(self) -> str:
        """Return the tasks of the newest running job as text, "" if no job runs."""
        jvm: Any = self._spark._jvm  # noqa: SLF001 - pyspark has no public way to the store of jobs
        running = jvm.java.util.ArrayList()
        running.add(jvm.org.apache.spark.JobExecutionStatus.RUNNING)
        jobs = self._spark.sparkContext._jsc.sc().statusStore().jobsList(running)  # noqa: SLF001 - likewise
        if jobs.isEmpty():
            return ""
        newest = jobs.head()
        return f"{newest.numCompletedTasks():,} of {newest.numTasks():,} tasks"
