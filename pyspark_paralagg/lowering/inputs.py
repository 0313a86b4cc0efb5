"""The rows that a text is given: DataFrames in the text's types, and the facts that it has itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_paralagg.datalog.terms import BOOLEAN, FLOAT, NUMBER, SYMBOL, spoken
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.relations import columns_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.datalog.resolved import Resolved, Source


def conformed(df: DataFrame, source: Source, resolved: Resolved) -> DataFrame:
    """``df`` as ``source`` has it; ``UsageError`` (``PARALAGG_DATALOG_INPUT``) where it does not fit."""
    found = columns_of(df)
    span = resolved.shapes[source.relation].place
    where = f", see {resolved.places.told(span)}" if span.line else ""
    if len(found) != len(source.columns):
        raise UsageError(
            "PARALAGG_DATALOG_INPUT",
            f"{source.relation} has {len(source.columns)} columns{where}, and the DataFrame {len(found)}: "
            f"{', '.join(n for n, _ in found)}",
            value=len(found),
            place=f"input {source.relation}",
            hint="select the columns that the text reads",
        )
    wanted = [c.name for c in source.columns]
    by_name = sorted(n for n, _ in found) == sorted(wanted)
    chosen = []
    for p, column in enumerate(source.columns):
        name, type_ = found[[n for n, _ in found].index(column.name) if by_name else p]
        if not _fits(type_, column.type):
            raise UsageError(
                "PARALAGG_DATALOG_INPUT",
                f"{column.name} of {source.relation} is a {spoken(column.type)}{where}, "
                f"and the DataFrame's {name} is {type_}",
                value=type_,
                place=f"input {source.relation}",
                hint=f"cast it: df.withColumn({name!r}, df[{name!r}].cast({column.type!r}))",
            )
        value = quoted(name) if type_ == column.type else f"cast({quoted(name)} as {column.type})"
        chosen.append(f"{value} AS {quoted(column.name)}")
    is_as_wanted = found == [(c.name, c.type) for c in source.columns]
    return df if is_as_wanted else df.selectExpr(*chosen)


def _fits(found: str, wanted: str) -> bool:
    if wanted == NUMBER:
        return is_integral(found)
    if wanted == FLOAT:
        return is_numeric(found)
    return found == wanted


def literal_rows(spark: SparkSession, source: Source) -> DataFrame:
    """The facts of the text as a DataFrame that the JVM holds itself."""
    types = {NUMBER: pa.int64(), FLOAT: pa.float64(), SYMBOL: pa.string(), BOOLEAN: pa.bool_()}
    ddl = ", ".join(f"{quoted(c.name)} {c.type}" for c in source.columns)
    if not source.rows:
        return spark.createDataFrame([], ddl)
    columns = list(zip(*source.rows, strict=True))
    arrays = [pa.array(list(v), type=types[c.type]) for v, c in zip(columns, source.columns, strict=True)]
    table = pa.Table.from_arrays(arrays, names=[c.name for c in source.columns])
    return spark.createDataFrame(table, ddl)
