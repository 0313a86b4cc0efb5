"""Read from the shim the Plan and the report of the fixpoint in a DataFrame."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.connect.plugin import described_by, report_of
from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.plan import EXTRAS
from pyspark_paralagg.report import observed
from pyspark_paralagg.report.run_report import RunReport, find
from pyspark_paralagg.session.arguments import check_dataframe
from pyspark_paralagg.session.attach import bridge
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPARK = "spark"
"""The name of the Spark engine in reports and in ``explain``."""


def report(df: DataFrame) -> RunReport | None:
    """Return the report of the last run of the outermost fixpoint in ``df``; None if there is none, or it has not run.

    >>> dist.count(); ra.report(dist).iterations                                          # doctest: +SKIP
    12
    """
    check_dataframe("df", df, "ra.report")
    record = find(df)
    if record is not None and record.report is not None:
        return record.report
    found = observed.find(df)
    return engine_report(df) if found is None else found.report()


def engine_report(df: DataFrame) -> RunReport | None:
    """Return the report of the last run of the Spark engine's outermost fixpoint in ``df``, or None."""
    described = describe(df)
    if described is None:
        return None
    text = report_of(df.sparkSession, described["run"]) if is_connect(df) else bridge(df.sparkSession).report(_jdf(df))
    if text is None:
        return None
    report = RunReport.from_json(text, plan_seconds=described["plan"].get(EXTRAS, {}).get("seconds"))
    return replace(report, reason=report.reason or described["reason"])


def describe(df: DataFrame) -> dict[str, Any] | None:
    """Describe the outermost fixpoint in ``df``; return None if there is no fixpoint or no shim.

    The keys are ``plan`` (JSON), ``stratum``, ``relation``, ``reason`` and ``backend``.
    """
    found = observed.find(df)
    if found is not None:
        return found.described
    if is_connect(df):
        at_server = described_by(df)
        return None if at_server is None else {**at_server, "backend": SPARK}
    shim = _shim(df)
    text = None if shim is None else shim.describe(_jdf(df))
    if text is None:
        return None
    described: dict[str, Any] = json.loads(text)
    if isinstance(described["plan"], str):
        described["plan"] = json.loads(described["plan"])
    described["backend"] = described["plan"].get("offload", {}).get("backend", SPARK)
    return described


def computed_columns(df: DataFrame) -> list[str]:
    """Return the columns of the outermost fixpoint in ``df`` that remain after Spark's optimizer has pruned the query.

    Return none if ``df`` has no fixpoint, or another engine or a server computes it. Runs the optimizer.
    """
    shim = None if observed.find(df) is not None or is_connect(df) else _shim(df)
    return [] if shim is None else list(shim.computed(_jdf(df)))


def left_to_spark(df: DataFrame) -> str | None:
    """Return why Spark computes its own recursive CTEs under min or max in ``df``; None if there are none."""
    shim = _shim(df)
    reason = None if shim is None else shim.leftToSpark(_jdf(df))
    return None if reason is None else str(reason)


def _shim(df: DataFrame) -> Any | None:  # noqa: ANN401 - a py4j object
    """Return the bridge of the session of ``df``; None for Spark Connect and for a session without the shim."""
    if is_connect(df):
        return None
    try:
        return bridge(df.sparkSession)
    except EnvironmentProblem:
        return None


def _jdf(df: DataFrame) -> Any:  # noqa: ANN401 - a py4j object
    return df._jdf  # noqa: SLF001 - pyspark has no public way to the JVM DataFrame
