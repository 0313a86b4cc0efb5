"""Inputs as Arrow batches, for runs without Spark: text is checked and Parquet is read, batch by batch.

What Spark makes of a file's types is made of them here: the same names, the same casts to the text's types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from pyspark_paralagg.command.facts import unreadable
from pyspark_paralagg.command.lines import tables
from pyspark_paralagg.datalog.lower.conform import conformed_columns
from pyspark_paralagg.errors import FixpointError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark_paralagg.command.facts import Columns, Examined
    from pyspark_paralagg.datalog.lower.resolved import Resolved, Source
    from pyspark_paralagg.datalog.parse.syntax import Assume

_TYPES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.uint64(): "decimal(20,0)",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.bool_(): "boolean",
    pa.date32(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
}
_COMPARISONS = {">=": pc.greater_equal, ">": pc.greater, "<=": pc.less_equal, "<": pc.less}
_WORD = 8


@dataclass(frozen=True)
class Given:
    """One file or folder of rows of a relation."""

    item: Examined
    columns: Columns
    dataset: ds.Dataset | None

    @property
    def size_bytes(self) -> int:
        """About as much as the rows take in memory."""
        if self.dataset is None:
            return self.item.path.stat().st_size
        return _WORD * len(self.columns) * int(self.dataset.count_rows())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""
        if self.item.lines is not None:
            for table in tables(self.item.lines):
                yield from table.to_batches()
        elif self.dataset is not None:
            try:
                yield from self.dataset.to_batches(columns=[name for name, _ in self.columns])
            except (OSError, pa.ArrowException) as problem:
                raise unreadable(self.item, str(problem)) from problem


def given(examined: Sequence[Examined]) -> dict[str, list[Given]]:
    """What there is for each relation.

    Raises ``UsageError`` ``PARALAGG_INPUT_UNREADABLE`` and, for a negative number in an unsigned column of Parquet,
    ``PARALAGG_BAD_FACT``; ``UnsupportedError`` ``PARALAGG_DELTA_NEEDS_SPARK``.
    """
    out: dict[str, list[Given]] = {}
    for item in examined:
        out.setdefault(item.rows.relation, []).append(_given(item))
    return out


def _given(item: Examined) -> Given:
    if item.lines is not None:
        return Given(item, item.columns or (), None)
    if item.rows.format == "delta":
        raise needs_spark(str(item.path))
    try:
        dataset = ds.dataset(str(item.path), format="parquet", partitioning="hive")
        first = next(dataset.get_fragments(), None)
        legacy = set() if first is None else _legacy_timestamps(first)
    except (OSError, pa.ArrowException) as problem:
        raise unreadable(item, str(problem)) from problem
    columns = [(f.name, "timestamp" if f.name in legacy else spark_type(f.type)) for f in dataset.schema]
    if item.chosen and set(item.chosen) <= {name for name, _ in columns}:
        columns = [(name, dict(columns)[name]) for name in item.chosen]
    item.check_unsigned([name for name, _ in columns], lambda column: _least(dataset, column))
    return Given(item, tuple(columns), dataset)


def needs_spark(path: str) -> UnsupportedError:
    """What to say of a Delta table."""
    return UnsupportedError(
        "PARALAGG_DELTA_NEEDS_SPARK",
        f"{path} is a Delta table, and only Spark reads and writes those",
        value=path,
        place="--backend",
        hint="leave --backend out, or use Parquet",
    )


def _legacy_timestamps(fragment: ds.ParquetFileFragment) -> set[str]:
    """Columns as Spark writes timestamps: 96 bits that do not say that they are instants."""
    schema = fragment.metadata.schema
    columns = [schema.column(n) for n in range(len(schema))]
    return {c.path for c in columns if c.physical_type == "INT96"}


def spark_type(of: pa.DataType) -> str:
    """The type that Spark would read; Arrow's own name where Spark has none for it.

    >>> spark_type(pa.decimal128(10, 2)), spark_type(pa.timestamp("us"))
    ('decimal(10,2)', 'timestamp_ntz')
    """
    if pa.types.is_dictionary(of):
        return spark_type(of.value_type)
    if pa.types.is_decimal(of):
        return f"decimal({of.precision},{of.scale})"
    if pa.types.is_timestamp(of):
        return "timestamp_ntz" if of.tz is None else "timestamp"
    return _TYPES.get(of, str(of))


def _least(dataset: ds.Dataset, column: str) -> float | None:
    found = (pc.min(batch.column(0)).as_py() for batch in dataset.to_batches(columns=[column]))
    return min((value for value in found if value is not None), default=None)


def rows_of(
    source: Source, files: Sequence[Given], resolved: Resolved, types: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    """The rows of a source, from files and from the text, as its columns, of the Arrow types ``types`` by Spark's.

    Raises ``UsageError`` where a file does not fit, and ``FixpointError`` ``PARALAGG_ASSUMPTION_VIOLATED``.
    """
    schema = pa.schema([(c.name, types[c.type]) for c in source.columns])
    for one in files:
        names = [name for name, _ in conformed_columns(one.columns, source, resolved, "file")]
        for batch in one.batches():
            arrays = [batch.column(name) for name in names]
            yield _checked(_cast(arrays, schema), source, resolved)
    if source.rows:
        columns = zip(*source.rows, strict=True)
        arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
        yield _checked(pa.RecordBatch.from_arrays(arrays, schema=schema), source, resolved)


def _cast(arrays: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    # Doubles of large integers are the nearest ones, timestamps of nanoseconds those before, as Spark reads them.
    made = [a if a.type == f.type else a.cast(f.type, safe=False) for a, f in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(made, schema=schema)


def _checked(batch: pa.RecordBatch, source: Source, resolved: Resolved) -> pa.RecordBatch:
    """``batch``, of which everything is true that the text assumes. A null is no violation."""
    for a in resolved.assumed:
        if a.relation == source.relation:
            column = batch.column(batch.schema.get_field_index(a.column))
            violated = column.filter(pc.invert(_holds(column, a)))
            if len(violated):
                raise FixpointError(
                    "PARALAGG_ASSUMPTION_VIOLATED",
                    f"assume says `{a.relation}.{a.column}` {a.op} {a.value}, and a row has {violated[0].as_py()}",
                    value=violated[0].as_py(),
                    place=f"input {a.relation}",
                )
    return batch


def _holds(column: pa.Array, assumed: Assume) -> pa.Array:
    holds = _COMPARISONS[assumed.op](column, assumed.value)
    # NaN is the largest number.
    return pc.or_(holds, pc.is_nan(column)) if pa.types.is_floating(column.type) and ">" in assumed.op else holds
