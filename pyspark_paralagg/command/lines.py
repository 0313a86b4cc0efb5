"""Read text files of facts, one fact a line, tables of SQLite, and JSON; check each value; copy to Parquet for Spark.

There are two readers. Arrow's reads a million lines in a third of a second. The careful one reads line by line and
defines the format; it reads the blocks that Arrow's refuses. Such a block is valid after all (``+5``, a long
delimiter), or raises an error that names file, line and value. Neither needs Spark, so they raise before it starts.

Strings have no quotes (except with ``rfc4180``), no escapes and no trimming; numbers may have blanks around.
"""

from __future__ import annotations

import codecs
import csv
import dataclasses
import gzip
import io
import itertools
import re
from typing import IO, TYPE_CHECKING, Any, NoReturn, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from pyspark_paralagg.command.sqlite import read_rows
from pyspark_paralagg.command.values import FALSE, NULLARY, TRUE, converter
from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from pyspark_paralagg.command.json_files import JsonLayout
    from pyspark_paralagg.datalog.desugar.structure_reader import StructureReader

_ARROW = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    NULLARY: pa.bool_(),
}
_KINDS = {"bigint": "number", "double": "float", "string": "symbol", "boolean": "boolean", NULLARY: NULLARY}
_BLOCK = 1 << 23
_BLOCK_ROWS = 1 << 17
_GZIP = b"\x1f\x8b"
_MAX_SHOWN = 60


@dataclasses.dataclass(frozen=True)
class FactLines:
    """A text file of facts and its format, the ``table`` of a SQLite database, or the layout of a ``json`` file.

    ``columns`` are names and Spark types; ``readers`` has the columns with records or branches.
    """

    path: Path
    relation: str
    columns: tuple[tuple[str, str], ...]
    unsigned: frozenset[str] = frozenset()
    delimiter: str = "\t"
    has_header: bool = False
    is_quoted: bool = False
    readers: Mapping[str, StructureReader] = dataclasses.field(default_factory=dict)
    table: str | None = None
    json: JsonLayout | None = None

    @property
    def rows(self) -> Iterator[list[str]] | None:
        """The rows of a database or JSON file, None for a text file."""
        if self.table is not None:
            return read_rows(self.path, self.table, len(self.columns))
        if self.json is None:
            return None
        with _open(self.path) as file:
            return self.json.read(self.path, file.read(), self.columns)

    @property
    def schema(self) -> pa.Schema:
        """The Arrow schema of the columns."""
        return pa.schema([(name, _ARROW[spark_type]) for name, spark_type in self.columns])

    def kind(self, column: str) -> str:
        """Return the Datalog type of a column."""
        if column in self.readers:
            return self.readers[column].type
        return "unsigned" if column in self.unsigned else _KINDS[dict(self.columns)[column]]


class _NeedsCarefulReader(Exception):  # noqa: N818 - not an error: the careful reader decides
    """A block that Arrow would read differently from the careful reader."""


def copy_to_parquet(lines: FactLines, target: Path) -> int:
    """Write the facts to the file ``target`` and return their number; structures stay text, as a DataFrame has them.

    Raise ``UsageError`` ``PARALAGG_BAD_FACT`` for the first line that is not a fact of the relation.
    """
    rows = 0
    with pq.ParquetWriter(target, lines.schema, compression="none") as writer:
        for facts in tables(lines, encodes=False):
            writer.write_table(facts)
            rows += facts.num_rows
    return rows


def tables(lines: FactLines, *, encodes: bool = True) -> Iterator[pa.Table]:
    """Yield the facts, about 8 MB of text at a time, structures as the engine has them; raise like ``copy_to_parquet``.

    Without ``encodes``, structures are checked and stay text.
    """
    rows = lines.rows
    if rows is not None:
        numbered = enumerate(rows, 1)
        while block_rows := list(itertools.islice(numbered, _BLOCK_ROWS)):
            yield _converted(lines, block_rows, encodes=encodes)
        return
    for number, block in _blocks(lines):
        try:
            yield _read_fast(lines, number, block)
        except (pa.ArrowInvalid, _NeedsCarefulReader):  # noqa: PERF203 - each block is read separately
            yield _read_carefully(lines, number, block, encodes=encodes)


def _blocks(lines: FactLines) -> Iterator[tuple[int, bytes]]:
    """Yield blocks of whole lines, about 8 MB each, with the first line's number; no quoted value spans blocks."""
    number, rest = 1, b""
    with _open(lines.path) as file:
        while data := file.read(_BLOCK):
            data = rest + data
            end = data.rfind(b"\n") + 1
            while end and lines.is_quoted and data.count(b'"', 0, end) % 2:
                end = data.rfind(b"\n", 0, end - 1) + 1
            block, rest = data[:end], data[end:]
            if block:
                yield number, block
            number += block.count(b"\n")
    if rest:
        yield number, rest


def _open(path: Path) -> IO[bytes]:
    """Open a file of facts, which may be compressed with gzip."""
    with path.open("rb") as file:
        is_compressed = file.read(len(_GZIP)) == _GZIP
    return cast("IO[bytes]", gzip.open(path)) if is_compressed else path.open("rb")


def _read_fast(lines: FactLines, number: int, block: bytes) -> pa.Table:
    if (
        lines.readers
        or lines.columns[0][1] == NULLARY
        or len(lines.delimiter.encode()) != 1
        or not _is_plain(lines, number, block)
    ):
        raise _NeedsCarefulReader
    table = pa_csv.read_csv(
        pa.BufferReader(block),
        read_options=pa_csv.ReadOptions(
            column_names=[name for name, _ in lines.columns], skip_rows=int(lines.has_header and number == 1)
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=lines.delimiter,
            quote_char='"' if lines.is_quoted else False,
            escape_char=False,
            newlines_in_values=lines.is_quoted,
            ignore_empty_lines=False,
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=lines.schema, null_values=[], true_values=list(TRUE), false_values=list(FALSE)
        ),
    )
    for name in lines.unsigned:
        minimum = pc.min(table.column(name)).as_py()
        if minimum is not None and minimum < 0:
            raise _NeedsCarefulReader
    return table


def _is_plain(lines: FactLines, number: int, block: bytes) -> bool:
    r"""Return whether Arrow reads these lines like the careful reader.

    Arrow ends a line at a ``\r`` within it, which belongs to a string. Arrow reads an empty line as one empty value
    for each column, not as one value. Arrow closes an unclosed quote at the end of the block. A byte order mark counts
    at the file's start only.
    """
    if number > 1 and block.startswith(codecs.BOM_UTF8):
        return False
    has_returns = b"\r" in block
    if has_returns and re.search(rb"\r(?!\n)", block):
        return False
    if len(lines.columns) > 1 and (
        block.startswith((b"\n", b"\r\n")) or b"\n\n" in block or (has_returns and b"\n\r\n" in block)
    ):
        return False
    return not lines.is_quoted or block.count(b'"') % 2 == 0


def _read_carefully(lines: FactLines, number: int, block: bytes, *, encodes: bool) -> pa.Table:
    split = _quoted_fields if lines.is_quoted else _plain_fields
    rows = (row for row in split(lines, number, block) if not (row[0] == 1 and lines.has_header))
    return _converted(lines, rows, encodes=encodes)


def _converted(lines: FactLines, rows: Iterable[tuple[int, list[str]]], *, encodes: bool) -> pa.Table:
    """Return the facts of ``rows``, which are numbered."""
    converters = [_converter(lines, name, spark_type, encodes=encodes) for name, spark_type in lines.columns]
    columns: list[list[Any]] = [[] for _ in converters]
    for fact in _facts(lines, rows, converters):
        for column, value in zip(columns, fact, strict=True):
            column.append(value)
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, lines.schema, strict=True)], schema=lines.schema)


def _converter(lines: FactLines, name: str, spark_type: str, *, encodes: bool) -> Callable[[str], Any]:
    if name not in lines.readers:
        return converter(spark_type, name in lines.unsigned)
    encode = lines.readers[name].encode
    return encode if encodes else lambda text: text if encode(text) is not None else None


def _facts(
    lines: FactLines, rows: Iterable[tuple[int, list[str]]], converters: list[Callable[[str], Any]]
) -> Iterator[list[Any]]:
    for number, fields in rows:
        if len(fields) != len(converters):
            _refuse_width(lines, number, fields)
        fact = []
        for (name, _), convert, field in zip(lines.columns, converters, fields, strict=True):
            try:
                fact.append(convert(field))
            except ValueError as problem:  # noqa: PERF203 - each value is converted separately
                _refuse_value(lines, number, name, field, str(problem))
        yield fact


def _plain_fields(lines: FactLines, first: int, block: bytes) -> Iterator[tuple[int, list[str]]]:
    for number, text in _texts(lines, first, block):
        yield number, _split_structures(lines, number, text) if lines.readers else text.split(lines.delimiter)


def _split_structures(lines: FactLines, number: int, text: str) -> list[str]:
    """Split a line whose structures may contain the delimiter."""
    fields: list[str] = []
    position = 0
    for name, _ in lines.columns:
        start = position
        if name in lines.readers:
            try:
                _, position = lines.readers[name].read(text, start)
            except ValueError as problem:
                _refuse_value(lines, number, name, text[start:], str(problem))
        end = text.find(lines.delimiter, position)
        fields.append(text[start:] if end < 0 else text[start:end])
        if end < 0:
            return fields
        position = end + len(lines.delimiter)
    return [*fields, *text[position:].split(lines.delimiter)]


def _quoted_fields(lines: FactLines, first: int, block: bytes) -> Iterator[tuple[int, list[str]]]:
    """Split lines by RFC 4180; a fact may span lines and has its first line's number."""
    texts = (text + "\n" for _, text in _texts(lines, first, block))
    reader = csv.reader(texts, delimiter=lines.delimiter, strict=True)
    number = first
    try:
        for fields in reader:
            yield number, fields or [""]
            number = first + reader.line_num
    except csv.Error as problem:
        _refuse(lines, number, f"the line is not valid CSV: {problem}", None, 'double inner quotes: "say ""hi"""')


def _texts(lines: FactLines, first: int, block: bytes) -> Iterator[tuple[int, str]]:
    r"""Yield lines without their ends (``\n`` or ``\r\n``), numbered from ``first``."""
    for number, raw in enumerate(io.BytesIO(block), first):
        content = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield number, content.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as problem:
            _refuse(lines, number, f"{content[:_MAX_SHOWN]!r} is not UTF-8", content, f"correct byte {problem.start}")


def _refuse_width(lines: FactLines, number: int, fields: list[str]) -> NoReturn:
    expected = len(lines.columns)
    actual = "1 value" if len(fields) == 1 else f"{len(fields)} values"
    text = lines.delimiter.join(fields)
    other = next((d for d in ",;| \t" if d != lines.delimiter and len(text.split(d)) == expected > 1), None)
    if other is not None:
        shown = "\\t" if other == "\t" else other
        hint = f'write .input {lines.relation}(delimiter="{shown}") to read {expected} values'
    else:
        shape = ", ".join(f"{name}: {lines.kind(name)}" for name, _ in lines.columns)
        hint = f"write the values of {lines.relation}({shape}) with {lines.delimiter!r} between them"
    message = f"{_shortened(text)} has {actual}, but {lines.relation} has {expected} column{'s' * (expected != 1)}"
    _refuse(lines, number, message, text, hint)


def _refuse_value(lines: FactLines, number: int, column: str, field: str, problem: str) -> NoReturn:
    hint = f"correct the value: column {column} of {lines.relation} is {lines.kind(column)}"
    if (
        number == 1
        and problem == "is not a number"
        and not lines.has_header
        and lines.table is None
        and lines.json is None
    ):
        hint += f'; if the line is a header, write .input {lines.relation}(headers="true")'
    _refuse(lines, number, f"{_shortened(field)} {problem}", field, hint)


def _refuse(lines: FactLines, number: int, message: str, value: object, hint: str) -> NoReturn:
    unit = f"{lines.table}, row" if lines.table is not None else "line" if lines.json is None else "row"
    place = f"{lines.path}, {unit} {number}"
    raise UsageError("PARALAGG_BAD_FACT", message, value=value, place=place, hint=hint)


def _shortened(text: str) -> str:
    return repr(text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "...")
