"""Evaluates a stratum by its rows: the loop of ``fixpoint``, and the search for a cycle where it has no end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi_backend.loop.fixpoint import EndlessClimbError, Fixpoint
from mpi_backend.loop.trace import endless
from mpi_backend.state.owner import route
from mpi_backend.state.types import Table

if TYPE_CHECKING:
    from mpi_backend.loop.fixpoint import Progress
    from mpi_backend.state.loop_state import Loop
    from mpi_backend.state.relation_part import Part

_LISTS = 3
"""Of ids, beside that of what changed: rows that are being read, and in ``Ordered`` near and far ones."""


class Tuples:
    """A loaded stratum, on rows with dense ids."""

    def __init__(self, loop: Loop, *, ansi: bool, progress: Progress | None = None) -> None:
        loop.comm.sent = 0
        self.loop = loop
        self._ansi = ansi
        self._fixpoint = Fixpoint(loop, ansi=ansi, progress=progress)

    def run(self) -> None:
        """To the fixpoint, or to the limit."""
        try:
            self._fixpoint.run()
        except EndlessClimbError as climb:
            for p in self.loop.parts.values():
                p.restart(traced=True)
            for i in self.loop.indexes.values():
                i.clear()
                if i.planned.copy:
                    i.part.restart(traced=True)
            raise endless(Fixpoint(self.loop, ansi=self._ansi, traced=True), self.loop, climb) from climb.overflow

    def again(self) -> None:
        """For other base rows of the same stratum, with all rows forgotten."""
        for part in self.loop.parts.values():
            part.forget()
        self._fixpoint.again()

    @property
    def can_have_siblings(self) -> bool:
        """Whether a run only reads what ``Loop.sibling`` shares: no new keys, no texts, no index on what it finds."""
        return not self.loop.indexes and self.loop.facts.is_lattice and self._fixpoint.reads_only

    @property
    def sibling_bytes(self) -> int:
        """What a ``Loop.sibling`` and its run hold for themselves: rows, lists of their ids, a buffer."""
        parts = self.loop.parts.values()
        return sum(p.state.bytes + _LISTS * p.state.d.nbytes for p in parts) + self.loop.out.nbytes

    @property
    def iterations(self) -> int:
        """Applications of the step."""
        return self._fixpoint.stats.iterations

    @property
    def per_iteration(self) -> list[dict[str, Any]]:
        """One entry for each iteration and relation."""
        return self._fixpoint.stats.per_iteration()

    @property
    def tuples(self) -> int:
        """Rows on this rank."""
        return sum(p.rows for p in self.loop.parts.values())

    @property
    def bytes(self) -> int:
        """Held in memory."""
        return self.loop.bytes

    def results(self) -> dict[str, Table]:
        """The rows of each relation."""
        return {p.name: self._gathered(p, self._rows(p)) for p in self.loop.parts.values()}

    def _gathered(self, p: Part, table: Table) -> Table:
        """The rows of a relation that lies in sub-buckets, each bucket at one rank."""
        loop = self.loop
        if p.name not in loop.facts.spread.relations:
            return table
        masked = any((*p.shape.keys, *p.shape.dependents))
        buckets = loop.owners[p.name].bucket_count
        count = loop.facts.spread.count
        return route(table, p.of.distribute_by, (), loop.strings, loop.comm, buckets, count, masked=masked)

    def _rows(self, p: Part) -> Table:
        ids = p.present()
        columns = [p.key_column(c, ids, self.loop.strings) for c in range(len(p.of.keys))]
        for j in range(len(p.of.dependents)):
            nulls = p.state.k[j, ids] == 0 if p.shape.dependents[j] else None
            columns.append(p.value_column(j, p.state.v[j, ids], nulls, self.loop.strings))
        return Table(tuple(columns), len(ids))
