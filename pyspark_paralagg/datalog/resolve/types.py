"""The types of a text: ``number``, ``unsigned``, ``float``, ``symbol`` and the aliases that a text gives them.

``number`` and ``unsigned`` are 64-bit and so ``bigint``; an ``unsigned`` that would be negative is an error where
facts are loaded. A union of aliases has the type that all of them have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.parse.syntax import Attribute, Declaration, Span, Text, TypeAlias
from pyspark_paralagg.program.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

BASES = {"number": "bigint", "unsigned": "bigint", "float": "double", "symbol": "string", "boolean": "boolean"}
"""Datalog's types and Spark's. ``boolean`` is ours, for ``$ANY`` and ``$ALL``."""


class Types:
    """The types that a text can name."""

    def __init__(self, text: Text) -> None:
        self._places = Places(text.source, text.name)
        self._aliases: dict[str, TypeAlias] = {}
        for clause in text.clauses:
            if isinstance(clause, TypeAlias):
                if clause.name in self._aliases or clause.name in BASES:
                    message = f"type `{clause.name}` is defined twice"
                    raise self._places.error("PARALAGG_DATALOG_TYPE", message, clause.span, value=clause.name)
                self._aliases[clause.name] = clause
        for alias in self._aliases.values():
            self.base(alias.name, alias.span)

    def base(self, name: str, span: Span) -> str:
        """``number unsigned float symbol boolean``: what ``name`` is in the end."""
        found = sorted(set(self._bases(name, span, ())))
        if len(found) > 1:
            message = f"type `{name}` is {' and '.join(found)} at once"
            raise self._places.error("PARALAGG_DATALOG_TYPE", message, span, value=name)
        return found[0]

    def _bases(self, name: str, span: Span, above: tuple[str, ...]) -> Iterator[str]:
        if name in BASES:
            yield name
            return
        if name in above:
            message = f"type `{name}` is defined by itself"
            raise self._places.error("PARALAGG_DATALOG_TYPE", message, span, value=name)
        if name not in self._aliases:
            hint = did_you_mean(name, [*BASES, *self._aliases])
            raise self._places.error(
                "PARALAGG_DATALOG_TYPE", f"type `{name}` is not known", span, value=name, hint=hint
            )
        alias = self._aliases[name]
        for other in alias.types:
            yield from self._bases(other, alias.span, (*above, name))

    def of(self, attribute: Attribute) -> str:
        """Spark's type of a declared column."""
        return BASES[self.base(attribute.type, attribute.span)]


def declared_types(text: Text) -> dict[str, tuple[tuple[str, str], ...]]:
    """Columns of each declared relation: name and Spark type."""
    types = Types(text)
    return {
        c.relation: tuple((a.name, types.of(a)) for a in c.attributes)
        for c in text.clauses
        if isinstance(c, Declaration)
    }


def unsigned_columns(text: Text) -> dict[str, frozenset[str]]:
    """The columns of each declared relation that may not be negative."""
    types = Types(text)
    return {
        c.relation: frozenset(a.name for a in c.attributes if types.base(a.type, a.span) == "unsigned")
        for c in text.clauses
        if isinstance(c, Declaration)
    }
