"""Evaluate a stratum for each value of its carried keys separately (the Plan's decomposition), in plain arrays.

Ranks exchange nothing: rows lie where their carried keys are, and each rank has all static sides. A single process
evaluates several values at once, one on each core, as long as their arrays fit in ``MOST_BYTES``.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np

from mpi_backend.comm import SingleRank
from mpi_backend.load.inputs import Inputs
from mpi_backend.load.loop_builder import LoopBuilder, Routed
from mpi_backend.loop.tuples import Tuples
from mpi_backend.machine import available_cores
from mpi_backend.state.facts import Facts
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.loop_state import Rows
from mpi_backend.state.rows import allgather_rows, flatten
from mpi_backend.state.types import Column, Table

if TYPE_CHECKING:
    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array

MOST_VALUES = 4096
"""The maximum of carried values. Of more values each probably has few rows, and hashing all together is cheaper."""
MOST_BYTES = 1 << 30
"""The maximum for the arrays of all cores but the first; each core has arrays as long as there are moving keys.

Without it, ten million keys would take 16 GB on 64 cores, and 0.25 GB on one. A million keys fit for 43 cores.
"""


class Decomposed:
    """The inner stratum, built once, and the base rows of each value of the carried keys."""

    def __init__(self, facts: Facts, routed: Routed, inputs: Inputs, comm: Comm, *, ansi: bool) -> None:
        assert facts.stratum.decomposition is not None  # noqa: S101 - for the type checker
        self._carried = facts.stratum.decomposition.carried
        inner = facts.stratum.decomposition.stratum
        [relation] = facts.stratum.relations
        base = routed.starts[relation.name][0]
        moving = tuple(c for p, c in enumerate(base.columns) if p not in self._carried)
        tables = {i.input: _replicate(inputs.tables[i.input], comm) for i in inner.static_indexes}
        tables[inner.relations[0].base] = Table(moving, base.count)
        builder = LoopBuilder(Facts(inner, facts.inputs), Inputs(tables, inputs.strings), SingleRank(), 1, ansi=ansi)
        first = Tuples(builder.build(builder.route()), ansi=ansi)
        self._loop = first.loop
        self._keys = tuple(base.columns[p] for p in self._carried)
        self._values = KeyMap(len(self._carried))
        groups = self._values.add(flatten(self._keys, base.count, masked=False), count=base.count)
        self._order = np.argsort(groups, kind="stable")
        self._ends = np.cumsum(np.bincount(groups, minlength=len(self._values)))
        self._base = self._loop.base[inner.relations[0].name]
        threads = min(len(self._ends), _max_threads(first)) if comm.size == 1 and first.can_have_siblings else 1
        self._all = [first, *(Tuples(self._loop.sibling(), ansi=ansi) for _ in range(1, threads))]
        self._free: SimpleQueue[Tuples] = SimpleQueue()
        for tuples in self._all:
            self._free.put(tuples)
        self._results: list[tuple[int, Array, Array, Array]] = []
        self._relation = relation
        self._applied: list[int] = []
        self.per_iteration: list[dict[str, Any]] = []

    @staticmethod
    def fits(facts: Facts, routed: Routed, comm: Comm) -> bool:
        """Return whether the Plan has a decomposition and its carried keys have few values and no nulls. Collective."""
        decomposition = facts.stratum.decomposition
        if decomposition is None:
            return False
        [relation] = facts.stratum.relations
        table = routed.starts[relation.name][0]
        columns = [table.columns[p] for p in decomposition.carried]
        words = flatten(columns, table.count, masked=False)
        distinct = len(np.unique(words.reshape(table.count, len(columns)), axis=0))
        max_distinct = -comm.allreduce_min(-float(distinct))
        return max_distinct <= MOST_VALUES and not any(routed.shape.relations[relation.name].keys)

    def run(self) -> None:
        """Compute one fixpoint for each value."""
        values = range(len(self._ends))
        if len(self._all) == 1:
            self._results = [self._fixpoint(v) for v in values]
            return
        with ThreadPoolExecutor(len(self._all)) as pool:
            self._results = list(pool.map(self._fixpoint, values))

    def _fixpoint(self, value: int) -> tuple[int, Array, Array, Array]:
        """Return the value and its rows: ids, values, and which of these are not null."""
        tuples = self._free.get()
        try:
            return self._evaluate(tuples, value)
        finally:
            self._free.put(tuples)

    def _evaluate(self, tuples: Tuples, value: int) -> tuple[int, Array, Array, Array]:
        [part] = tuples.loop.parts.values()
        rows = self._order[self._ends[value - 1] if value else 0 : self._ends[value]]
        picked = self._base.words.reshape(len(self._base.ids), self._base.stride)[rows]
        base = Rows(self._base.ids[rows], np.ascontiguousarray(picked).ravel(), 0, self._base.stride)
        tuples.loop.base[part.name] = base
        tuples.run()
        self._applied.append(tuples.iterations)
        ids = part.present()
        result = value, ids, part.state.v.take(ids, axis=1), part.state.k.take(ids, axis=1)
        tuples.reset()
        return result

    @property
    def form(self) -> str:
        """Return the name of this form, for the report."""
        return "one carried value at a time"

    @property
    def iterations(self) -> int:
        """Return the maximum over all values."""
        return max(self._applied, default=0)

    @property
    def tuples(self) -> int:
        """Return the number of rows on this rank."""
        return sum(len(ids) for _, ids, _, _ in self._results)

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        siblings = sum(p.state.bytes for t in self._all[1:] for p in t.loop.parts.values())
        return self._loop.bytes + siblings + sum(i.nbytes + v.nbytes + k.nbytes for _, i, v, k in self._results)

    def results(self) -> dict[str, Table]:
        """Return the relation's rows: carried and moving keys in their order, then dependent columns."""
        [part] = self._loop.parts.values()
        ids = np.concatenate([np.zeros(0, np.int32), *(i for _, i, _, _ in self._results)])
        values = np.repeat(
            np.array([v for v, _, _, _ in self._results], np.int64), [len(i) for _, i, _, _ in self._results]
        )
        strings = self._loop.strings
        moving = iter(range(len(part.planned.keys)))
        columns: list[Column] = []
        for p in range(len(self._relation.keys)):
            if p in self._carried:
                like = self._keys[self._carried.index(p)]
                words = self._values.keys[values, self._carried.index(p)]
                columns.append(Column(like.type, words, None, strings.all() if like.type.kind == "text" else None))
            else:
                columns.append(part.key_column(next(moving), ids, strings))
        for j in range(len(part.planned.dependents)):
            words = np.concatenate([np.zeros(0, np.int64), *(v[j] for _, _, v, _ in self._results)])
            valid = [k[j] for _, _, _, k in self._results] if any(part.shape.dependents) else []
            columns.append(part.value_column(j, words, np.concatenate(valid) == 0 if valid else None, strings))
        return {self._relation.name: Table(tuple(columns), len(ids))}


def _max_threads(first: Tuples) -> int:
    """Return the number of cores that this process may use, bounded by memory."""
    return min(available_cores(), 1 + MOST_BYTES // first.sibling_bytes)


def _replicate(table: Table, comm: Comm) -> Table:
    """Return the rows of all ranks. Collective."""
    if comm.size == 1:
        return table
    masked = comm.allreduce_min(-float(any(c.nulls is not None for c in table.columns))) < 0
    columns = allgather_rows(table.columns, table.count, comm, masked=masked)
    return Table(tuple(columns), len(columns[0]))
