r"""Read and compare rows in tests: text tables, DataFrames created without Python workers, results as tuples.

A table is tab-separated with a first line of ``name type`` cells; ``\N`` is null.
"""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type
from pyspark.sql.types import DataType, StructType, TimestampType, _parse_datatype_string
from spark_versions import SPARK

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

NULL = "\\N"


def read_table(path: Path) -> tuple[str, list[tuple[Any, ...]]]:
    """Return the schema (DDL) and the rows of a table."""
    head, *lines = path.read_text().splitlines()
    columns = [cell.split(" ", 1) for cell in head.split("\t")]
    rows = []
    for line in lines:
        cells = line.split("\t")
        assert len(cells) == len(columns), f"{path}: {line!r}"
        rows.append(tuple(parse(cell, kind) for cell, (_, kind) in zip(cells, columns, strict=True)))
    return ", ".join(f"`{name}` {kind}" for name, kind in columns), rows


def parse(cell: str, kind: str) -> Any:  # noqa: ANN401, PLR0911 - a value of any Spark type, a return for each
    """Return a cell as a Python value of the Spark type ``kind``."""
    if cell == NULL:
        return None
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return int(cell)
    if kind in ("float", "double"):
        return float(cell)
    if kind == "boolean":
        return {"true": True, "false": False}[cell]
    if kind.startswith("decimal"):
        return Decimal(cell)
    if kind == "date":
        return date.fromisoformat(cell)
    if kind == "timestamp":
        return datetime.fromisoformat(cell).replace(tzinfo=timezone.utc)
    assert kind == "string", kind
    return cell


def schema_of(ddl: str) -> StructType:
    schema = _parse_datatype_string(ddl)  # `StructType.fromDDL` in Spark 4
    assert isinstance(schema, StructType)
    return schema


def frame(spark: SparkSession, ddl: str, rows: Iterable[tuple[Any, ...]]) -> DataFrame:
    """Return rows as a DataFrame that is held in the JVM."""
    schema = schema_of(ddl)
    arrow = pa.schema([pa.field(f.name, arrow_type(f.dataType), f.nullable) for f in schema])
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(list(c), type=f.type) for c, f in zip(columns, arrow, strict=True)]
    return arrow_frame(spark, pa.Table.from_arrays(arrays, schema=arrow), schema)


def arrow_frame(spark: SparkSession, table: pa.Table, schema: StructType | None = None) -> DataFrame:
    """Return an Arrow table as a DataFrame that is held in the JVM."""
    if SPARK >= (4, 0):
        return spark.createDataFrame(table, schema)
    types = schema or from_arrow_schema(table.schema)
    if any(pa.types.is_floating(f.type) for f in table.schema):  # pandas has one sign for NaN and null
        return spark.createDataFrame(list(zip(*(c.to_pylist() for c in table.columns), strict=True)), types)
    # Spark 3.5 takes no Arrow table. From pandas it makes Arrow again, and a relation of known size.
    import pandas as pd  # noqa: PLC0415 - slow to load

    columns = {name: pd.Series(table.column(name).to_pylist(), dtype=object) for name in table.column_names}
    spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
    spark.conf.set("spark.sql.execution.arrow.pyspark.fallback.enabled", "false")
    try:
        return spark.createDataFrame(pd.DataFrame(columns), types)
    finally:
        spark.conf.unset("spark.sql.execution.arrow.pyspark.enabled")
        spark.conf.unset("spark.sql.execution.arrow.pyspark.fallback.enabled")


def arrow_type(spark_type: DataType) -> pa.DataType:
    """Return the Arrow type. The argument for "UTC" timestamps differs between Spark versions."""
    return pa.timestamp("us", tz="UTC") if isinstance(spark_type, TimestampType) else to_arrow_type(spark_type)


def rows_of(df: DataFrame) -> list[tuple[Any, ...]]:
    """Return the rows of ``df``, in no order."""
    return [tuple(row) for row in df.collect()]


def assert_same_rows(actual: Iterable[tuple[Any, ...]], expected: Iterable[tuple[Any, ...]], rel: float = 1e-9) -> None:
    """Assert equality as bags: doubles to ``rel``, NaN equals NaN, and -0.0 equals 0.0, as in Spark."""
    left, right = sorted(actual, key=_order), sorted(expected, key=_order)
    assert len(left) == len(right), f"{len(left)} rows, expected {len(right)}: {left[:20]} / {right[:20]}"
    for a, b in zip(left, right, strict=True):
        assert len(a) == len(b), f"{a}, expected {b}"
        assert all(_same(x, y, rel) for x, y in zip(a, b, strict=True)), f"{a}, expected {b}"


def _same(a: Any, b: Any, rel: float) -> bool:  # noqa: ANN401 - a value of any Spark type
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=rel, abs_tol=1e-12)
    if isinstance(a, datetime) and isinstance(b, datetime):
        return _naive(a) == _naive(b)
    return type(a) is type(b) and bool(a == b)


def _order(row: tuple[Any, ...]) -> tuple[Any, ...]:
    # Doubles are rounded, so that the last digit does not change the order.
    return tuple((v is None, _sortable(v)) for v in row)


def _sortable(value: Any) -> Any:  # noqa: ANN401 - a value of any Spark type
    if value is None:
        return 0
    if isinstance(value, float):
        return float("inf") if math.isnan(value) else round(value, 6) + 0.0
    return _naive(value) if isinstance(value, datetime) else value


def _naive(value: datetime) -> datetime:
    # Spark returns timestamps in the machine's zone, without a zone.
    return value.astimezone(timezone.utc).replace(tzinfo=None)
