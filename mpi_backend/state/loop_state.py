"""What the loop of a stratum works on, on this rank."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.index import Pull, RelationIndex, StaticIndex
    from mpi_backend.state.owner import Owner
    from mpi_backend.state.relation_part import Part
    from mpi_backend.state.shape import Shape
    from mpi_backend.state.strings import Strings
    from pyspark_paralagg.plan.plan import PlannedRule

OUT_WORDS = 1 << 16
"""Of the buffer of derived rows whose target is computed: it stays in a core's cache."""


@dataclass
class Loop:
    """Relations, indexes, targets of resolved rules (by rule), base rows as (ids, flat values).

    ``mirror_places``: for each rank the numbers that its rows have in the mirror here (``numbering.number_mirror``).
    """

    facts: Facts
    shape: Shape
    strings: Strings
    comm: Comm
    parts: dict[str, Part]
    owners: dict[str, Owner]
    statics: dict[int, StaticIndex]
    indexes: dict[int, RelationIndex]
    targets: dict[int, Array]
    base: dict[str, Rows]
    initial: dict[str, Rows]
    pulls: dict[int, Pull] = field(default_factory=dict)
    mirror_places: list[Array] = field(default_factory=list)
    out: Array = field(default_factory=lambda: np.empty(OUT_WORDS, np.int64))

    def sibling(self) -> Loop:
        """Another one over the same ids, indexes and targets, with rows of its own."""
        parts = {name: part.sibling() for name, part in self.parts.items()}
        return replace(self, parts=parts, base=dict(self.base), out=np.empty(OUT_WORDS, np.int64))

    def part(self, relation: str) -> Part:
        """The part of a relation."""
        return self.parts[relation]

    def driver(self, rule: PlannedRule) -> Part:
        """Where a rule starts: a relation, or a copy of it."""
        copy = self.facts.copy_of(rule)
        return self.parts[rule.driver.relation] if copy is None else self.indexes[copy].part

    @property
    def bytes(self) -> int:
        """Held in memory."""
        copies = sum(i.part.bytes for i in self.indexes.values() if i.planned.copy)
        return sum(x.bytes for xs in (self.parts, self.statics, self.indexes) for x in xs.values()) + copies


@dataclass
class Rows:
    """Rows of a relation: their ids here, and flat values of ``stride`` words that begin at ``at``."""

    ids: Array
    words: Array
    at: int
    stride: int
