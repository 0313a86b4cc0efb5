"""One index for each distinct use: the collection that placement fills, with no index twice.

A static index is one input grouped by one set of columns with one payload in one place; a relation index is one
recursive relation grouped by some of its keys in one place. No prefix is shared, since an index is distributed by
exactly its keys. (Paper 004, section 4; paper 000: aggregated columns are never part of a distribution.)
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark_paralagg.plan.plan import Placement, RelationIndex, StaticIndex


@dataclass
class Indexes:
    """The indexes of one stratum; an id is a position in its tuple."""

    _static: dict[tuple[object, ...], StaticIndex] = field(default_factory=dict)
    _relation: dict[tuple[object, ...], RelationIndex] = field(default_factory=dict)

    def static(  # noqa: PLR0913, PLR0917 - the fields of an index
        self,
        source: int,
        keys: tuple[int, ...],
        payload: tuple[int, ...],
        placement: Placement,
        partition_by: tuple[int, ...],
        driver: str,
    ) -> StaticIndex:
        """The static index of that description.

        A partitioned one is kept apart for each driving relation: an engine may give its groups that relation's ids.
        """
        owner = driver if placement == "partitioned" else ""
        described = (source, keys, payload, placement, partition_by, owner)
        if described not in self._static:
            self._static[described] = StaticIndex(len(self._static), source, keys, payload, placement, partition_by)
        return self._static[described]

    def relation(self, name: str, keys: tuple[int, ...], placement: Placement, *, copy: bool) -> RelationIndex:
        """The index of a recursive relation of that description."""
        described = (name, keys, placement, copy)
        if described not in self._relation:
            self._relation[described] = RelationIndex(len(self._relation), name, keys, placement, copy)
        return self._relation[described]

    @property
    def statics(self) -> tuple[StaticIndex, ...]:
        """All static indexes, by id."""
        return tuple(self._static.values())

    @property
    def relations(self) -> tuple[RelationIndex, ...]:
        """All relation indexes, by id."""
        return tuple(self._relation.values())
