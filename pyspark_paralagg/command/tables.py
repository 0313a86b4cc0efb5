"""Read inputs as Arrow batches for runs without Spark: check text and read Parquet, batch by batch.

Types have Spark's names, and the casts to the text's types are those of Spark.
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

    from pyspark_paralagg.command.facts import Columns, InputFile
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
_UNBUFFERED = ds.ParquetFragmentScanOptions(pre_buffer=False)
"""Reads the files of this machine as they are needed, which takes a third less memory than ahead, and no more time."""
_WORD = 8


@dataclass(frozen=True)
class OpenInput:
    """A file or folder with rows of a relation, opened."""

    item: InputFile
    columns: Columns
    dataset: ds.Dataset | None

    @property
    def size_bytes(self) -> int:
        """The approximate size of the rows in memory."""
        if self.dataset is None:
            return self.item.path.stat().st_size
        return _WORD * len(self.columns) * int(self.dataset.count_rows())

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        if self.item.lines is not None:
            for table in tables(self.item.lines):
                yield from table.to_batches()
        elif self.dataset is not None:
            try:
                names = [name for name, _ in self.columns]
                yield from self.dataset.to_batches(columns=names, fragment_scan_options=_UNBUFFERED)
            except (OSError, pa.ArrowException) as problem:
                raise unreadable(self.item, str(problem)) from problem


def open_inputs(input_files: Sequence[InputFile]) -> dict[str, list[OpenInput]]:
    """Return the opened inputs of each relation.

    Raise ``UsageError`` ``PARALAGG_INPUT_UNREADABLE``, and ``PARALAGG_BAD_FACT`` for a negative number in an unsigned
    column of Parquet; raise ``UnsupportedError`` ``PARALAGG_DELTA_NEEDS_SPARK`` for a Delta table.
    """
    result: dict[str, list[OpenInput]] = {}
    for item in input_files:
        result.setdefault(item.rows.relation, []).append(_open_input(item))
    return result


def _open_input(item: InputFile) -> OpenInput:
    if item.lines is not None:
        return OpenInput(item, item.columns or (), None)
    if item.rows.format == "delta":
        raise needs_spark(str(item.path))
    try:
        dataset = ds.dataset(str(item.path), format="parquet", partitioning="hive")
        first = next(dataset.get_fragments(), None)
        legacy = set() if first is None else _legacy_timestamps(first)
    except (OSError, pa.ArrowException) as problem:
        raise unreadable(item, str(problem)) from problem
    columns = [(f.name, "timestamp" if f.name in legacy else spark_type(f.type)) for f in dataset.schema]
    if item.declared_names and set(item.declared_names) <= {name for name, _ in columns}:
        columns = [(name, dict(columns)[name]) for name in item.declared_names]
    item.check_unsigned([name for name, _ in columns], lambda column: _minimum(dataset, column))
    return OpenInput(item, tuple(columns), dataset)


def needs_spark(path: str) -> UnsupportedError:
    """Return the error for a Delta table."""
    return UnsupportedError(
        "PARALAGG_DELTA_NEEDS_SPARK",
        f"{path} is a Delta table, but only Spark reads and writes Delta tables",
        value=path,
        place="--backend",
        hint="remove --backend, or use Parquet",
    )


def _legacy_timestamps(fragment: ds.ParquetFileFragment) -> set[str]:
    """Return the columns with Spark's legacy timestamps: 96 bits without the mark that they are instants."""
    schema = fragment.metadata.schema
    columns = [schema.column(n) for n in range(len(schema))]
    return {c.path for c in columns if c.physical_type == "INT96"}


def spark_type(arrow_type: pa.DataType) -> str:
    """Return the Spark type of an Arrow type; Arrow's own name if Spark has none for it.

    >>> spark_type(pa.decimal128(10, 2)), spark_type(pa.timestamp("us"))
    ('decimal(10,2)', 'timestamp_ntz')
    """
    if pa.types.is_dictionary(arrow_type):
        return spark_type(arrow_type.value_type)
    if pa.types.is_decimal(arrow_type):
        return f"decimal({arrow_type.precision},{arrow_type.scale})"
    if pa.types.is_timestamp(arrow_type):
        return "timestamp_ntz" if arrow_type.tz is None else "timestamp"
    return _TYPES.get(arrow_type, str(arrow_type))


def _minimum(dataset: ds.Dataset, column: str) -> float | None:
    minima = (pc.min(batch.column(0)).as_py() for batch in dataset.to_batches(columns=[column]))
    return min((value for value in minima if value is not None), default=None)


def source_batches(
    source: Source, files: Sequence[OpenInput], resolved: Resolved, types: Mapping[str, pa.DataType]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a source, from files and from the text, with its columns.

    ``types`` maps Spark types to Arrow types. Raise ``UsageError`` if a file does not fit, and ``FixpointError``
    ``PARALAGG_ASSUMPTION_VIOLATED``.
    """
    schema = pa.schema([(c.name, types[c.type]) for c in source.columns])
    for file in files:
        names = [name for name, _ in conformed_columns(file.columns, source, resolved, "file")]
        for batch in file.batches():
            arrays = [batch.column(name) for name in names]
            yield _checked(_cast(arrays, schema), source, resolved)
    if source.rows:
        columns = zip(*source.rows, strict=True)
        arrays = [pa.array(list(values), field.type) for values, field in zip(columns, schema, strict=True)]
        yield _checked(pa.RecordBatch.from_arrays(arrays, schema=schema), source, resolved)


def _cast(arrays: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    # As in Spark, large integers become the nearest double, and nanoseconds are truncated.
    converted = [a if a.type == f.type else a.cast(f.type, safe=False) for a, f in zip(arrays, schema, strict=True)]
    return pa.RecordBatch.from_arrays(converted, schema=schema)


def _checked(batch: pa.RecordBatch, source: Source, resolved: Resolved) -> pa.RecordBatch:
    """Return ``batch``; raise if a row violates an assumption of the text. A null is no violation."""
    for a in resolved.assumed:
        if a.relation == source.relation:
            column = batch.column(batch.schema.get_field_index(a.column))
            violated = column.filter(pc.invert(_holds(column, a)))
            if len(violated):
                raise FixpointError(
                    "PARALAGG_ASSUMPTION_VIOLATED",
                    f"`{a.relation}.{a.column}` {a.op} {a.value} is assumed, but a row has {violated[0].as_py()}",
                    value=violated[0].as_py(),
                    place=f"input {a.relation}",
                )
    return batch


def _holds(column: pa.Array, assumed: Assume) -> pa.Array:
    holds = _COMPARISONS[assumed.op](column, assumed.value)
    # Spark orders NaN above all other numbers.
    return pc.or_(holds, pc.is_nan(column)) if pa.types.is_floating(column.type) and ">" in assumed.op else holds
