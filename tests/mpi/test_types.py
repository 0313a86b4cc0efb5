"""Test words: every type and its nulls survive the conversion from Arrow and back; hashes are Spark's."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from rows import arrow_frame

from mpi_backend.comm import SingleRank
from mpi_backend.load.files import table_of
from mpi_backend.load.inputs import intern
from mpi_backend.state.owner import Owner
from mpi_backend.state.rows import flatten, unflatten
from mpi_backend.state.types import ColumnBuilder, from_arrow, to_arrow, type_of
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.program import Column

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAN, INF = float("nan"), float("inf")
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
VALUES: dict[str, list[Any]] = {
    "tinyint": [0, -128, 127],
    "smallint": [0, -32768, 32767],
    "int": [0, -(2**31), 2**31 - 1],
    "bigint": [0, -(2**63), 2**63 - 1, 42],
    "boolean": [True, False],
    "float": [0.0, 1.5, -2.25, NAN, INF, -INF],
    "double": [0.0, 0.1, -1e308, 5e-324, NAN, INF, -INF],
    "decimal(9,2)": [Decimal("0.00"), Decimal("-1234567.89"), Decimal("0.01")],
    "decimal(18,4)": [Decimal("99999999999999.9999"), Decimal("-99999999999999.9999"), Decimal("1.0000")],
    "date": [date(1970, 1, 1), date(1969, 12, 31), date(2024, 2, 29)],
    "timestamp": [EPOCH, EPOCH - timedelta(microseconds=1), EPOCH + timedelta(days=20_000, microseconds=7)],
    "timestamp_ntz": [datetime(1970, 1, 1), datetime(1912, 6, 23, 1, 2, 3, 4)],  # noqa: DTZ001 - without a zone
    "string": ["", "a", "abc", "abcd", "abcde", "é", "日本語"],
}


def _same(a: Any, b: Any) -> bool:  # noqa: ANN401 - values of any type
    return bool(a == b) or (isinstance(a, float) and isinstance(b, float) and a != a and b != b)  # noqa: PLR0124 - NaN


@pytest.mark.parametrize("nulls", ["no nulls", "some", "all"])
@pytest.mark.parametrize("name", VALUES)
def test_values_survive_the_round_trip(name: str, nulls: str) -> None:
    column_type = type_of(name)
    values = {"no nulls": VALUES[name], "some": [None, *VALUES[name], None], "all": [None, None]}[nulls]
    array = pa.array(values, column_type.arrow)
    column = from_arrow(column_type, pa.chunked_array([array, array.slice(1)]))
    result = to_arrow(column)
    assert result.type == column_type.arrow
    expected = [*values, *values[1:]]
    assert all(map(_same, result.to_pylist(), expected)), (result.to_pylist(), expected)
    assert not np.any(column.words[column.nulls]) if column.nulls is not None else nulls == "no nulls"


@pytest.mark.parametrize("capacity", [0, 1, 100])
@pytest.mark.parametrize("name", VALUES)
def test_a_column_is_built_from_pieces(name: str, capacity: int) -> None:
    pieces = [[], VALUES[name], [None, *VALUES[name]], VALUES[name] * 9, [None]]
    builder = ColumnBuilder(type_of(name), capacity)
    for piece in pieces:
        builder.add(pa.array(piece, type_of(name).arrow))
    values = [value for piece in pieces for value in piece]
    column = builder.build()
    assert len(column) == len(values)
    assert all(map(_same, to_arrow(column).to_pylist(), values))


@pytest.mark.parametrize("name", VALUES)
def test_an_empty_column_keeps_its_type(name: str) -> None:
    assert to_arrow(from_arrow(type_of(name), pa.array([], type_of(name).arrow))).type == type_of(name).arrow


def test_zero_and_nan_have_one_word_each() -> None:
    odd = np.array([0x7FF8000000000001, 0xFFF8000000000000], np.uint64).view(np.float64)
    words = from_arrow(type_of("double"), pa.array([0.0, -0.0, NAN, *odd])).words
    assert words[0] == words[1] == 0
    assert len(set(words[2:].tolist())) == 1


@pytest.mark.parametrize("name", ["decimal(19,0)", "array<int>", "binary", "interval day"])
def test_a_type_that_does_not_fit_into_a_word_is_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="PARALAGG_TYPE_UNSUPPORTED"):
        type_of(name)


@pytest.mark.parametrize("masked", [False, True])
def test_unflatten_inverts_flatten(*, masked: bool) -> None:
    columns = [from_arrow(type_of("int"), pa.array([1, None if masked else 5, 3], pa.int32()))]
    columns.append(from_arrow(type_of("double"), pa.array([0.5, 1.5, None if masked else 2.5])))
    result = unflatten(flatten(columns, 3, masked=masked), columns, masked=masked)
    assert [to_arrow(c).to_pylist() for c in result] == [to_arrow(c).to_pylist() for c in columns]


def _buckets(columns: list[tuple[str, list[Any]]], buckets: int) -> list[int]:
    """Return the engine's buckets of rows of these columns."""
    declared = [Column(f"c{n}", name) for n, (name, _) in enumerate(columns)]
    arrays = [pa.array(values, type_of(name).arrow) for name, values in columns]
    table = table_of(declared, [pa.RecordBatch.from_arrays(arrays, names=[c.name for c in declared])])
    strings, tables = intern({0: table}, [], SingleRank(), ansi=True)
    owner = Owner(range(len(columns)), [type_of(name) for name, _ in columns], buckets, 1)
    masked = any(c.nulls is not None for c in table.columns)
    rows, width = flatten(tables[0].columns, table.count, masked=masked), len(columns)
    result: list[int] = owner.buckets(rows, width + masked, width if masked else -1, strings, table.count).tolist()
    return result


@pytest.mark.parametrize("name", VALUES)
def test_buckets_are_those_of_sparks_hash_partitioning(spark: SparkSession, name: str) -> None:
    values = [*VALUES[name], None]
    schema = pa.schema([("x", type_of(name).arrow), ("n", pa.int64())])
    numbers = list(range(len(values)))
    table = pa.Table.from_arrays([pa.array(values, schema.field(0).type), pa.array(numbers)], schema=schema)
    df = arrow_frame(spark, table)
    expected = df.selectExpr("n", "pmod(hash(x), 1009) p", "pmod(hash(n, x), 1009) q").orderBy("n").collect()
    assert _buckets([(name, values)], 1009) == [row.p for row in expected]
    assert _buckets([("bigint", numbers), (name, values)], 1009) == [row.q for row in expected]
