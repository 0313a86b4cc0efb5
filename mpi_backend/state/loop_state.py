"""Hold the data of a stratum's loop on this rank: relations, indexes, resolved targets and base rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.index import RelationIndex, StaticIndex, TargetSums
    from mpi_backend.state.owner import Owner
    from mpi_backend.state.relation_part import RelationPart
    from mpi_backend.state.shape import Shape
    from mpi_backend.state.strings import Strings
    from pyspark_paralagg.plan.plan import PlannedRule

OUT_WORDS = 1 << 16
"""The size of the buffer of derived rows with computed targets. It fits in a core's cache."""


@dataclass
class LoopState:
    """The relations, indexes, targets of resolved rules (by rule), and base rows as (ids, flat values).

    ``work`` counts the rows of probed sides that rules have read since the last votes: edges visited, in graphs.
    ``mirror_places`` has for each rank the numbers of its rows in this rank's mirror (``numbering.number_mirror``).
    """

    facts: Facts
    shape: Shape
    strings: Strings
    comm: Comm
    parts: dict[str, RelationPart]
    owners: dict[str, Owner]
    statics: dict[int, StaticIndex]
    indexes: dict[int, RelationIndex]
    targets: dict[int, Array]
    base: dict[str, Rows]
    initial: dict[str, Rows]
    target_sums: dict[int, TargetSums] = field(default_factory=dict)
    mirror_places: list[Array] = field(default_factory=list)
    out: Array = field(default_factory=lambda: np.empty(OUT_WORDS, np.int64))
    work: int = 0

    def sibling(self) -> LoopState:
        """Return a state with the same ids, indexes and targets, but its own rows."""
        parts = {name: part.sibling() for name, part in self.parts.items()}
        return replace(self, parts=parts, base=dict(self.base), out=np.empty(OUT_WORDS, np.int64))

    def part(self, relation: str) -> RelationPart:
        """Return the part of a relation."""
        return self.parts[relation]

    def driver(self, rule: PlannedRule) -> RelationPart:
        """Return the relation, or the copy of it, whose delta drives a rule."""
        copy = rule.driver.index
        return self.parts[rule.driver.relation] if copy is None else self.indexes[copy].part

    def most_sub_buckets(self, relations: Iterable[str]) -> Array:
        """Return for each bucket the largest number of its sub-buckets in these relations."""
        maps = [self.owners[name].counts for name in relations]
        counts: Array = np.maximum.reduce([m for m in maps if m is not None])
        return counts

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        copies = sum(i.part.bytes for i in self.indexes.values() if i.planned.copy)
        return sum(x.bytes for xs in (self.parts, self.statics, self.indexes) for x in xs.values()) + copies


@dataclass
class Rows:
    """Rows of a relation: their ids on this rank, and flat values of ``stride`` words, from word ``at`` on."""

    ids: Array
    words: Array
    at: int
    stride: int
