"""Files of facts, a fact a line: checked value by value, and copied to Parquet, which Spark reads in parallel.

First part of ``facts``. Two readers: Arrow's, which takes a million lines in a third of a second, and a careful one,
line by line, which is the definition. Whatever Arrow refuses is read carefully, and either is fine after all (``+5``,
a long delimiter) or ends in an error that names file, line and value. No Spark is needed: a bad file is told at once.

Strings stand for themselves: no quotes (but with ``rfc4180``), no escapes, no trimming; numbers may have blanks around.
"""

from __future__ import annotations

import csv
import itertools
import mmap
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_ARROW = {"bigint": pa.int64(), "double": pa.float64(), "string": pa.string(), "boolean": pa.bool_()}
_KINDS = {"bigint": "number", "double": "float", "string": "symbol", "boolean": "boolean"}
_BLOCK = 1 << 23
_ROWS = 1 << 16
_BLANKS = " \t"
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
_BITS = 64
_DECIMAL = re.compile(r"[+-]?[0-9]+")
_OTHER_BASES = re.compile(r"0[xX](?P<hex>[0-9a-fA-F]{1,16})|0[bB](?P<binary>[01]{1,64})")
_TRUE, _FALSE = ("true", "True", "TRUE", "1"), ("false", "False", "FALSE", "0")
_SHOWN = 60


@dataclass(frozen=True)
class FactLines:
    """A text file of facts, and how its lines are meant. ``columns`` are names and Spark types."""

    path: Path
    relation: str
    columns: tuple[tuple[str, str], ...]
    unsigned: frozenset[str] = frozenset()
    delimiter: str = "\t"
    has_header: bool = False
    is_quoted: bool = False

    @property
    def schema(self) -> pa.Schema:
        """The columns as Arrow's."""
        return pa.schema([(name, _ARROW[spark_type]) for name, spark_type in self.columns])

    def kind(self, column: str) -> str:
        """The Datalog type of a column."""
        return "unsigned" if column in self.unsigned else _KINDS[dict(self.columns)[column]]


class _Uncommon(Exception):  # noqa: N818 - not an error: the careful reader decides
    """Something that Arrow reads otherwise than it is meant here."""


def copy_to_parquet(lines: FactLines, target: Path) -> int:
    """Write the facts to the file ``target`` and return how many there are.

    Raises ``UsageError`` ``PARALAGG_BAD_FACT`` for the first line that is not a fact of the relation.
    """
    try:
        return _write(_read_fast(lines), lines.schema, target)
    except (pa.ArrowInvalid, _Uncommon):
        return _write(_read_carefully(lines), lines.schema, target)


def _write(batches: Iterator[pa.RecordBatch], schema: pa.Schema, target: Path) -> int:
    rows = 0
    with pq.ParquetWriter(target, schema, compression="none") as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _read_fast(lines: FactLines) -> Iterator[pa.RecordBatch]:
    if not lines.columns or len(lines.delimiter.encode()) != 1 or not _is_plain(lines):
        raise _Uncommon
    reader = pa_csv.open_csv(
        lines.path,
        read_options=pa_csv.ReadOptions(
            column_names=[name for name, _ in lines.columns], skip_rows=int(lines.has_header), block_size=_BLOCK
        ),
        parse_options=pa_csv.ParseOptions(
            delimiter=lines.delimiter,
            quote_char='"' if lines.is_quoted else False,
            escape_char=False,
            newlines_in_values=lines.is_quoted,
            ignore_empty_lines=False,
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=lines.schema, null_values=[], true_values=list(_TRUE), false_values=list(_FALSE)
        ),
    )
    for batch in reader:
        for name in lines.unsigned:
            least = pc.min(batch.column(name)).as_py()
            if least is not None and least < 0:
                raise _Uncommon
        yield batch


def _is_plain(lines: FactLines) -> bool:
    r"""Whether Arrow ends lines and quotes where they end here.

    A ``\r`` within a line belongs to a string, and Arrow would end the line there; a quote that nothing closes would be
    closed by the file's end.
    """
    with lines.path.open("rb") as file:
        if not file.seek(0, 2):
            return True
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            if content.find(b"\r") >= 0 and re.search(rb"\r(?!\n)", content):
                return False
            return not lines.is_quoted or sum(1 for _ in re.finditer(b'"', content)) % 2 == 0


def _read_carefully(lines: FactLines) -> Iterator[pa.RecordBatch]:
    converters = [_converter(spark_type, name in lines.unsigned) for name, spark_type in lines.columns]
    facts = _facts(lines, converters)
    while rows := list(itertools.islice(facts, _ROWS)):
        columns = [pa.array(column, f.type) for column, f in zip(zip(*rows, strict=True), lines.schema, strict=True)]
        yield pa.record_batch(columns, schema=lines.schema)


def _facts(lines: FactLines, converters: list[Callable[[str], Any]]) -> Iterator[list[Any]]:
    split = _quoted_fields if lines.is_quoted else _plain_fields
    for number, fields in split(lines):
        if number == 1 and lines.has_header:
            continue
        if len(fields) != len(converters):
            _refuse_width(lines, number, fields)
        fact = []
        for (name, _), convert, field in zip(lines.columns, converters, fields, strict=True):
            try:
                fact.append(convert(field))
            except ValueError as problem:  # noqa: PERF203 - each value is its own
                _refuse_value(lines, number, name, field, str(problem))
        yield fact


def _plain_fields(lines: FactLines) -> Iterator[tuple[int, list[str]]]:
    for number, text in _texts(lines):
        yield number, text.split(lines.delimiter)


def _quoted_fields(lines: FactLines) -> Iterator[tuple[int, list[str]]]:
    """By RFC 4180; a fact may span lines, and is known by its first."""
    reader = csv.reader((text + "\n" for _, text in _texts(lines)), delimiter=lines.delimiter, strict=True)
    number = 1
    try:
        for fields in reader:
            yield number, fields or [""]
            number = reader.line_num + 1
    except csv.Error as problem:
        _refuse(lines, number, f"the line is no CSV: {problem}", None, 'quotes within quotes are doubled: "say ""hi"""')


def _texts(lines: FactLines) -> Iterator[tuple[int, str]]:
    r"""Lines without their ends (``\n`` or ``\r\n``), numbered from 1."""
    with lines.path.open("rb") as file:
        for number, raw in enumerate(file, 1):
            content = raw.removesuffix(b"\n").removesuffix(b"\r")
            try:
                yield number, content.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as problem:
                _refuse(lines, number, f"{content[:_SHOWN]!r} is not UTF-8", content, f"at byte {problem.start}")


def _converter(spark_type: str, is_unsigned: bool) -> Callable[[str], Any]:  # noqa: FBT001 - one of two meanings
    if spark_type == "bigint":
        return _unsigned if is_unsigned else _integer
    others: dict[str, Callable[[str], Any]] = {"double": _float, "boolean": _boolean, "string": str}
    return others[spark_type]


def _integer(text: str) -> int:
    text = text.strip(_BLANKS)
    other = _OTHER_BASES.fullmatch(text)
    if other:  # the bits of 64
        number = int(other["hex"], 16) if other["hex"] else int(other["binary"], 2)
        return number - (1 << _BITS) if number > _GREATEST else number
    if not _DECIMAL.fullmatch(text):
        message = "is no number"
        raise ValueError(message)
    number = int(text) if len(text) < _BITS else _LEAST - 1
    if not _LEAST <= number <= _GREATEST:
        message = "does not fit into 64 bits"
        raise ValueError(message)
    return number


def _unsigned(text: str) -> int:
    number = _integer(text)
    if number < 0:
        is_signed = text.strip(_BLANKS).startswith("-")
        message = "is negative" if is_signed else "does not fit into 63 bits, which is what Spark's bigint has room for"
        raise ValueError(message)
    return number


def _float(text: str) -> float:
    try:
        if "_" not in text and text.isascii():
            return float(text.strip(_BLANKS))
    except ValueError:
        pass
    message = "is no number"
    raise ValueError(message)


def _boolean(text: str) -> bool:
    text = text.strip(_BLANKS)
    if text not in (*_TRUE, *_FALSE):
        message = "is neither true nor false"
        raise ValueError(message)
    return text in _TRUE


def _refuse_width(lines: FactLines, number: int, fields: list[str]) -> NoReturn:
    wanted = len(lines.columns)
    found = "1 value" if len(fields) == 1 else f"{len(fields)} values"
    text = lines.delimiter.join(fields)
    other = next((d for d in ",;| \t" if d != lines.delimiter and len(text.split(d)) == wanted > 1), None)
    if other is not None:
        shown = "\\t" if other == "\t" else other
        hint = f'.input {lines.relation}(delimiter="{shown}") would make them {wanted}'
    else:
        shape = ", ".join(f"{name}: {lines.kind(name)}" for name, _ in lines.columns)
        hint = f"it is read as {lines.relation}({shape}), with {lines.delimiter!r} between values"
    message = f"{_shown(text)} has {found}, {lines.relation} has {wanted} column{'s' if wanted != 1 else ''}"
    _refuse(lines, number, message, text, hint)


def _refuse_value(lines: FactLines, number: int, column: str, field: str, problem: str) -> NoReturn:
    hint = f"column {column} of {lines.relation} is {lines.kind(column)}"
    if number == 1 and problem == "is no number" and not lines.has_header:
        hint += f'; if the line is a header: .input {lines.relation}(headers="true")'
    _refuse(lines, number, f"{_shown(field)} {problem}", field, hint)


def _refuse(lines: FactLines, number: int, message: str, value: object, hint: str) -> NoReturn:
    raise UsageError("PARALAGG_BAD_FACT", message, value=value, place=f"{lines.path}, line {number}", hint=hint)


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")
