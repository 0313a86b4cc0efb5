"""Load inputs as DataFrames: check and copy text files before Spark starts, read Parquet and Delta in place."""

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

    from pyspark_paralagg.command.facts import InputFile


def copy_texts(inputs: Sequence[InputFile], work: Path) -> list[InputFile]:
    """Copy the text files to Parquet in the folder ``work`` and return all inputs, with the copies for the texts.

    Raise ``UsageError`` ``PARALAGG_BAD_FACT`` for a line that is no fact.
    """
    result = []
    for number, item in enumerate(inputs):
        if item.lines is None:
            result.append(item)
            continue
        copy_to_parquet(item.lines, work / f"{number}.parquet")
        result.append(replace(item, path=work / f"{number}.parquet"))
    return result


def load(spark: SparkSession, inputs: Sequence[InputFile]) -> dict[str, DataFrame]:
    """Return a DataFrame for each relation, the union of its inputs; ``copy_texts`` has copied the text files.

    Raise ``UsageError`` ``PARALAGG_INPUT_UNREADABLE``, and ``PARALAGG_BAD_FACT`` for a negative number in an unsigned
    column of Parquet or Delta. ``datalog`` checks all other types.
    """
    by_relation: dict[str, list[DataFrame]] = {}
    for item in inputs:
        by_relation.setdefault(item.rows.relation, []).append(_frame(spark, item))
    return {name: functools.reduce(lambda a, b: a.union(b), frames) for name, frames in by_relation.items()}


def _frame(spark: SparkSession, item: InputFile) -> DataFrame:
    if item.lines is not None:
        # The copy is on this machine, so executors elsewhere get the rows from the driver.
        if (spark.sparkContext.master or "").startswith("local"):
            ddl = ", ".join(f"{quoted(name)} {spark_type}" for name, spark_type in item.columns or ())
            return spark.read.schema(ddl).parquet(item.path.as_uri())
        return spark.createDataFrame(pq.read_table(item.path))
    df = _read(spark, item)
    if item.declared_names and all(name in df.columns for name in item.declared_names):
        df = df.select(*(quoted(name) for name in item.declared_names))
    item.check_unsigned(df.columns, lambda column: _minimum(df, column))
    return df


def _read(spark: SparkSession, item: InputFile) -> DataFrame:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - slow to load

    try:
        return spark.read.format(item.rows.format).load(item.path.absolute().as_uri())
    except PySparkException as problem:
        raise unreadable(item, summary(str(problem)).message) from problem


def _minimum(df: DataFrame, column: str) -> float | None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    row = df.agg(F.min(quoted(column))).first()
    return None if row is None else row[0]
