"""Inputs as DataFrames: text is checked and copied before Spark starts, Parquet and Delta are read in place."""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from pyspark_paralagg.command.facts import unreadable
from pyspark_paralagg.command.failure import summary
from pyspark_paralagg.command.lines import copy_to_parquet
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.command.facts import Examined


def copied(examined: Sequence[Examined], work: Path) -> list[Examined]:
    """With copies of what is text, as Parquet in the folder ``work``.

    Raises ``UsageError`` ``PARALAGG_BAD_FACT`` for a line that is no fact.
    """
    out = []
    for number, item in enumerate(examined):
        if item.lines is None:
            out.append(item)
            continue
        copy_to_parquet(item.lines, work / f"{number}.parquet")
        out.append(replace(item, path=work / f"{number}.parquet"))
    return out


def load(spark: SparkSession, examined: Sequence[Examined]) -> dict[str, DataFrame]:
    """A DataFrame for each relation; several inputs of one relation are put together. What is text was copied.

    Raises ``UsageError`` ``PARALAGG_INPUT_UNREADABLE``, and ``PARALAGG_BAD_FACT`` for a negative number in an unsigned
    column of Parquet or Delta. Whether other types fit is for ``datalog`` to tell.
    """
    by_relation: dict[str, list[DataFrame]] = {}
    for item in examined:
        by_relation.setdefault(item.rows.relation, []).append(_frame(spark, item))
    return {name: functools.reduce(lambda a, b: a.union(b), frames) for name, frames in by_relation.items()}


def _frame(spark: SparkSession, item: Examined) -> DataFrame:
    if item.lines is not None:
        # The copy is on this machine. Executors elsewhere get the rows from the driver.
        if (spark.sparkContext.master or "").startswith("local"):
            ddl = ", ".join(f"{quoted(name)} {spark_type}" for name, spark_type in item.columns or ())
            return spark.read.schema(ddl).parquet(item.path.as_uri())
        return spark.createDataFrame(pq.read_table(item.path))
    df = _read(spark, item)
    if item.chosen and all(name in df.columns for name in item.chosen):
        df = df.select(*(quoted(name) for name in item.chosen))
    item.check_unsigned(df.columns, lambda column: _least(df, column))
    return df


def _read(spark: SparkSession, item: Examined) -> DataFrame:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - slow to load

    try:
        return spark.read.format(item.rows.format).load(item.path.absolute().as_uri())
    except PySparkException as problem:
        raise unreadable(item, summary(str(problem)).message) from problem


def _least(df: DataFrame, column: str) -> float | None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    row = df.agg(F.min(quoted(column))).first()
    return None if row is None else row[0]
