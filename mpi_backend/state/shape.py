"""The words of a row: the columns of its relation, and which of them may be null (``codegen.nullability`` decides)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpi_backend.state.types import type_of

if TYPE_CHECKING:
    from mpi_backend.state.types import Type
    from pyspark_paralagg.plan.plan import PlannedRelation


@dataclass(frozen=True)
class RelationShape:
    """Which keys and dependents of a relation may be null. A null key takes one more word, a mask, in every key."""

    keys: tuple[bool, ...]
    dependents: tuple[bool, ...]

    @property
    def has_null_keys(self) -> bool:
        """Whether keys have a mask."""
        return any(self.keys)

    @property
    def key_words(self) -> int:
        """Words of a key."""
        return len(self.keys) + self.has_null_keys

    def value_words(self, *, traced: bool) -> int:
        """Words of a row's values: the columns, the null mask where there is one, the origin in a traced run."""
        return len(self.dependents) + any(self.dependents) + traced


@dataclass(frozen=True)
class Shape:
    """Of all relations, and of the payload of static indexes."""

    relations: dict[str, RelationShape]
    payload: dict[int, tuple[bool, ...]]


def column_types(of: PlannedRelation) -> list[Type]:
    """Of keys, then dependents."""
    return [type_of(c.type) for c in of.keys] + [type_of(d.column.type) for d in of.dependents]
