"""Provide Arrow tables as results: rows in Spark's sort order, values in Spark's text form."""

from __future__ import annotations

from decimal import Decimal
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pyspark_paralagg.command.tables import needs_spark, spark_type
from pyspark_paralagg.datalog.desugar.structures import decoder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark_paralagg.command.staging import Staging
    from pyspark_paralagg.datalog.parse.syntax import Text
    from pyspark_paralagg.report.run_report import RunReport

_BATCH_ROWS = 1 << 16


class TableResult:
    """A relation with the rows of ``table``; ``report`` describes its recursion.

    ``encoded`` has its records as the engine has them.
    """

    def __init__(self, table: pa.Table, report: RunReport | None, encoded: TableResult | None = None) -> None:
        self._table = table
        self.report = report
        self.encoded = encoded or self

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """The names and Spark types of the columns."""
        return [(f.name, spark_type(f.type)) for f in self._table.schema]

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the columns."""
        return self._table.schema

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order."""
        for start in range(0, len(self._order), _BATCH_ROWS):
            yield from self._table.take(self._order[start : start + _BATCH_ROWS]).combine_chunks().to_batches()

    def printable(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with values of types that Soufflé lacks as text."""
        for batch in self.batches():
            yield pa.RecordBatch.from_arrays([_printable(c) for c in batch.columns], names=batch.schema.names)

    def count(self) -> int:
        """Return the number of rows."""
        return int(self._table.num_rows)

    def write_delta(self, staged: Path, staging: Staging) -> int:
        """Raise ``UnsupportedError``, as only Spark writes Delta tables."""
        del staging
        raise needs_spark(str(staged))

    @cached_property
    def _order(self) -> pa.Array:
        """The row numbers sorted by all columns but paths: nulls first, NaN last."""
        from mpi_backend.state.order import row_order  # noqa: PLC0415 - not needed on Spark

        return row_order(self._table.columns)


def decoded_table(table: pa.Table, text: Text, relation: str) -> pa.Table:
    """Return the rows of ``relation`` with records and branches in Soufflé's text instead of their encoding."""
    for n, structure in enumerate(text.columns.get(relation, ())):
        if structure is not None:
            decode = decoder(structure, text.structures)
            values = pa.chunked_array([[decode(v) for v in table.column(n).to_pylist()]], pa.string())
            table = table.set_column(n, table.schema.names[n], values)
    return table


def _printable(column: pa.Array) -> pa.Array:
    if pa.types.is_float32(column.type):
        return column.cast(pa.float64())
    if pa.types.is_decimal(column.type) or pa.types.is_timestamp(column.type) or pa.types.is_nested(column.type):
        return pa.array([None if v is None else _spark_text(v) for v in column.to_pylist()], pa.string())
    return column


def _spark_text(value: Any) -> str:  # noqa: ANN401, PLR0911 - any value of a column; a return for each kind
    """Format a value as Spark casts it to a string; instants are in this machine's zone, which is Spark's default."""
    if isinstance(value, list):
        return f"[{', '.join(map(_spark_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(map(_spark_text, value.values()))}}}"
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Decimal):
        return format(value, "f")
    if not hasattr(value, "tzinfo"):
        return str(value)
    local = value.astimezone().replace(tzinfo=None) if value.tzinfo is not None else value
    whole, dot, fraction = local.isoformat(sep=" ").partition(".")
    return f"{whole}{dot}{fraction.rstrip('0')}"
