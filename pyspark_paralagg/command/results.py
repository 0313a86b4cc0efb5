"""Write a relation to one file as sorted Arrow batches, independently of the executor that computed it.

The text format is Soufflé's: tab separated, no header, strings verbatim. Floats are written so that reading them
gives the same value.
"""

from __future__ import annotations

import gzip
from typing import IO, TYPE_CHECKING, Protocol, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_paralagg.command.json_files import JsonLayout
from pyspark_paralagg.command.sqlite import write_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark_paralagg.command.directives import Rows
    from pyspark_paralagg.command.staging import Staging
    from pyspark_paralagg.datalog.parse.syntax import Text
    from pyspark_paralagg.report.run_report import RunReport


class Result(Protocol):
    """A relation that an executor computes. Its rows are sorted by all columns, from the first one on."""

    @property
    def columns(self) -> Sequence[tuple[str, str]]:
        """The names and Spark types of the columns."""

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the columns."""

    @property
    def report(self) -> RunReport | None:
        """The report of its recursion; None if it has none."""

    @property
    def encoded(self) -> Result:
        """The relation with records as the engine has them."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order."""

    def printable(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in order, with values of types that Soufflé lacks as text, in Spark's form."""

    def count(self) -> int:
        """Return the number of rows."""

    def write_delta(self, staged: Path, staging: Staging) -> int:
        """Write a Delta table to ``staged`` and return its number of rows."""


def write(  # noqa: PLR0913 - the parts of a file
    result: Result, rows: Rows, staged: Path, staging: Staging, text: Text, *, is_nullary: bool
) -> int:
    """Write ``result`` to ``staged`` and return the number of rows; ``is_nullary`` if it has no columns."""
    if rows.format == "delta":
        return result.write_delta(staged, staging)
    if rows.format == "parquet":
        return _write_parquet(result, staged)
    if rows.format == "sqlite" and rows.path is not None:
        return write_rows(result.columns, result.printable(), rows.table, rows.path, staged)
    with staged.open("wb") as plain:
        # Without a name and a time, equal rows give equal files.
        file = gzip.GzipFile("", "wb", fileobj=plain, mtime=0) if rows.is_compressed else plain
        with file:
            if rows.format == "json":
                return write_json(result, rows, cast("IO[bytes]", file), text, is_nullary=is_nullary)
            file.write(_header(result, rows, is_nullary=is_nullary))
            return _write_text(result, rows, cast("IO[bytes]", file), is_nullary=is_nullary)


def write_json(result: Result, rows: Rows, file: IO[bytes], text: Text, *, is_nullary: bool) -> int:
    """Write ``result`` as JSON and return the number of rows."""
    if is_nullary:
        count = result.count()
        file.write(b"[%b]\n" % (b"null\n" * count))
        return count
    layout = JsonLayout(text, rows.relation, is_object=rows.is_object)
    return layout.write(result.columns, result.encoded.printable(), file)


def write_framed(result: Result, rows: Rows, file: IO[bytes], *, is_nullary: bool) -> int:
    """Write ``result`` in Soufflé's format for standard output and return the number of rows."""
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
    """Return one line for each row. A null, which Datalog lacks, becomes an empty text."""
    fields = [_field(column, rows) for column in batch.columns]
    joined = pc.binary_join_element_wise(*fields, rows.delimiter, null_handling="replace", null_replacement="")
    lines = pc.binary_join_element_wise(joined, "", "\n")
    # A new array has its texts one after the other from the start of its buffer, which is the file's content.
    size = pc.sum(pc.binary_length(lines)).as_py() or 0
    return bytes(memoryview(lines.buffers()[2])[:size])


def _field(column: pa.Array, rows: Rows) -> pa.Array:
    if pa.types.is_floating(column.type):
        return pa.array([None if x is None else repr(x) for x in column.to_pylist()], pa.string())
    text = column.cast(pa.string())
    if rows.is_quoted and pa.types.is_string(column.type):
        doubled = pc.replace_substring(text, '"', '""')
        return pc.binary_join_element_wise('"', doubled, '"', "")
    return text
