"""From `.input` to files that can be loaded: what is wrong with a directive or its declaration is told here.

``tables`` loads them where Spark is not, ``frames`` where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.command.lines import FactLines
from pyspark_paralagg.command.values import NULLARY
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
class Examined:
    """An input that can be loaded: ``lines`` where it is text. ``columns`` is None where the file alone knows them."""

    rows: Rows
    path: Path
    columns: Columns | None
    unsigned: frozenset[str]
    lines: FactLines | None = None

    @property
    def chosen(self) -> list[str]:
        """The declared columns; a file may have more."""
        return [name for name, _ in self.columns or ()]

    def check_unsigned(self, found: Sequence[str], least: Callable[[str], float | None]) -> None:
        """Raises ``UsageError`` ``PARALAGG_BAD_FACT`` for a negative number; ``least`` is the least of a column."""
        declared = self.chosen
        if not self.unsigned or len(found) != len(declared):
            return  # a wrong number of columns is told where all of them are looked at
        sources = declared if set(declared) == set(found) else found  # by name or by position, as `datalog` has it
        for name, source in zip(declared, sources, strict=True):
            smallest = least(source) if name in self.unsigned else None
            if smallest is not None and smallest < 0:
                raise UsageError(
                    "PARALAGG_BAD_FACT",
                    f"{smallest} is negative",
                    value=smallest,
                    place=str(self.path),
                    hint=f"column {name} of {self.rows.relation} is unsigned",
                )


def examine(
    text: Text, inputs: Sequence[Rows], types: Mapping[str, Columns], unsigned: Mapping[str, frozenset[str]]
) -> list[Examined]:
    """How each of ``inputs`` is read.

    ``types`` and ``unsigned`` are what the text declares. Raises ``DatalogError`` ``PARALAGG_INPUT_UNDECLARED`` (text
    without types).
    """
    examined = []
    for rows in inputs:
        path = rows.path
        if path is None:  # only outputs go to no file
            continue
        columns, positive = types.get(rows.relation), unsigned.get(rows.relation, frozenset())
        lines = None
        if rows.format == "text":
            if columns is None:
                raise _undeclared(text, rows, path)
            read = columns or ((HOLDS, NULLARY),)
            columns = columns or ((HOLDS, "boolean"),)
            lines = FactLines(path, rows.relation, read, positive, rows.delimiter, rows.has_header, rows.is_quoted)
        examined.append(Examined(rows, path, columns, positive, lines))
    return examined


def unreadable(item: Examined, why: str) -> UsageError:
    """A file that is not what its name or its directive says."""
    form = item.rows.format.capitalize()
    message = f"{item.path} does not read as {form}: {why}"
    place = f".input {item.rows.relation}"
    return UsageError("PARALAGG_INPUT_UNREADABLE", message, value=str(item.path), place=place)


def _undeclared(text: Text, rows: Rows, path: Path) -> UsageError:
    return Places(text.source, text.name).error(
        "PARALAGG_INPUT_UNDECLARED",
        f"{path} does not say of what type its columns are, and {rows.relation} is not declared",
        rows.span,
        value=rows.relation,
        hint=f"declare it, as in .decl {rows.relation}(x: number, name: symbol)",
    )
