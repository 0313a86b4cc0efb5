"""Resolve the types of a text: ``number``, ``unsigned``, ``float``, ``symbol``, ``boolean`` and the text's aliases.

``number`` and ``unsigned`` have 64 bits and are ``bigint``; loading a negative fact as ``unsigned`` is an error. A
union of aliases has the type that all of them have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.parse.syntax import Attribute, Declaration, Span, Text, TypeAlias
from pyspark_paralagg.program.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

BASES = {"number": "bigint", "unsigned": "bigint", "float": "double", "symbol": "string", "boolean": "boolean"}
"""Spark's type for each Datalog type. ``boolean`` is an extension, for ``$ANY`` and ``$ALL``."""


class Types:
    """The base types and a text's aliases of them."""

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
        """Return the base type of ``name``: ``number``, ``unsigned``, ``float``, ``symbol`` or ``boolean``."""
        bases = sorted(set(self._bases(name, span, ())))
        if len(bases) > 1:
            message = f"type `{name}` is both {' and '.join(bases)}"
            raise self._places.error("PARALAGG_DATALOG_TYPE", message, span, value=name)
        return bases[0]

    def _bases(self, name: str, span: Span, path: tuple[str, ...]) -> Iterator[str]:
        if name in BASES:
            yield name
            return
        if name in path:
            message = f"type `{name}` is defined in terms of itself"
            raise self._places.error("PARALAGG_DATALOG_TYPE", message, span, value=name)
        if name not in self._aliases:
            hint = did_you_mean(name, [*BASES, *self._aliases])
            raise self._places.error(
                "PARALAGG_DATALOG_TYPE", f"type `{name}` does not exist", span, value=name, hint=hint
            )
        alias = self._aliases[name]
        for other in alias.types:
            yield from self._bases(other, alias.span, (*path, name))

    def spark_type(self, attribute: Attribute) -> str:
        """Return the Spark type of a declared column."""
        return BASES[self.base(attribute.type, attribute.span)]


def declared_types(text: Text) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the columns of each declared relation: name and Spark type."""
    types = Types(text)
    return {
        c.relation: tuple((a.name, types.spark_type(a)) for a in c.attributes)
        for c in text.clauses
        if isinstance(c, Declaration)
    }


def unsigned_columns(text: Text) -> dict[str, frozenset[str]]:
    """Return the unsigned columns of each declared relation."""
    types = Types(text)
    return {
        c.relation: frozenset(a.name for a in c.attributes if types.base(a.type, a.span) == "unsigned")
        for c in text.clauses
        if isinstance(c, Declaration)
    }
