"""What Spark is doing, for ``progress``: a thread reads it from Spark's status store.

The engine amends the description of its job while it iterates (``paralagg path: iteration 7, last delta 1,234 rows``),
and the plain-DataFrame executor describes its jobs likewise. Other jobs show their tasks.
"""

from __future__ import annotations

import re
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.command.progress import Rate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from pyspark_paralagg.command.progress import Progress

_ITERATION = re.compile(r"(?P<what>\S+): iteration (?P<iteration>\d+), last delta (?P<delta>[\d,]+) rows")
_POLL_SECONDS = 0.2


@contextmanager
def shown(spark: SparkSession, progress: Progress) -> Iterator[None]:
    """``progress`` follows the jobs of ``spark`` until the context ends."""
    ended = threading.Event()
    thread = threading.Thread(
        target=_follow, args=(_Jobs(spark), progress, ended), name="paralagg-progress", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(1)


def _follow(jobs: _Jobs, progress: Progress, ended: threading.Event) -> None:
    from py4j.protocol import Py4JError  # noqa: PLC0415 - slow to load

    while not ended.wait(_POLL_SECONDS):
        try:
            progress.show(jobs.state())
        except (Py4JError, OSError):  # noqa: PERF203 - the session has ended, or is being interrupted
            return


class _Jobs:
    """The running jobs of a session, as a few words."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._rate = Rate()

    def state(self) -> str:
        """The newest job that iterates, else the tasks of the newest job; "" where nothing runs."""
        jvm: Any = self._spark._jvm  # noqa: SLF001 - pyspark has no public way to descriptions of jobs
        running = jvm.java.util.ArrayList()
        running.add(jvm.org.apache.spark.JobExecutionStatus.RUNNING)
        store = self._spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - likewise
        jobs = store.jobsList(running)  # newest first
        tasks = ""
        for position in range(jobs.size()):
            job = jobs.apply(position)
            described = job.description()
            text = str(described.get()) if described.isDefined() else ""
            found = _ITERATION.search(text)
            if found:
                return self._rate.told(found["what"], int(found["iteration"]), int(found["delta"].replace(",", "")))
            tasks = tasks or f"{job.numCompletedTasks():,} of {job.numTasks():,} tasks"
        return tasks
