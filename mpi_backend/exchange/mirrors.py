"""Edges that lie with their targets: rows that are applied go, as *mirrors*, to the ranks that have edges from there.

Each rank then writes to rows of its own only, compares with their best values, and holds no ghosts: with few ranks that
is less work than sending what edges derive (measured in docs/architecture.md). Rows of a mirror are read, never
written by rules; a rank tells another one the number that a row has here, which was looked up when both were loaded.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import mirrors as kernel
from mpi_backend.kernels.messages import write_values
from pyspark_paralagg.plan.plan import Probe, RelationIndex

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.load.inputs import Inputs
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.loop_state import Loop
    from pyspark_paralagg.plan.plan import PlannedRule, StaticIndex

EDGES_A_RANK = 2
"""A row goes to each rank: only where it has, on the whole, more than so many edges for each."""
_MANY_ROWS = 1 << 16
_MIX = np.uint64(0x9E3779B97F4A7C15)


def mirrored(facts: Facts, inputs: Inputs, comm: Comm) -> Facts:
    """With edges at their targets, and rules that start from mirrors, where that is less work. Collective.

    Every rule has to go by one index of edges from a row of the only relation to another one.
    """
    moved = _moved(facts) if comm.size > 1 else None
    if moved is None or _degree(moved.values(), inputs, comm) <= EDGES_A_RANK * comm.size:
        return facts
    stratum = facts.stratum
    number = max([-1, *(i.id for i in stratum.relation_indexes)]) + 1
    copy = RelationIndex(number, stratum.relations[0].name, (), "everywhere", copy=True)
    changed = replace(
        stratum,
        static_indexes=tuple(moved.get(i.id, i) for i in stratum.static_indexes),
        relation_indexes=(*stratum.relation_indexes, copy),
        rules=tuple(replace(r, driver=replace(r.driver, index=copy.id)) for r in stratum.rules),
    )
    return replace(facts, stratum=changed, mirror=copy.id)


def _moved(facts: Facts) -> dict[int, StaticIndex] | None:
    """The indexes of edges, each row where the row is that it leads to; None: not all rules go by such."""
    stratum = facts.stratum
    is_one = len(stratum.relations) == 1 and stratum.in_place and facts.spread.count == 1
    if not is_one or stratum.bitmap is not None or stratum.decomposition is not None or stratum.makes_strings:
        return None
    [relation] = stratum.relations
    moved: dict[int, StaticIndex] = {}
    for rule in stratum.rules:
        edges = _edges(rule, facts.statics, len(relation.keys))
        if edges is None:
            return None
        targets = tuple(edges.payload[rule.target.payload[k]] for k in relation.distribute_by)
        types = [facts.inputs[edges.input].exprs[t].type for t in targets]
        if types != [relation.keys[k].type for k in relation.distribute_by]:
            return None  # their hashes differ
        there = replace(edges, partition_by=targets)
        if moved.setdefault(edges.id, there) != there:
            return None
    return moved


def _degree(edges: Iterable[StaticIndex], inputs: Inputs, comm: Comm) -> float:
    """Edges a row that has some: of all rows with some keys, so that a part of the rows tells it."""
    counted = np.zeros(2)
    for of in edges:
        table = inputs.tables[of.input]
        mixed = np.zeros(table.count, np.uint64)
        for k in of.keys:
            mixed = (mixed ^ table.columns[k].words.view(np.uint64)) * _MIX
        picked = mixed[mixed >> np.uint64(58) == 0] if table.count > _MANY_ROWS else mixed
        counted += (len(picked), len(np.unique(picked)))
    rows, distinct = comm.sum(counted)
    return float(rows / max(distinct, 1.0))


def _edges(rule: PlannedRule, statics: Mapping[int, StaticIndex], keys: int) -> StaticIndex | None:
    """The index by which a rule goes from the driver's row to the head's, if it looks up nothing else elsewhere."""
    if rule.target.kind != "resolved" or rule.driver.index is not None or not keys:
        return None
    found = None
    for at, step in enumerate(rule.steps):
        if not isinstance(step, Probe) or (not step.recursive and statics[step.index].placement == "everywhere"):
            continue
        if step.recursive or at != rule.target.step:
            return None
        found = statics[step.index]
    return found


class Mirrors:
    """Of the only relation of a loop. Collective to make."""

    def __init__(self, loop: Loop, mirror: int) -> None:
        self._loop = loop
        [self._own] = loop.parts.values()
        self._mirror = loop.indexes[mirror].part
        self._mirror.grow()
        comm, count = loop.comm, len(self._own.keys)
        # For each rank: the number here of its rows (-1: no edge of ours begins there), and which of ours it wants.
        self._places = loop.mirror_places
        asked = comm.exchange([np.packbits(p >= 0).astype(np.int64) for p in self._places])
        self._wanted = np.stack([np.unpackbits(w.astype(np.uint8), count=count) for w in asked]).astype(np.bool_)
        self._wanted[comm.rank] = False
        self._mirror.current = np.zeros(len(self._mirror.keys), np.int32)
        self.run(np.zeros(0, np.int32), np.zeros(0))  # nothing, but what it calls is loaded then

    def run(self, rows: Array, votes: Array) -> Array:
        """Own ``rows`` become the current ones of the mirrors of all ranks; everybody's votes. Collective."""
        own, mirror, comm = self._own, self._mirror, self._loop.comm
        masked, traced, origin = any(own.shape.dependents), own.traced, int(own.origin[0])
        stride = 1 + own.value_words
        counts = np.zeros(comm.size, np.int64)
        kernel.count_wanted(rows, self._wanted, counts)
        total = int(counts.sum())
        flat, ids, places = np.empty(total * stride, np.int64), np.empty(total, np.int32), np.empty(total, np.int64)
        kernel.begin_rows(rows, self._wanted, stride, flat, ids, places)
        write_values(ids, places, own.state.v, own.state.k, own.state.p, masked, False, flat)  # noqa: FBT003 - compiled
        if traced:
            flat[stride - 1 :: stride] = origin + ids.astype(np.int64)
        received, heard = comm.meet(flat, counts * stride, votes)
        into = mirror.state.v, mirror.state.k, mirror.state.f, mirror.state.p, masked, traced
        size = kernel.reflect(rows, self._places[comm.rank], own.state.v, own.state.k, *into, origin, mirror.current)
        for r, words in enumerate(received):
            size = kernel.unpack(words, stride, self._places[r], *into, mirror.current, size)
        mirror.size = size
        return heard
