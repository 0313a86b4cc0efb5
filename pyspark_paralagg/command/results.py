"""From a relation to a file: sorted, streamed as Arrow batches, written as one plain file, whoever computed it.

Text is Soufflé's: tab separated, no header, strings as they stand; floats are written so that they read back the same.
"""

from __future__ import annotations

import functools
from typing import IO, TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark_paralagg.command.directives import Rows
    from pyspark_paralagg.command.staging import Staging
    from pyspark_paralagg.report.run_report import RunReport


class Result(Protocol):
    """A relation that is, or will be, computed. Its rows come in order: by their columns, the first one first."""

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """Names and Spark types."""

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow's."""

    @property
    def report(self) -> RunReport | None:
        """How its recursion ran; None where it has none."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows."""

    def printable(self) -> Iterator[pa.RecordBatch]:
        """The rows, with texts for values of types that Soufflé does not know, as Spark shows them."""

    def count(self) -> int:
        """How many rows there are."""

    def write_delta(self, staged: Path, staging: Staging) -> int:
        """Writes a Delta table to ``staged``; how many rows it has."""


def write(result: Result, rows: Rows, staged: Path, staging: Staging, *, is_nullary: bool) -> int:
    """Write ``result`` to ``staged``, and return the number of rows. ``is_nullary``: it holds or does not."""
    if rows.format == "delta":
        return result.write_delta(staged, staging)
    if rows.format == "parquet":
        return _write_parquet(result, staged)
    with staged.open("wb") as file:
        file.write(_header(result, rows, is_nullary=is_nullary))
        return _write_text(result, rows, file, is_nullary=is_nullary)


def write_framed(result: Result, rows: Rows, file: IO[bytes], *, is_nullary: bool) -> int:
    """Write ``result`` as Soufflé shows a relation on standard output, and return the number of rows."""
    header = _header(result, rows, is_nullary=is_nullary)
    file.write(b"---------------\n%b\n%b===============\n" % (rows.relation.encode(), header))
    written = _write_text(result, rows, file, is_nullary=is_nullary)
    file.write(b"===============\n")
    return written


def _header(result: Result, rows: Rows, *, is_nullary: bool) -> bytes:
    names = [] if is_nullary else [name for name, _ in result.columns]
    return f"{rows.delimiter.join(names)}\n".encode() if rows.has_header else b""


def _write_text(result: Result, rows: Rows, file: IO[bytes], *, is_nullary: bool) -> int:
    if is_nullary:
        count = result.count()
        file.write(b"()\n" * count)
        return count
    written = 0
    for batch in result.printable():
        file.write(_lines(batch, rows))
        written += batch.num_rows
    return written


def _write_parquet(result: Result, staged: Path) -> int:
    written = 0
    with pq.ParquetWriter(staged, result.schema) as writer:
        for batch in result.batches():
            writer.write_batch(batch)
            written += batch.num_rows
    return written


def _lines(batch: pa.RecordBatch, rows: Rows) -> bytes:
    """One line a row. A null, which Datalog does not have, is written as nothing."""
    fields = [_field(column, rows) for column in batch.columns]
    joined = pc.binary_join_element_wise(*fields, rows.delimiter, null_handling="replace", null_replacement="")
    ended = pc.binary_join_element_wise(joined, "", "\n")
    # The bytes of an array that was just made lie one after the other from the start: they are the file's.
    size = pc.sum(pc.binary_length(ended)).as_py() or 0
    return bytes(memoryview(ended.buffers()[2])[:size])


def _field(column: pa.Array, rows: Rows) -> pa.Array:
    if pa.types.is_floating(column.type):
        return pa.array([None if x is None else repr(x) for x in column.to_pylist()], pa.string())
    text = column.cast(pa.string())
    if rows.is_quoted and pa.types.is_string(column.type):
        special = functools.reduce(pc.or_, (pc.match_substring(text, c) for c in ('"', "\r", "\n", rows.delimiter)))
        doubled = pc.replace_substring(text, '"', '""')
        return pc.if_else(special, pc.binary_join_element_wise('"', doubled, '"', ""), text)
    return text
