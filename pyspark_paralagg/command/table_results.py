"""Arrow tables as results: sorted as Spark sorts, shown as Spark shows values."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pyspark_paralagg.command.tables import needs_spark, spark_type

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark_paralagg.command.staging import Staging
    from pyspark_paralagg.report.run_report import RunReport

_BATCH_ROWS = 1 << 16


class TableResult:
    """A relation as ``table`` has it, which ``report`` tells of."""

    def __init__(self, table: pa.Table, report: RunReport | None) -> None:
        self._table = table
        self.report = report

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """Names and Spark types."""
        return [(f.name, spark_type(f.type)) for f in self._table.schema]

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow's."""
        return self._table.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""
        for start in range(0, len(self._order), _BATCH_ROWS):
            yield from self._table.take(self._order[start : start + _BATCH_ROWS]).combine_chunks().to_batches()

    def printable(self) -> Iterator[pa.RecordBatch]:
        """The rows, with texts for values of types that Soufflé does not know."""
        for batch in self.batches():
            yield pa.RecordBatch.from_arrays([_printable(c) for c in batch.columns], names=batch.schema.names)

    def count(self) -> int:
        """How many rows there are."""
        return int(self._table.num_rows)

    def write_delta(self, staged: Path, staging: Staging) -> int:
        """Only Spark does that."""
        del staging
        raise needs_spark(str(staged))

    @cached_property
    def _order(self) -> pa.Array:
        """Row numbers by the columns: nulls first, NaN last."""
        keys: dict[str, pa.ChunkedArray] = {}
        for n, column in enumerate(self._table.columns):
            if column.null_count:
                keys[f"{n} is there"] = pc.is_valid(column)
            if pa.types.is_floating(column.type):
                keys[f"{n} is NaN"] = pc.is_nan(column)
            keys[str(n)] = column
        return pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])


def _printable(column: pa.Array) -> pa.Array:
    if pa.types.is_float32(column.type):
        return column.cast(pa.float64())
    if pa.types.is_decimal(column.type) or pa.types.is_timestamp(column.type):
        return pa.array([None if v is None else _shown(v) for v in column.to_pylist()], pa.string())
    return column


def _shown(value: Any) -> str:  # noqa: ANN401 - a decimal or a time
    """As Spark casts it to a string; instants in the zone of this machine, as Spark has them unless told otherwise."""
    if not hasattr(value, "tzinfo"):
        return format(value, "f")
    local = value.astimezone().replace(tzinfo=None) if value.tzinfo is not None else value
    whole, dot, fraction = local.isoformat(sep=" ").partition(".")
    return f"{whole}{dot}{fraction.rstrip('0')}"
