"""Turn each `.input` into an input file that can be loaded; raise if its directive or declaration is wrong.

``tables`` loads input files without Spark, ``frames`` on Spark.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.command.json_files import JsonLayout
from pyspark_paralagg.command.lines import FactLines
from pyspark_paralagg.command.values import NULLARY
from pyspark_paralagg.datalog.desugar.structure_reader import StructureReader
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.shapes import HOLDS
from pyspark_paralagg.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pyspark_paralagg.command.directives import Rows
    from pyspark_paralagg.datalog.parse.syntax import Text

Columns = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class InputFile:
    """An input file: ``lines`` is set for text, SQLite and JSON; ``columns`` is None if only the file has types."""

    rows: Rows
    path: Path
    columns: Columns | None
    unsigned: frozenset[str]
    lines: FactLines | None = None

    @property
    def declared_names(self) -> list[str]:
        """The names of the declared columns; the file may have more."""
        return [name for name, _ in self.columns or ()]

    def check_unsigned(self, column_names: Sequence[str], minimum_of: Callable[[str], float | None]) -> None:
        """Raise ``UsageError`` ``PARALAGG_BAD_FACT`` for a negative number in an unsigned column.

        ``column_names`` are the file's columns; ``minimum_of`` returns the minimum of one of them.
        """
        declared = self.declared_names
        if not self.unsigned or len(column_names) != len(declared):
            return  # `conformed_columns` raises for a wrong number of columns
        # Columns match by name or by position, as in `datalog`.
        sources = declared if set(declared) == set(column_names) else column_names
        for name, source in zip(declared, sources, strict=True):
            minimum = minimum_of(source) if name in self.unsigned else None
            if minimum is not None and minimum < 0:
                raise UsageError(
                    "PARALAGG_BAD_FACT",
                    f"{minimum} is negative",
                    value=minimum,
                    place=str(self.path),
                    hint=f"correct the value: column {name} of {self.rows.relation} is unsigned",
                )


def examine(
    text: Text, inputs: Sequence[Rows], types: Mapping[str, Columns], unsigned: Mapping[str, frozenset[str]]
) -> list[InputFile]:
    """Return the input file of each of ``inputs``; ``types`` and ``unsigned`` are those that the text declares.

    Raise ``DatalogError`` ``PARALAGG_INPUT_UNDECLARED`` for text, SQLite or JSON whose relation is not declared.
    """
    result = []
    for rows in inputs:
        path = rows.path
        if path is None:  # never: only outputs have no file
            continue
        columns, unsigned_names = types.get(rows.relation), unsigned.get(rows.relation, frozenset())
        lines = None
        if rows.format in ("text", "sqlite", "json"):
            if columns is None:
                raise _undeclared(text, rows, path)
            fields = columns or ((HOLDS, "boolean" if rows.format == "sqlite" else NULLARY),)
            columns = columns or ((HOLDS, "boolean"),)
            lines = FactLines(
                path,
                rows.relation,
                fields,
                unsigned_names,
                rows.delimiter,
                rows.has_header,
                rows.is_quoted,
                _readers(text, rows.relation, fields),
                rows.table if rows.format == "sqlite" else None,
                JsonLayout(text, rows.relation) if rows.format == "json" else None,
            )
        result.append(InputFile(rows, path, columns, unsigned_names, lines))
    return result


def _readers(text: Text, relation: str, columns: Columns) -> dict[str, StructureReader]:
    """Return a reader for each column with records or branches."""
    types = text.columns.get(relation, ())
    return {
        name: StructureReader(type_, text.structures)
        for (name, _), type_ in zip(columns, types, strict=False)
        if type_ is not None
    }


def unreadable(item: InputFile, reason: str) -> UsageError:
    """Return the error for a file that does not have the format of its name or directive."""
    format_name = item.rows.format.capitalize()
    message = f"{item.path} cannot be read as {format_name}: {reason}"
    place = f".input {item.rows.relation}"
    return UsageError("PARALAGG_INPUT_UNREADABLE", message, value=str(item.path), place=place)


def _undeclared(text: Text, rows: Rows, path: Path) -> UsageError:
    return Places(text.source, text.name).error(
        "PARALAGG_INPUT_UNDECLARED",
        f"{path} has no column types, and {rows.relation} is not declared",
        rows.span,
        value=rows.relation,
        hint=f"declare it, as in .decl {rows.relation}(x: number, name: symbol)",
    )
