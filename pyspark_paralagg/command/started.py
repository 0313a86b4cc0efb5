"""The Spark session of a run: the one that this process has, else one of its own that says nothing of itself.

Beside ``run``. Spark's JVM writes to the standard error that it was started with, before any log level counts; so it is
started with a file there, which is shown where the start fails or the JVM dies.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from pyspark_paralagg.errors import EnvironmentProblem, FixpointError, ParalaggError, UsageError
from pyspark_paralagg.session import configure

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
_DELTA = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
_SHOWN_LINES = 8


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
    is_interrupted = False
    try:
        yield spark
    except (KeyboardInterrupt, SystemExit):
        is_interrupted = True  # the JVM ends with this process, whatever it is busy with
        raise
    except (Py4JNetworkError, ConnectionError) as problem:
        is_interrupted = True
        raise FixpointError(
            "PARALAGG_SPARK_LOST", "Spark's JVM ended within the run", hint=_hint(log) or "--debug shows what it says"
        ) from problem
    finally:
        if not is_interrupted:
            spark.stop()


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
    for key, value in {**quiet, **(_DELTA if uses_delta else {}), **confs}.items():
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
    # PySpark's handler asks the JVM over a connection that is in use; here the JVM ends with the process anyway.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, _interrupt)
    return spark


def _interrupt(signum: int, frame: FrameType | None) -> NoReturn:
    """Not a ``KeyboardInterrupt``, for which py4j would print a traceback."""
    del frame
    raise SystemExit(128 + signum)


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
    """The end of what the JVM said."""
    if log is None or not log.exists():
        return None
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()[-_SHOWN_LINES:]
    return "\n  ".join(["the end of what it says:", *lines])


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
