"""What Spark is doing, for ``progress``: recursions are watched (``ra.progress``), other jobs show their tasks.

A thread reads how many tasks have ended from Spark's status store, while no recursion iterates.
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

_LOOK_SECONDS = 0.2


@contextmanager
def shown(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """``progress`` follows ``spark`` until the context ends."""
    ended = threading.Event()
    jobs = _Jobs(spark, progress)
    thread = threading.Thread(target=jobs.follow, args=(ended,), name="paralagg-jobs", daemon=True)
    thread.start()
    try:
        with watched(jobs.hear, spark=spark):
            yield
    finally:
        ended.set()
        thread.join(1)


class _Jobs:
    """What a session does, as a few words."""

    def __init__(self, spark: SparkSession, progress: Progress) -> None:
        self._spark = spark
        self._progress = progress
        self._rate = Rate()
        self._iterates = False

    def hear(self, told: RunProgress) -> None:
        """A recursion has moved."""
        self._iterates = told.state == "running" and told.iteration > 0
        if self._iterates:
            self._progress.show(self._rate.told(told))

    def follow(self, ended: threading.Event) -> None:
        """Shows tasks where nothing iterates."""
        from py4j.protocol import Py4JError  # noqa: PLC0415 - slow to load

        while not ended.wait(_LOOK_SECONDS):
            try:
                if not self._iterates:
                    self._progress.show(self._tasks())
            except (Py4JError, OSError):  # noqa: PERF203 - the session has ended, or is being interrupted
                return

    def _tasks(self) -> str:
        """Those of the newest running job; "" where nothing runs."""
        jvm: Any = self._spark._jvm  # noqa: SLF001 - pyspark has no public way to the store of jobs
        running = jvm.java.util.ArrayList()
        running.add(jvm.org.apache.spark.JobExecutionStatus.RUNNING)
        jobs = self._spark.sparkContext._jsc.sc().statusStore().jobsList(running)  # noqa: SLF001 - likewise
        if jobs.isEmpty():
            return ""
        newest = jobs.head()
        return f"{newest.numCompletedTasks():,} of {newest.numTasks():,} tasks"
