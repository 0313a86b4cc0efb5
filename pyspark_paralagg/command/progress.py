"""How far a run is, on standard error: one line that moves where that is a terminal, else a line now and then.

Beside ``run``. The engine amends the description of its job while it iterates (``paralagg path: iteration 7, last
delta 1,234 rows``), and the plain-DataFrame executor describes its jobs likewise; here a thread reads that from Spark's
status store. Other jobs show their tasks.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from pyspark.sql import SparkSession
    from typing_extensions import Self

_ITERATION = re.compile(r"(?P<what>\S+): iteration (?P<iteration>\d+), last delta (?P<delta>[\d,]+) rows")
_POLL_SECONDS = 0.2
_LINE_SECONDS = 5.0
_ERASE = "\r\x1b[K"
_WIDTH = 100


class Progress:
    """A context: while it is open, warnings of this package go through it too, those of a quiet run as well."""

    def __init__(self, stream: IO[str], *, is_quiet: bool = False) -> None:
        self._stream = stream
        self._is_quiet = is_quiet
        self._moves = not is_quiet and stream.isatty()
        self._lock = threading.Lock()
        self._shown = ""
        self._relation = ""
        self._ended = threading.Event()
        self._threads: list[threading.Thread] = []
        self._handler = _Lines(self._write)

    def __enter__(self) -> Self:
        logger = logging.getLogger("pyspark_paralagg")
        logger.addHandler(self._handler)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(1)
        self._move("")
        logging.getLogger("pyspark_paralagg").removeHandler(self._handler)

    def say(self, line: str) -> None:
        """A line that stays."""
        if not self._is_quiet:
            self._write(line)

    def _write(self, line: str) -> None:
        with self._lock:
            self._stream.write(f"{_ERASE if self._shown else ''}{line}\n")
            self._shown = ""
            self._stream.flush()

    def on(self, relation: str) -> None:
        """What is being computed from here on."""
        self._relation = relation
        self._move(f"{relation} ...")

    def watch(self, spark: SparkSession) -> None:
        """Follow the jobs of ``spark`` until the end."""
        if not self._is_quiet:
            thread = threading.Thread(target=self._follow, args=(_Jobs(spark),), name="paralagg-progress", daemon=True)
            thread.start()
            self._threads.append(thread)

    def _follow(self, jobs: _Jobs) -> None:
        from py4j.protocol import Py4JError  # noqa: PLC0415 - slow to load

        last = time.monotonic()
        while not self._ended.wait(_POLL_SECONDS):
            try:
                state = jobs.state()
            except (Py4JError, OSError):  # the session has ended, or is being interrupted
                return
            if state and self._moves:
                self._move(f"{self._relation}: {state}")
            elif state.startswith("iteration") and time.monotonic() - last > _LINE_SECONDS:
                last = time.monotonic()
                self.say(f"{self._relation}: {state}")

    def _move(self, line: str) -> None:
        if not self._moves:
            return
        with self._lock:
            line = line[:_WIDTH]
            if line != self._shown:
                self._stream.write(f"{_ERASE}{line}")
                self._stream.flush()
            self._shown = line


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


class Rate:
    """New rows a second, from what is seen now and then: the last delta times the iterations since the last look.

    >>> rate = Rate(clock=iter([0.0, 2.0]).__next__)
    >>> rate.told("path", 4, 1000)
    'iteration 4, 1,000 new rows'
    >>> rate.told("path", 10, 500)
    'iteration 10, 500 new rows, 1,500 rows/s'
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._seen: tuple[str, int, float] | None = None
        self._words = ""

    def told(self, what: str, iteration: int, delta: int) -> str:
        """The state in words."""
        if self._seen and self._seen[:2] == (what, iteration):
            return self._words
        now = self._clock()
        self._words = f"iteration {iteration:,}, {delta:,} new rows"
        if self._seen and self._seen[0] == what and iteration > self._seen[1] and now > self._seen[2]:
            self._words += f", {round(delta * (iteration - self._seen[1]) / (now - self._seen[2])):,} rows/s"
        self._seen = (what, iteration, now)
        return self._words


class _Lines(logging.Handler):
    """Warnings as lines of the progress."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """One line."""
        self._say(record.getMessage())
