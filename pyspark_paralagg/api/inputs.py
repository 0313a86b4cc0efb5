"""Convert the inputs of a text: DataFrames to the text's types, and its facts to DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from pyspark_paralagg.api.relations import columns_of
from pyspark_paralagg.datalog.lower.conform import conformed_columns
from pyspark_paralagg.datalog.lower.terms import BOOLEAN, FLOAT, NUMBER, SYMBOL
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.datalog.lower.resolved import Resolved, Source


def conform_input(df: DataFrame, source: Source, resolved: Resolved) -> DataFrame:
    """Return ``df`` with the columns and types of ``source``; raise ``PARALAGG_DATALOG_INPUT`` if it does not fit."""
    columns = columns_of(df)
    exprs = []
    for (name, type_), column in zip(conformed_columns(columns, source, resolved), source.columns, strict=True):
        value = quoted(name) if type_ == column.type else f"cast({quoted(name)} as {column.type})"
        exprs.append(f"{value} AS {quoted(column.name)}")
    is_conformed = columns == [(c.name, c.type) for c in source.columns]
    return df if is_conformed else df.selectExpr(*exprs)


def literal_rows(spark: SparkSession, source: Source) -> DataFrame:
    """Return the facts of the text as a DataFrame whose rows are in the JVM."""
    types = {NUMBER: pa.int64(), FLOAT: pa.float64(), SYMBOL: pa.string(), BOOLEAN: pa.bool_()}
    ddl = ", ".join(f"{quoted(c.name)} {c.type}" for c in source.columns)
    if not source.rows or spark.version.startswith("3."):  # Spark 3.5 takes no Arrow table
        return spark.createDataFrame(list(source.rows), ddl)
    columns = list(zip(*source.rows, strict=True))
    arrays = [pa.array(list(v), type=types[c.type]) for v, c in zip(columns, source.columns, strict=True)]
    table = pa.Table.from_arrays(arrays, names=[c.name for c in source.columns])
    return spark.createDataFrame(table, ddl)
