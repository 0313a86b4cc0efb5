"""Resolve the names in a step: columns by name, by alias, and by the DataFrame from which the user took them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.connect.refuse import refuse
from pyspark_paralagg.program.expr import Col

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


@dataclass(frozen=True)
class Attribute:
    """A column of a node: ``id`` stays the same as long as its values do. ``qualifier`` is an alias or a table."""

    id: str
    name: str
    type: str
    nullable: bool
    qualifier: str | None = None

    @property
    def col(self) -> Col:
        """Return the expression that reads the column."""
        return Col(self.id, self.type, self.nullable)


@dataclass(frozen=True)
class Scope:
    """The columns that expressions over a node can read.

    ``output`` are its columns. ``hidden`` are the columns that a join by names leaves out, which are read through their
    DataFrames only. ``by_plan`` has the columns of each DataFrame below, by plan id, or None if it occurs twice.
    """

    output: tuple[Attribute, ...]
    hidden: tuple[Attribute, ...] = ()
    by_plan: Mapping[int, tuple[Attribute, ...] | None] = field(default_factory=dict)
    is_case_sensitive: bool = False

    def joined(self, other: Scope) -> Scope:
        """Return the scope of a condition on rows of both."""
        return replace(
            self,
            output=(*self.output, *other.output),
            hidden=(*self.hidden, *other.hidden),
            by_plan=merged((self.by_plan, other.by_plan)),
        )

    def same(self, left: str, right: str) -> bool:
        """Return whether two names are the same in this session."""
        return left == right if self.is_case_sensitive else left.lower() == right.lower()

    def named(self, name: str, attributes: Iterable[Attribute]) -> list[Attribute]:
        """Return those of ``attributes`` with this name."""
        return [a for a in attributes if self.same(a.name, name)]

    def resolve(self, identifier: str, plan_id: int | None = None) -> Attribute:
        """Return the column of an identifier such as ``node``, ``d.node`` or `` `a.b` ``.

        Raises ``UnsupportedError`` if there is not exactly one; Spark, which has analysed the step before, may find one
        in ways that this module does not have.
        """
        parts = [quoted.replace("``", "`") if quoted else bare for quoted, bare in _PART.findall(identifier)]
        if plan_id is not None:
            found = self._named_in(parts[-1], plan_id) if len(parts) == 1 else []
        else:
            found = self.named(parts[0], self.output) if len(parts) == 1 else []
            if len(parts) > 1:
                found = [a for a in self.named(parts[-1], self.output) if self._is_qualified(a, parts[-2])]
        if len({a.id for a in found}) != 1:
            refuse(f"the column {identifier}, which Python finds {len(found)} times in the step,", identifier)
        return found[0]

    def _named_in(self, name: str, plan_id: int) -> list[Attribute]:
        available = {a.id: a for a in (*self.output, *self.hidden)}
        own = self.by_plan.get(plan_id) or ()
        return [available[a.id] for a in self.named(name, own) if a.id in available]

    def _is_qualified(self, attribute: Attribute, qualifier: str) -> bool:
        return attribute.qualifier is not None and self.same(attribute.qualifier, qualifier)


def merged(
    maps: Iterable[Mapping[int, tuple[Attribute, ...] | None]],
) -> dict[int, tuple[Attribute, ...] | None]:
    """Return the union of the maps of two inputs; a DataFrame in both is ambiguous."""
    result: dict[int, tuple[Attribute, ...] | None] = {}
    for by_plan in maps:
        for plan_id, attributes in by_plan.items():
            result[plan_id] = None if plan_id in result else attributes
    return result
