"""What the shim knows of the fixpoint in a DataFrame: its Plan, its report, and what it left to Spark."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import EnvironmentProblem
from pyspark_paralagg.plan import EXTRAS
from pyspark_paralagg.report.run_report import RunReport, find
from pyspark_paralagg.session.attach import bridge
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SPARK = "spark"
"""The name of the Spark engine in reports and in ``explain``."""


def report(df: DataFrame) -> RunReport | None:
    """The report of the last run of the (outermost) fixpoint in ``df``; None before it has run, or where there is none.

    >>> dist.count(); ra.report(dist).iterations                                          # doctest: +SKIP
    12
    """
    record = find(df)
    if record is not None and record.report is not None:
        return record.report
    return engine_report(df)


def engine_report(df: DataFrame) -> RunReport | None:
    """The report of the last run of the outermost fixpoint of the Spark engine in ``df``."""
    described = describe(df)
    text = None if described is None else bridge(df.sparkSession).report(_jdf(df))
    if described is None or text is None:
        return None
    report = RunReport.from_json(text, plan_seconds=described["plan"].get(EXTRAS, {}).get("seconds"))
    return replace(report, reason=report.reason or described["reason"])


def describe(df: DataFrame) -> dict[str, Any] | None:
    """What the outermost fixpoint of the Spark engine in ``df`` is; None where there is none, or no jar to ask.

    ``plan`` (JSON), ``program`` (text), ``stages`` (name, text, notes), ``stratum``, ``relation``, ``reason``,
    ``backend``, ``computed`` (the columns that are left when the query is optimised).
    """
    if is_connect(df):
        return None
    try:
        text = bridge(df.sparkSession).describe(_jdf(df))
    except EnvironmentProblem:
        return None
    if text is None:
        return None
    described: dict[str, Any] = json.loads(text)
    if isinstance(described["plan"], str):
        described["plan"] = json.loads(described["plan"])
    extras = described["plan"].get(EXTRAS, {})
    described["backend"] = described["plan"].get("offload", {}).get("backend", SPARK)
    described["program"], described["stages"] = extras.get("program", ""), extras.get("stages", [])
    return described


def left_to_spark(df: DataFrame) -> str | None:
    """Why recursive CTEs of Spark's own in ``df`` were not computed as recursive aggregates; None where none asked."""
    if is_connect(df):
        return None
    try:
        found = bridge(df.sparkSession).leftToSpark(_jdf(df))
    except EnvironmentProblem:
        return None
    return None if found is None else str(found)


def _jdf(df: DataFrame) -> Any:  # noqa: ANN401 - a py4j object
    return df._jdf  # noqa: SLF001 - pyspark has no public way to the JVM DataFrame
