"""Find the active session, and check that a session still runs, before its DataFrames are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.errors import EnvironmentProblem, UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def active_session(caller: str) -> SparkSession:
    """Return the active session for a function that got none; raise ``PARALAGG_NO_SESSION`` without one."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - pyspark is optional

    session = SparkSession.getActiveSession()
    if session is None:
        message = f"{caller} finds no active Spark session"
        raise UsageError("PARALAGG_NO_SESSION", message, place="spark", hint="start one, or pass it as spark=")
    return session


def check_running(spark: SparkSession) -> None:
    """Raise ``PARALAGG_SESSION_STOPPED`` if ``spark.stop()`` was called."""
    context = getattr(spark, "_sc", None)  # None for a Connect session, which has `is_stopped` instead
    is_stopped = getattr(spark, "is_stopped", False) if context is None else context._jsc is None  # noqa: SLF001 - pyspark has no public attribute for it
    if is_stopped:
        raise EnvironmentProblem(
            "PARALAGG_SESSION_STOPPED",
            "the Spark session of this DataFrame was stopped",
            value=spark,
            place="spark",
            hint="start a session with ra.configure(SparkSession.builder...).getOrCreate(), and read the data again",
        )


def is_connect(df: object) -> bool:
    """Return whether ``df``, a DataFrame or a session, belongs to Spark Connect and so has no local JVM."""
    return type(df).__module__.startswith("pyspark.sql.connect")
