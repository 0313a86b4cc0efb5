"""From `.input` to DataFrames: text is checked and copied without Spark, Parquet and Delta are read in place.

Two stages, so that what is wrong with files is told before Spark starts: ``examine`` looks at every file, ``load``
makes DataFrames of what it found.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from pyspark_paralagg.command.failure import summary
from pyspark_paralagg.command.lines import FactLines, copy_to_parquet
from pyspark_paralagg.command.values import NULLARY
from pyspark_paralagg.datalog.places import Places
from pyspark_paralagg.datalog.shapes import HOLDS
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.command.directives import Rows
    from pyspark_paralagg.datalog.syntax import Text

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Examined:
    """An input that can be loaded. ``columns`` is None where the file alone knows them."""

    rows: Rows
    path: Path
    columns: Columns | None
    unsigned: frozenset[str]


def examine(
    text: Text,
    inputs: Sequence[Rows],
    types: Mapping[str, Columns],
    unsigned: Mapping[str, frozenset[str]],
    work: Path,
) -> list[Examined]:
    """Check every file of ``inputs``; the folder ``work`` gets a copy of what is text.

    ``types`` and ``unsigned`` are what the text declares. Raises ``UsageError`` ``PARALAGG_BAD_FACT`` (a line),
    ``DatalogError`` ``PARALAGG_INPUT_UNDECLARED`` (text without types).
    """
    examined = []
    for number, rows in enumerate(inputs):
        path = rows.path
        if path is None:  # only outputs go to no file
            continue
        columns, positive = types.get(rows.relation), unsigned.get(rows.relation, frozenset())
        if rows.format == "text":
            if columns is None:
                raise _undeclared(text, rows, path)
            read = columns or ((HOLDS, NULLARY),)
            columns = columns or ((HOLDS, "boolean"),)
            lines = FactLines(path, rows.relation, read, positive, rows.delimiter, rows.has_header, rows.is_quoted)
            path = work / f"{number}.parquet"
            copy_to_parquet(lines, path)
        examined.append(Examined(rows, path, columns, positive))
    return examined


def load(spark: SparkSession, examined: Sequence[Examined]) -> dict[str, DataFrame]:
    """A DataFrame for each relation; several inputs of one relation are put together.

    Raises ``UsageError`` ``PARALAGG_INPUT_UNREADABLE``, and ``PARALAGG_BAD_FACT`` for a negative number in an unsigned
    column of Parquet or Delta. Whether other types fit is for ``datalog`` to tell.
    """
    by_relation: dict[str, list[DataFrame]] = {}
    for item in examined:
        by_relation.setdefault(item.rows.relation, []).append(_frame(spark, item))
    return {name: functools.reduce(lambda a, b: a.union(b), frames) for name, frames in by_relation.items()}


def _frame(spark: SparkSession, item: Examined) -> DataFrame:
    if item.rows.format == "text":
        # The copy is on this machine. Executors elsewhere get the rows from the driver.
        if (spark.sparkContext.master or "").startswith("local"):
            ddl = ", ".join(f"{quoted(name)} {spark_type}" for name, spark_type in item.columns or ())
            return spark.read.schema(ddl).parquet(item.path.as_uri())
        return spark.createDataFrame(pq.read_table(item.path))
    df = _read(spark, item)
    names = [name for name, _ in item.columns or ()]
    if all(name in df.columns for name in names):
        df = df.select(*(quoted(name) for name in names)) if names else df  # a file may have more than is declared
    _check_unsigned(df, item)
    return df


def _read(spark: SparkSession, item: Examined) -> DataFrame:
    from pyspark.errors import PySparkException  # noqa: PLC0415 - slow to load

    try:
        return spark.read.format(item.rows.format).load(item.path.absolute().as_uri())
    except PySparkException as problem:
        form = item.rows.format.capitalize()
        raise UsageError(
            "PARALAGG_INPUT_UNREADABLE",
            f"{item.path} does not read as {form}: {summary(str(problem)).message}",
            value=str(item.path),
            place=f".input {item.rows.relation}",
        ) from problem


def _check_unsigned(df: DataFrame, item: Examined) -> None:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as above

    columns = item.columns or ()
    if not item.unsigned or len(df.columns) != len(columns):
        return  # a wrong number of columns is for `datalog` to tell
    declared = [name for name, _ in columns]
    found = declared if set(declared) == set(df.columns) else df.columns  # by name or by position, as `datalog` has it
    positive = [(name, source) for name, source in zip(declared, found, strict=True) if name in item.unsigned]
    for name, source in positive:
        least = df.agg(F.min(quoted(source))).first()
        if least is not None and least[0] is not None and least[0] < 0:
            raise UsageError(
                "PARALAGG_BAD_FACT",
                f"{least[0]} is negative",
                value=least[0],
                place=str(item.path),
                hint=f"column {name} of {item.rows.relation} is unsigned",
            )


def _undeclared(text: Text, rows: Rows, path: Path) -> UsageError:
    return Places(text.source, text.name).error(
        "PARALAGG_INPUT_UNDECLARED",
        f"{path} does not say of what type its columns are, and {rows.relation} is not declared",
        rows.span,
        value=rows.relation,
        hint=f"declare it, as in .decl {rows.relation}(x: number, name: symbol)",
    )
