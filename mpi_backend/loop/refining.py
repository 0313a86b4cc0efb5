"""Split and merge the sub-buckets of relations while their loop runs (``state.sub_buckets`` has the rule)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.exchange.moves import move_rows
from mpi_backend.exchange.replicas import Replicas
from mpi_backend.state.buckets_by_id import BucketsById
from mpi_backend.state.sub_buckets import refine

if TYPE_CHECKING:
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.relation_part import RelationPart

_GROWTH = 8
"""Rows are counted again only if their number has changed by 1/8, since counting reads all of them."""


class Refining:
    """The sub-buckets of one loop. ``total`` is the number of rows of all relations, as the last votes have it.

    ``splits`` and ``merges`` count buckets. All ranks decide by the same numbers, so their maps stay equal.
    """

    def __init__(self, loop: LoopState) -> None:
        assert loop.facts.refinement is not None  # noqa: S101 - for the type checker
        self._loop = loop
        self._settings = loop.facts.refinement
        self._replicas = Replicas(loop)
        self._places = {name: BucketsById() for name in loop.facts.moving}
        for name, places in self._places.items():
            places.prepare(loop.owners[name])
        self._rounds = 0
        self._counted = 0
        self.total = 0
        self.splits = self.merges = 0

    def __str__(self) -> str:
        buckets = "bucket" if self.splits == 1 else "buckets"
        return f"{self.splits} {buckets} split, {self.merges} merged"

    def run(self) -> None:
        """Change the map and move rows, every so many rounds. Collective."""
        self._rounds += 1
        if self._rounds % self._settings.rounds or abs(self.total - self._counted) * _GROWTH <= self._counted:
            return
        self._counted = self.total
        has_moved = [self._refine(self._loop.parts[name]) for name in sorted(self._loop.facts.moving)]
        if any(has_moved):
            self._replicas.update()

    def _refine(self, part: RelationPart) -> bool:
        """Return whether a relation's map has changed."""
        loop, owner = self._loop, self._loop.owners[part.name]
        assert owner.counts is not None  # noqa: S101 - for the type checker
        places = self._places[part.name]
        places.extend(part, owner, loop.strings)
        sizes = loop.comm.allreduce_sum(places.sizes(part, owner))
        counts = refine(owner.counts, sizes, self._settings, loop.comm.size)
        splits, merges = (int(np.count_nonzero(changed)) for changed in (counts > owner.counts, counts < owner.counts))
        if not splits and not merges:
            return False
        self.splits += splits
        self.merges += merges
        owner.counts = counts
        move_rows(loop, part, places)
        return True
