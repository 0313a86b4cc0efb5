"""Read ``.input``, ``.output`` and ``.printsize`` into plain fields: Soufflé's parameters, and Parquet and Delta.

``facts`` and ``results`` use the fields. Errors of a single directive are raised here, with its line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.command.json_files import JsonLayout
from pyspark_paralagg.command.sqlite import is_database
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.parse.syntax import Directive, Span, Text
from pyspark_paralagg.program.schema import did_you_mean

if TYPE_CHECKING:
    from pyspark_paralagg.errors import DatalogError

Format = Literal["text", "parquet", "delta", "sqlite", "json"]

_CODE = "PARALAGG_BAD_DIRECTIVE"
_PARAMETERS = ("filename", "delimiter", "headers", "rfc4180", "compress", "IO", "dbname", "name", "format")
_LOG = "_delta_log"
_SUFFIXES: dict[str, Format] = {".parquet": "parquet", ".delta": "delta"}
_FORMATS: dict[str, Format] = {
    "parquet": "parquet", "delta": "delta", "sqlite": "sqlite", "jsonfile": "json", "json": "json",
}  # fmt: skip


@dataclass(frozen=True)
class Rows:
    """The file and format of a relation's rows. ``path`` is None for standard output, ``table`` is that of SQLite.

    ``is_object``: each row and record is a JSON object, not a list.
    """

    relation: str
    path: Path | None
    format: Format
    delimiter: str
    has_header: bool
    is_quoted: bool
    is_compressed: bool
    table: str
    is_object: bool
    span: Span


def inputs(text: Text, folder: Path) -> tuple[Rows, ...]:
    """Return every ``.input`` in the text's order; relative file names are in ``folder``.

    Raise ``DatalogError``: ``PARALAGG_BAD_DIRECTIVE``, or ``PARALAGG_INPUT_MISSING`` if there is no such file.
    """
    return tuple(_Reader(text, d).input(folder) for d in _directives(text, "input"))


def outputs(text: Text, folder: Path | None, default: Format = "text") -> tuple[Rows, ...]:
    """Return every ``.output`` in the text's order, each once.

    ``folder`` None is standard output. ``default`` is the format if neither a parameter nor a suffix names one.
    """
    all_rows = tuple(_Reader(text, d).output(folder, default) for d in _directives(text, "output"))
    by_path: dict[tuple[Path, str], Rows] = {}
    result = []
    for rows in all_rows:
        table = rows.table if rows.format == "sqlite" else ""  # a database has several
        first = rows if rows.path is None else by_path.setdefault((rows.path, table), rows)
        if replace(first, span=rows.span) != rows:
            conflict = f"{first.relation} twice, in different formats, goes"
            conflict = conflict if first.relation == rows.relation else f"{first.relation} and {rows.relation} both go"
            message = f"{conflict} to {rows.path}"
            raise Places(text.source, text.name).error(_CODE, message, rows.span, value=str(rows.path))
        if first is rows:  # equal directives write one file
            result.append(rows)
    return tuple(result)


def printed_sizes(text: Text) -> tuple[str, ...]:
    """Return the relations of ``.printsize`` in the text's order."""
    return tuple(d.relation for d in _directives(text, "printsize"))


def _directives(text: Text, kind: str) -> list[Directive]:
    return [c for c in text.clauses if isinstance(c, Directive) and c.kind == kind]


class _Reader:
    """The reader of one directive's parameters."""

    def __init__(self, text: Text, directive: Directive) -> None:
        self.text = text
        self.directive = directive
        self.parameters = dict(directive.parameters)
        for name in self.parameters:
            if name not in _PARAMETERS:
                hint = did_you_mean(name, _PARAMETERS)
                raise self._error(f".{directive.kind} has no parameter `{name}` here", name, hint)

    def input(self, folder: Path) -> Rows:
        io = self._io("an input", stdout=False)
        filename = self._filename(io)
        names = [filename] if filename else [f"{self._table}{suffix}" for suffix in _default_suffixes(io)]
        paths = [folder / name for name in names]
        path = next((p for p in paths if p.exists()), None)
        if path is None:
            hint = f"--facts is {folder}" + ("" if filename else f"; the file may be {', '.join(names)}")
            raise self._error(f"the file {paths[0]} does not exist", str(paths[0]), hint, "PARALAGG_INPUT_MISSING")
        form = _FORMATS.get(io) or _format_of(path)
        if form == "text" and path.is_dir():
            raise self._error(f"{path} is a folder", str(path), 'use IO="parquet" or IO="delta" to read a folder')
        if form == "delta" and not (path / _LOG).is_dir():
            raise self._error(f"{path} is not a Delta table: it has no {_LOG}", str(path), None)
        return self._rows(path, form)

    def output(self, folder: Path | None, default: Format) -> Rows:
        io = self._io("an output", stdout=True)
        if io in ("stdout", "json") or folder is None:
            return self._rows(None, "json" if io == "json" else "text")
        filename = self._filename(io)
        form = _FORMATS.get(io) or (_SUFFIXES.get(Path(filename).suffix, "text") if filename else default)
        path = folder / (filename or f"{self._table}.{'csv' if form == 'text' else form}")
        if form == "delta" and path.exists() and not (path / _LOG).is_dir():
            raise self._error(f"{path} exists but is not a Delta table", str(path), None, "PARALAGG_BAD_OUTPUT")
        if form == "sqlite" and path.is_file() and not is_database(path):
            raise self._error(f"{path} exists but is not a SQLite database", str(path), None, "PARALAGG_BAD_OUTPUT")
        return self._rows(path, form)

    def _rows(self, path: Path | None, form: Format) -> Rows:
        is_quoted = self._flag("rfc4180")
        delimiter = self.parameters.get("delimiter", "," if is_quoted else "\t").replace("\\t", "\t")
        if not delimiter or "\n" in delimiter or "\r" in delimiter:
            raise self._error(f"{delimiter!r} is not a valid delimiter", delimiter, 'use "\\t", the default')
        if is_quoted and (len(delimiter) > 1 or delimiter == '"'):
            raise self._error(f"with rfc4180, {delimiter!r} is not a valid delimiter", delimiter, "use one character")
        has_header, is_compressed, span = self._flag("headers"), self._flag("compress"), self.directive.span
        relation, is_object = self.directive.relation, self._is_object(form)
        return Rows(relation, path, form, delimiter, has_header, is_quoted, is_compressed, self._table, is_object, span)

    def _is_object(self, form: Format) -> bool:
        """Return whether JSON has objects; raise for a type without a form in JSON."""
        layout = self.parameters.get("format", "list")
        if layout not in ("list", "object"):
            raise self._error(f"format={layout!r} is not valid", layout, "use one of list, object")
        if form != "json":
            if "format" in self.parameters:
                raise self._error("`format` is a parameter of JSON only", layout, 'write IO="jsonfile"')
            return False
        branched = JsonLayout(self.text, self.directive.relation).branched
        if branched is not None:
            hint = "use another format, or a record type"
            raise self._error(f"JSON has no form for {branched}, an algebraic data type", branched, hint)
        return layout == "object"

    @property
    def _table(self) -> str:
        """The name of the relation in its file's name and in a database."""
        return self.parameters.get("name", self.directive.relation)

    def _filename(self, io: str) -> str | None:
        """Return the name of the file; None if nothing sets it. ``dbname`` is Soufflé's old word for it."""
        filename = self.parameters.get("filename")
        if io == "sqlite":
            filename = filename or self.parameters.get("dbname")
            if filename and filename.startswith(("file:", ":memory:")):
                raise self._error(f"{filename!r} is not a file name", filename, "write the path of the database")
        return filename

    def _io(self, subject: str, *, stdout: bool) -> str:
        formats = ("file", "parquet", "delta", "sqlite", "jsonfile", *(("json", "stdout") if stdout else ()))
        io = self.parameters.get("IO", "file").lower()
        if io not in formats:
            raise self._error(f"IO={io!r} is not valid for {subject}", io, f"use one of {', '.join(formats)}")
        return io

    def _flag(self, name: str) -> bool:
        value = self.parameters.get(name, "false").lower()
        if value not in ("true", "false"):
            raise self._error(f"{name}={value!r} is neither true nor false", value, None)
        return value == "true"

    def _error(self, message: str, value: str, hint: str | None, code: str = _CODE) -> DatalogError:
        places = Places(self.text.source, self.text.name)
        return places.error(code, message, self.directive.span, value=value, hint=hint)


def _default_suffixes(io: str) -> tuple[str, ...]:
    return (f".{_FORMATS[io]}", "") if io in _FORMATS else (".facts", ".parquet", ".delta")


def _format_of(path: Path) -> Format:
    if (path / _LOG).is_dir():
        return "delta"
    return _SUFFIXES.get(path.suffix, "parquet" if path.is_dir() else "text")
