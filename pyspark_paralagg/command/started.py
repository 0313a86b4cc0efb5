"""The Spark session of a run: the one that this process has, else one of its own that says nothing of itself.

Beside ``run``. Spark's JVM writes to the standard error that it was started with, before any log level counts; so it is
started with a file there, which is shown where the start fails or the JVM dies.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark_paralagg.command.staging import ENDS
from pyspark_paralagg.delta.tables import DELTA_CONFS
from pyspark_paralagg.errors import EnvironmentProblem, FixpointError, ParalaggError, UsageError
from pyspark_paralagg.session.configure import configure

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from types import FrameType

    from pyspark.sql import SparkSession

_QUIET = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
}
_SHOWN_LINES = 8
_PATIENCE_SECONDS = 10


@contextmanager
def session(
    name: str, master: str, confs: Mapping[str, str], log: Path | None, *, uses_delta: bool = False
) -> Iterator[SparkSession]:
    """A session that ends with the context, or a new one beside the one that runs, whose confs stay.

    ``log`` is the file for what the JVM says; None lets it through. Raises ``EnvironmentProblem`` (what ``configure``
    raises, ``PARALAGG_DELTA_MISSING``, ``PARALAGG_SPARK_START``) and, where the JVM ends within the context,
    ``FixpointError`` ``PARALAGG_SPARK_LOST``.
    """
    from py4j.protocol import Py4JNetworkError  # noqa: PLC0415 - slow to load, and a wrong program needs none
    from pyspark.sql import SparkSession  # noqa: PLC0415 - likewise

    running = SparkSession.getActiveSession()
    if running is not None:
        yield _beside(running, confs)
        return
    spark = _start(name, master, confs, log, uses_delta=uses_delta)
    jvm = _Jvm(spark)
    is_lost = False
    try:
        with jvm.ends_when_asked():
            yield spark
    except (Py4JNetworkError, ConnectionError) as problem:
        is_lost = True
        if jvm.is_ending:
            raise
        raise FixpointError(
            "PARALAGG_SPARK_LOST", "Spark's JVM ended within the run", hint=_hint(log) or "--debug shows what it says"
        ) from problem
    finally:
        if jvm.is_ending:
            jvm.wait()
        elif not is_lost:
            spark.stop()


class _Jvm:
    """The process of Spark's JVM. Whoever asks this process to end means that one first, whatever it is busy with.

    PySpark's own handler asks the JVM to cancel its jobs over the connection that the interrupted call holds, and waits
    for it. Here all calls end at once, and no task writes once the files of the run are taken away.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.is_ending = False
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - pyspark keeps the process there, for its callers
        self._process: subprocess.Popen[bytes] = gateway.proc

    @contextmanager
    def ends_when_asked(self) -> Iterator[None]:
        """Handles the signals of ``ENDS``."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {s: signal.getsignal(s) for s in ENDS}
        for number, handler in before.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, self._end)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler or signal.SIG_DFL)

    def _end(self, signum: int, frame: FrameType | None) -> NoReturn:
        """Not a ``KeyboardInterrupt``, for which py4j would print a traceback."""
        del frame
        self.is_ending = True
        self._process.terminate()
        raise SystemExit(128 + signum)

    def wait(self) -> None:
        """Until it has ended."""
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()


def _beside(running: SparkSession, confs: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - slow to load

    own = running.newSession()
    for key, value in confs.items():
        try:
            own.conf.set(key, value)
        except PySparkException as problem:  # noqa: PERF203 - each is a conf of its own
            message = f"{key} cannot be set: {first_line(problem)}"
            raise UsageError("PARALAGG_BAD_CONF", message, value=value, place="--conf") from None
    return own


def _start(name: str, master: str, confs: Mapping[str, str], log: Path | None, *, uses_delta: bool) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - slow to load

    builder = SparkSession.builder.master(master).appName(f"paralagg {name}")
    quiet = _QUIET if log else {}
    for key, value in {**quiet, **(DELTA_CONFS if uses_delta else {}), **confs}.items():
        builder = builder.config(key, value)
    if uses_delta and "spark.jars.packages" not in confs:
        builder = _with_delta(builder)
    try:
        with _standard_error_to(log):
            spark = configure(builder).getOrCreate()
    except ParalaggError:
        raise
    except Exception as problem:
        message = f"Spark does not start: {first_line(problem)}"
        place = f"--master {master}"
        raise EnvironmentProblem(
            "PARALAGG_SPARK_START", message, value=master, place=place, hint=_hint(log)
        ) from problem
    _check_confs(spark, confs)
    return spark


def _check_confs(spark: SparkSession, confs: Mapping[str, str]) -> None:
    """Spark reads the confs of SQL when they are needed first."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - slow to load

    try:
        spark.conf.get("spark.sql.ansi.enabled")
    except PySparkException as problem:
        spark.stop()
        message = f"Spark does not take the confs: {first_line(problem)}"
        value = ", ".join(f"{key}={value}" for key, value in confs.items())
        raise UsageError("PARALAGG_BAD_CONF", message, value=value, place="--conf") from None


def _with_delta(builder: SparkSession.Builder) -> SparkSession.Builder:
    try:
        from delta import configure_spark_with_delta_pip  # noqa: PLC0415 - an extra
    except ImportError:
        raise EnvironmentProblem(
            "PARALAGG_DELTA_MISSING",
            "the program reads or writes Delta tables, and delta-spark is not installed",
            hint="pip install 'pyspark-paralagg[delta]'",
        ) from None
    configured: SparkSession.Builder = configure_spark_with_delta_pip(builder)
    return configured


def first_line(problem: BaseException) -> str:
    """What an exception says, without Spark's pages."""
    lines = str(problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__


def _hint(log: Path | None) -> str | None:
    """The end of what the JVM said, without Java's stack."""
    if log is None or not log.exists():
        return None
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    told = [line for line in lines if not line.startswith("\tat ")]
    return "\n  ".join(["the end of what it says:", *told[-_SHOWN_LINES:]])


@contextmanager
def _standard_error_to(log: Path | None) -> Iterator[None]:
    """Processes that start in the meantime write there."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    before = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
