"""Provide the Spark session of a run: a new session beside the running one, else a quiet Spark of its own.

Spark's JVM writes to the standard error that it is started with before any log level applies. So it starts with a file
there; error messages show the end of that file if the start fails or the JVM dies.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark_paralagg.command.ending import END_SIGNALS, recorded
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
_MEANING = {"spark.sql.ansi.enabled": "true"}
"""The confs that decide results, as runs without Spark have them: Spark 3.5 wraps overflowing numbers by default."""
_SHOWN_LINES = 8
_EXIT_TIMEOUT_SECONDS = 10


@contextmanager
def session(
    name: str, master: str, confs: Mapping[str, str], log: Path | None, *, uses_delta: bool = False
) -> Iterator[SparkSession]:
    """Yield a session that ends with the context; if Spark runs already, a new session that leaves its confs alone.

    ``log`` is the file for the JVM's standard error; None is that of this process. Raise ``EnvironmentProblem`` (that
    of ``configure``, ``PARALAGG_DELTA_MISSING``, ``PARALAGG_SPARK_START``), and ``FixpointError``
    ``PARALAGG_SPARK_LOST`` if the JVM ends within the context.
    """
    from py4j.protocol import Py4JNetworkError  # noqa: PLC0415 - slow to load, and a wrong program needs none
    from pyspark.sql import SparkSession  # noqa: PLC0415 - likewise

    running = SparkSession.getActiveSession()
    if running is not None:
        new_session = _new_session(running, confs)
        try:
            yield new_session
        finally:
            _activate(running)
        return
    spark = _start(name, master, confs, log, uses_delta=uses_delta)
    jvm = _Jvm(spark)
    is_lost = False
    try:
        with jvm.end_on_signals():
            yield spark
    except (Py4JNetworkError, ConnectionError) as problem:
        is_lost = True
        if jvm.is_ending:
            raise
        hint = _log_hint(log) or "run with --debug to see its output"
        raise FixpointError("PARALAGG_SPARK_LOST", "Spark's JVM ended during the run", hint=hint) from problem
    finally:
        if jvm.is_ending:
            jvm.wait()
        elif not is_lost:
            spark.stop()


class _Jvm:
    """The process of Spark's JVM. A signal that ends this process terminates the JVM first.

    PySpark's own handler waits for the JVM to cancel its jobs, over the connection that the interrupted call holds.
    Terminating the JVM ends all calls at once, and no task writes after the run's files are removed.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.is_ending = False
        gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - pyspark has no public attribute for the process
        self._process: subprocess.Popen[bytes] = gateway.proc
        self._accumulators: Any = getattr(spark.sparkContext, "_accumulatorServer", None)

    @contextmanager
    def end_on_signals(self) -> Iterator[None]:
        """Handle the signals of ``END_SIGNALS`` within the context."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        handlers = {s: signal.getsignal(s) for s in END_SIGNALS}
        for number, handler in handlers.items():
            if handler is not signal.SIG_IGN:
                signal.signal(number, recorded(self._end))
        try:
            yield
        finally:
            for number, handler in handlers.items():
                signal.signal(number, handler or signal.SIG_DFL)

    def _end(self, signum: int, frame: FrameType | None) -> NoReturn:
        """Terminate the JVM and raise ``SystemExit``, as py4j prints a traceback for a ``KeyboardInterrupt``."""
        del frame
        self.is_ending = True
        if self._accumulators is not None:
            self._accumulators.handle_error = lambda *_: None  # it loses the JVM, and in Spark 3.5 prints a traceback
        self._process.terminate()
        raise SystemExit(128 + signum)

    def wait(self) -> None:
        """Wait until the process has ended; kill it after ``_EXIT_TIMEOUT_SECONDS``."""
        try:
            self._process.wait(_EXIT_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()


def _new_session(running: SparkSession, confs: Mapping[str, str]) -> SparkSession:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - slow to load

    new_session = running.newSession()
    for key, value in {**_MEANING, **confs}.items():
        try:
            new_session.conf.set(key, value)
        except PySparkException as problem:  # noqa: PERF203 - each conf is set separately
            message = f"{key} cannot be set: {first_line(problem)}"
            raise UsageError("PARALAGG_BAD_CONF", message, value=value, place="--conf") from None
    return new_session


def _activate(spark: SparkSession) -> None:
    """Make it the active session again: ``createDataFrame`` of another session has replaced it."""
    type(spark)._activeSession = spark  # noqa: SLF001 - no public way; SparkSession.active() reads it
    jvm: Any = spark._jvm  # noqa: SLF001 - likewise
    jvm.SparkSession.setActiveSession(spark._jsparkSession)  # noqa: SLF001 - likewise


def _start(name: str, master: str, confs: Mapping[str, str], log: Path | None, *, uses_delta: bool) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - slow to load

    if master.startswith("local"):  # Spark's own default is the first python3 on PATH, whatever runs this
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(f"paralagg {name}")
    quiet = _QUIET if log else {}
    for key, value in {**_MEANING, **quiet, **(DELTA_CONFS if uses_delta else {}), **confs}.items():
        builder = builder.config(key, value)
    if uses_delta and "spark.jars.packages" not in confs:
        builder = _with_delta(builder)
    try:
        with _redirect_standard_error(log):
            spark = configure(builder).getOrCreate()
    except ParalaggError:
        raise
    except Exception as problem:
        message = f"Spark does not start: {first_line(problem)}"
        place = f"--master {master}"
        raise EnvironmentProblem(
            "PARALAGG_SPARK_START", message, value=master, place=place, hint=_log_hint(log)
        ) from problem
    _check_confs(spark, confs)
    return spark


def _check_confs(spark: SparkSession, confs: Mapping[str, str]) -> None:
    """Read a conf of SQL, as Spark checks these confs at their first use only; raise if it refuses them."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - slow to load

    try:
        spark.conf.get("spark.sql.ansi.enabled")
    except PySparkException as problem:
        spark.stop()
        message = f"Spark rejects the confs: {first_line(problem)}"
        value = ", ".join(f"{key}={value}" for key, value in confs.items())
        raise UsageError("PARALAGG_BAD_CONF", message, value=value, place="--conf") from None


def _with_delta(builder: SparkSession.Builder) -> SparkSession.Builder:
    try:
        from delta import configure_spark_with_delta_pip  # noqa: PLC0415 - an extra
    except ImportError:
        raise EnvironmentProblem(
            "PARALAGG_DELTA_MISSING",
            "the program reads or writes Delta tables, but delta-spark is not installed",
            hint="pip install 'pyspark-paralagg[delta]'",
        ) from None
    configured: SparkSession.Builder = configure_spark_with_delta_pip(builder)
    return configured


def first_line(problem: BaseException) -> str:
    """Return the first line of an exception's message, without Spark's stack."""
    lines = str(problem).strip().splitlines()
    return lines[0] if lines else type(problem).__name__


def _log_hint(log: Path | None) -> str | None:
    """Return the end of the JVM's log as a hint, without Java's stack."""
    if log is None or not log.exists():
        return None
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    messages = [line for line in lines if not line.startswith("\tat ")]
    return "\n  ".join(["the end of its output:", *messages[-_SHOWN_LINES:]])


@contextmanager
def _redirect_standard_error(log: Path | None) -> Iterator[None]:
    """Make processes that start within the context write their standard error to ``log``."""
    if log is None:
        yield
        return
    sys.stderr.flush()
    saved = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
