"""Evaluate a stratum row by row: run ``FixpointLoop``, and search for a cycle if it does not end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mpi_backend.loop.cycle_trace import endless_climb_error
from mpi_backend.loop.fixpoint_loop import EndlessClimbError, FixpointLoop
from mpi_backend.state.owner import route
from mpi_backend.state.types import Table

if TYPE_CHECKING:
    from mpi_backend.loop.fixpoint_loop import Progress
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.relation_part import RelationPart

_ID_LISTS = 3
"""Lists of ids, without the list of changed ids: current rows, and the near and far rows of ``Ordered``."""


class Tuples:
    """A loaded stratum whose rows have dense ids."""

    def __init__(self, loop: LoopState, *, ansi: bool, progress: Progress | None = None) -> None:
        loop.comm.sent_bytes = 0
        self.loop = loop
        self._ansi = ansi
        self._fixpoint = FixpointLoop(loop, ansi=ansi, progress=progress)

    def run(self) -> None:
        """Run to the fixpoint or to the limit. Collective."""
        try:
            self._fixpoint.run()
        except EndlessClimbError as climb:
            for p in self.loop.parts.values():
                p.restart(traced=True)
            for i in self.loop.indexes.values():
                i.clear()
                if i.planned.copy:
                    i.part.restart(traced=True)
            raise endless_climb_error(
                FixpointLoop(self.loop, ansi=self._ansi, traced=True), self.loop, climb
            ) from climb.overflow

    def reset(self) -> None:
        """Remove all rows, to run with other base rows of the same stratum."""
        for part in self.loop.parts.values():
            part.forget()
        self._fixpoint.reset()

    @property
    def can_have_siblings(self) -> bool:
        """Return whether a run only reads what siblings share: it adds no keys or texts, and indexes no rows."""
        return not self.loop.indexes and self.loop.facts.is_lattice and self._fixpoint.reads_only

    @property
    def sibling_bytes(self) -> int:
        """Return the bytes of a ``LoopState.sibling`` and its run: rows, lists of their ids, a buffer."""
        parts = self.loop.parts.values()
        return sum(p.state.bytes + _ID_LISTS * p.state.d.nbytes for p in parts) + self.loop.out.nbytes

    @property
    def form(self) -> str:
        """Return the order of rows and the number of ranks, for the report."""
        ranks = "one process" if self.loop.comm.size == 1 else f"{self.loop.comm.size} ranks"
        placement = self.loop.facts.placement
        mirrored = "" if placement is None else f", {placement}"
        by_target = ", sums by target" if self._fixpoint.is_by_target else ""
        refining = "" if self._fixpoint.refining is None else f", {self._fixpoint.refining}"
        early = f", {self._fixpoint.roll_over}" if self._fixpoint.roll_over.early else ""
        order = ", best first" if self._fixpoint.is_by_value else by_target
        return f"rows{order}{mirrored}{refining}{early}, in {ranks}"

    @property
    def iterations(self) -> int:
        """Return the number of applications of the step."""
        return self._fixpoint.stats.iterations

    @property
    def per_iteration(self) -> list[dict[str, Any]]:
        """Return one entry for each iteration and relation."""
        return self._fixpoint.stats.per_iteration()

    @property
    def tuples(self) -> int:
        """Return the number of rows on this rank."""
        return sum(p.rows for p in self.loop.parts.values())

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        return self.loop.bytes

    def results(self) -> dict[str, Table]:
        """Return the rows of each relation; of a settled one, those that have changed. Collective."""
        return {p.name: self._merge_sub_buckets(p, self._rows(p)) for p in self.loop.parts.values()}

    def _merge_sub_buckets(self, p: RelationPart, table: Table) -> Table:
        """Return the rows of a relation, with each bucket at one rank if it had sub-buckets."""
        loop = self.loop
        if not loop.facts.is_spread(p.name):
            return table
        masked = any((*p.shape.keys, *p.shape.dependents))
        buckets = loop.owners[p.name].bucket_count
        count = loop.facts.sub_buckets
        return route(table, p.planned.distribute_by, (), loop.strings, loop.comm, buckets, count, masked=masked)

    def _rows(self, p: RelationPart) -> Table:
        ids = p.changed()
        columns = [p.key_column(c, ids, self.loop.strings) for c in range(len(p.planned.keys))]
        for j in range(len(p.planned.dependents)):
            nulls = p.state.k[j, ids] == 0 if p.shape.dependents[j] else None
            columns.append(p.value_column(j, p.state.v[j, ids], nulls, self.loop.strings))
        return Table(tuple(columns), len(ids))
