"""Describe the words of a row: its columns, and which of them may be null (``codegen.nullability`` decides)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpi_backend.state.types import type_of

if TYPE_CHECKING:
    from mpi_backend.state.types import Type
    from pyspark_paralagg.plan.plan import PlannedRelation


@dataclass(frozen=True)
class RelationShape:
    """The nullable keys and dependents of a relation. If a key is nullable, every key has one more word, a mask."""

    keys: tuple[bool, ...]
    dependents: tuple[bool, ...]

    @property
    def has_null_keys(self) -> bool:
        """Return whether keys have a mask."""
        return any(self.keys)

    @property
    def key_words(self) -> int:
        """Return the number of words of a key."""
        return len(self.keys) + self.has_null_keys

    def value_words(self, *, traced: bool) -> int:
        """Return the number of words of a row's values: columns, null mask if any, origin in a traced run."""
        return len(self.dependents) + any(self.dependents) + traced


@dataclass(frozen=True)
class Shape:
    """The nullable columns of all relations, and of the payloads of static indexes."""

    relations: dict[str, RelationShape]
    payload: dict[int, tuple[bool, ...]]


def column_types(relation: PlannedRelation) -> list[Type]:
    """Return the types of the keys, then of the dependents."""
    return [type_of(c.type) for c in relation.keys] + [type_of(d.column.type) for d in relation.dependents]
