"""Build the data of a stratum's loop from its inputs: rows at their owners, dense ids, indexes and rule targets.

Keys get ids in this order: base rows, keys that static sides join on, keys that rules derive. Then the id of each ghost
at its owner is looked up, so that the loop sends (id, value) and hashes no keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.codegen.nullability import shape_of
from mpi_backend.load import numbering
from mpi_backend.state.index import RelationIndex, build_static, place_rows
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.loop_state import LoopState, Rows
from mpi_backend.state.owner import Owner, route, send
from mpi_backend.state.relation_part import RelationPart
from mpi_backend.state.rows import allgather_rows, flatten
from mpi_backend.state.shape import Shape, column_types
from mpi_backend.state.sub_buckets import whole_buckets
from mpi_backend.state.types import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.load.inputs import Inputs
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.types import Column
    from pyspark_paralagg.plan.plan import PlannedRelation, PlannedRule, StaticIndex


@dataclass(frozen=True)
class Routed:
    """This rank's rows: base and initial rows by relation, rows of static indexes (keys, then payload) by id.

    ``LoopBuilder.build`` takes the static rows out, so that they are freed column by column.
    """

    starts: dict[str, tuple[Table, Table | None]]
    static: dict[int, Table]
    shape: Shape


class LoopBuilder:
    """The builder of one stratum's loop. ``buckets`` is the number of buckets into which rows are hashed."""

    def __init__(self, facts: Facts, inputs: Inputs, comm: Comm, buckets: int, *, ansi: bool) -> None:
        self._facts = facts
        self._inputs = inputs
        self._strings = inputs.strings
        self._comm = comm
        self._buckets = buckets
        self._ansi = ansi
        self._nulls = self._nulls_of_inputs()

    def route(self) -> Routed:
        """Send rows to their owners. Collective."""
        stratum = self._facts.stratum
        starts = {r.name: self._start(r) for r in stratum.relations}
        return Routed(starts, {i.id: self._static(i) for i in stratum.static_indexes}, self._shape())

    def build(self, routed: Routed) -> LoopState:
        """Number keys, and build indexes and targets. Collective. Takes the static rows of ``routed``."""
        facts = self._facts
        starts, static, shape = routed.starts, routed.static, routed.shape
        self._parts = {
            r.name: RelationPart(facts, r, shape.relations[r.name], number=n, rank=self._comm.rank)
            for n, r in enumerate(facts.stratum.relations)
        }
        if facts.mirror is not None:
            [only] = self._parts.values()
            self._mirror = RelationPart(
                facts, only.planned, only.shape, number=only.number, rank=only.rank, is_copy=True
            )
        owners = {r.name: self._owner(r) for r in facts.stratum.relations}
        resolved = [n for n, r in enumerate(facts.stratum.rules) if r.target.kind == "resolved"]
        self._announce_keys(starts, static, resolved)
        base = {name: self._rows(self._parts[name], table) for name, (table, _) in starts.items()}
        initial = {
            name: self._rows(self._parts[name], table) for name, (_, table) in starts.items() if table is not None
        }
        aligned = [i for i in facts.stratum.static_indexes if i.aligned_to is not None]
        groups = {i.id: self._aligned_groups(static[i.id], i) for i in aligned}
        targets = {n: self._resolve(facts.stratum.rules[n], static, owners) for n in resolved}
        for p in self._parts.values():
            if self._comm.size > 1:
                part_targets = [targets[n] for n in resolved if facts.stratum.rules[n].head == p.name]
                numbering.number_ghosts(p, part_targets, self._comm)
            p.grow()
        mirror_places: list[Array] = []
        if facts.mirror is not None:  # after all rows have ids at their owners
            [only] = self._parts.values()
            renumbered, mirror_places = numbering.number_mirror(only, self._mirror, self._comm)
            groups = {i: renumbered[ids] for i, ids in groups.items()}
        loop = LoopState(
            facts, shape, self._strings, self._comm, self._parts, owners, {}, {}, {}, base, initial,
            mirror_places=mirror_places,
        )  # fmt: skip
        own = {
            i.id: _own_groups(static[i.id], len(i.keys)) for i in facts.stratum.static_indexes if i.aligned_to is None
        }
        payloads = {i.id: _payload(static[i.id], i) for i in facts.stratum.static_indexes}
        static.clear()  # from here on, memory has only the columns that rules read
        for i in facts.stratum.static_indexes:
            keys, ids = own.pop(i.id) if i.id in own else (self._aligned_part(i).keys, groups.pop(i.id))
            self._place(i, payloads.pop(i.id), keys, ids, targets, loop)
        for index in facts.stratum.relation_indexes:
            part = self._mirror if index.id == facts.mirror else self._parts[index.relation]
            if index.copy and index.id != facts.mirror:
                part = RelationPart(facts, part.planned, part.shape, number=part.number, rank=part.rank, is_copy=True)
            loop.indexes[index.id] = RelationIndex(index, part)
        return loop

    # --- routing ----------------------------------------------------------------------------------------------------

    def _nulls_of_inputs(self) -> dict[int, list[bool]]:
        """Return for each column of each input whether some rank has a null in it. Collective."""
        local = {
            n: [c.nulls is not None and bool(c.nulls.any()) for c in t.columns] for n, t in self._inputs.tables.items()
        }
        flags = np.array([float(x) for n in sorted(local) for x in local[n]])
        sums = iter(self._comm.allreduce_sum(flags) if len(flags) else flags)
        return {n: [next(sums) > 0 for _ in local[n]] for n in sorted(local)}

    def _shape(self) -> Shape:
        facts = self._facts
        starts = {}
        for r in facts.stratum.relations:
            initial = self._nulls[r.base if r.initial is None else r.initial]
            starts[r.name] = [a or b for a, b in zip(self._nulls[r.base], initial, strict=True)]
        payload = {i.id: [self._nulls[i.input][p] for p in i.payload] for i in facts.stratum.static_indexes}
        return shape_of(facts, starts, payload, ansi=self._ansi)

    def _start(self, relation: PlannedRelation) -> tuple[Table, Table | None]:
        def rows(number: int) -> Table:
            table = self._inputs.tables[number]
            keys = range(len(relation.keys)) if self._facts.is_spread(relation.name) else ()
            return self._routed(table, relation.distribute_by, keys, self._nulls[number])

        return rows(relation.base), None if relation.initial is None else rows(relation.initial)

    def _static(self, index: StaticIndex) -> Table:
        """Return the columns of an index: keys, then payload. Rows with a null key never join and are dropped."""
        table = self._inputs.tables[index.input]
        keep = np.ones(table.count, np.bool_)
        for k in index.keys:
            nulls = table.columns[k].nulls
            if nulls is not None:
                keep &= ~nulls
        if not keep.all():
            table = Table(tuple(c.take(keep) for c in table.columns), int(keep.sum()))
        picked = (*index.keys, *index.payload)
        columns = tuple(table.columns[p] for p in picked)
        has_nulls = [self._nulls[index.input][p] for p in picked]
        if index.placement == "everywhere":
            if self._comm.size == 1:
                return Table(columns, table.count)
            shared = allgather_rows(columns, table.count, self._comm, masked=any(has_nulls))
            total = int(self._comm.allreduce_sum(np.array([float(table.count)]))[0])
            return Table(tuple(shared), len(shared[0]) if shared else total)
        placement = self._facts.placement
        if placement is not None and index.id in placement.ends:
            edges, masked = Table(columns, table.count), any(has_nulls)
            ranks = placement.ranks(index.id, edges, picked, self._strings, self._comm, self._buckets, masked=masked)
            return send(edges, ranks, self._comm, masked=masked)
        by = [picked.index(p) for p in index.partition_by]
        spread = range(len(picked)) if self._facts.is_spread_index(index.id) else ()
        return self._routed(Table(columns, table.count), by, spread, has_nulls)

    def _routed(self, table: Table, by: Sequence[int], spread: Iterable[int], nulls: Sequence[bool]) -> Table:
        """Send each row to the owner of the columns ``by``, in the sub-bucket of the other columns of ``spread``."""
        others = [c for c in spread if c not in by]
        masked = any(nulls)
        count = self._facts.sub_buckets
        return route(table, by, others, self._strings, self._comm, self._buckets, count, masked=masked)

    def _owner(self, relation: PlannedRelation) -> Owner:
        keys = range(len(relation.keys)) if self._facts.is_spread(relation.name) else ()
        others = [k for k in keys if k not in relation.distribute_by]
        distribution = relation.distribute_by, column_types(relation), self._buckets, self._comm.size
        counts = whole_buckets(self._buckets) if keys and self._facts.refinement is not None else None
        return Owner(*distribution, others, self._facts.sub_buckets, counts)

    # --- ids --------------------------------------------------------------------------------------------------------

    def _announce_keys(
        self, starts: dict[str, tuple[Table, Table | None]], static: dict[int, Table], resolved: list[int]
    ) -> None:
        """Announce all keys to the maps of one-word keys, so that these can look up by position instead of hashing."""
        facts = self._facts
        for name, part in self._parts.items():
            if part.shape.key_words != 1:
                continue
            derived = [
                self._target_columns(facts.stratum.rules[n], static)[0]
                for n in resolved
                if facts.stratum.rules[n].head == name
            ]
            base = [t.columns[0] for t in starts[name] if t is not None]
            origins = [static[i.id].columns[0] for i in facts.stratum.static_indexes if i.aligned_to == name]
            if facts.mirror is not None:
                self._mirror.keys.expect_all(c.words for c in origins)
            part.keys.expect_all(c.words for c in [*base, *derived, *(origins if facts.mirror is None else ())])
            if self._comm.size > 1:
                part.ghosts.expect_all(c.words for c in derived)

    def _rows(self, part: RelationPart, table: Table) -> Rows:
        k, shape = len(part.planned.keys), part.shape
        keys = flatten(table.columns[:k], table.count, masked=shape.has_null_keys)
        ids = part.keys.add(keys, count=table.count)
        stride = len(part.planned.dependents) + any(shape.dependents)
        words = flatten(table.columns[k:], table.count, masked=any(shape.dependents))
        return Rows(ids, words, 0, stride)

    def _aligned_groups(self, table: Table, index: StaticIndex) -> Array:
        part = self._aligned_part(index)
        keys = table.columns[: len(index.keys)]
        return part.keys.add(flatten(keys, table.count, masked=part.shape.has_null_keys), count=table.count)

    def _aligned_part(self, index: StaticIndex) -> RelationPart:
        """Return the part whose ids are the groups of an aligned index."""
        return self._parts[str(index.aligned_to)] if self._facts.mirror is None else self._mirror

    def _target_columns(self, rule: PlannedRule, static: dict[int, Table]) -> list[Column]:
        index = self._facts.statics[rule.resolving_probe.index]
        return [static[index.id].columns[len(index.keys) + p] for p in rule.target.payload]

    def _resolve(self, rule: PlannedRule, static: dict[int, Table], owners: dict[str, Owner]) -> Array:
        """Return for each row of the index the id of the head's key. A ghost is the complement of its id."""
        part = self._parts[rule.head]
        columns = self._target_columns(rule, static)
        count = static[rule.resolving_probe.index].count
        rows = flatten(columns, count, masked=part.shape.has_null_keys)
        placement = self._facts.placement
        if self._comm.size == 1 or (placement is not None and not placement.has_ghosts):
            return part.keys.add(rows, count=count)
        width = part.shape.key_words
        mask_at = width - 1 if part.shape.has_null_keys else -1
        ranks = owners[rule.head].ranks(rows, width, mask_at, self._strings, count)
        out = np.empty(count, np.int32)
        is_own = ranks == self._comm.rank
        table = rows.reshape(count, width)
        out[is_own] = part.keys.add(np.ascontiguousarray(table[is_own]).ravel(), count=int(is_own.sum()))
        ghosts = part.ghosts.add(np.ascontiguousarray(table[~is_own]).ravel(), count=int((~is_own).sum()))
        part.grow_ghosts()
        part.ghost_owner[ghosts] = ranks[~is_own]
        out[~is_own] = ~ghosts
        return out

    # --- indexes ----------------------------------------------------------------------------------------------------

    def _place(
        self, index: StaticIndex, payload: list[Column | None], keys: KeyMap, groups: Array,
        targets: dict[int, Array], loop: LoopState,
    ) -> None:  # fmt: skip
        by = targets[index.sorted_by] if index.sorted_by is not None and self._comm.size > 1 else None
        offsets, order = place_rows(groups, len(keys), by)
        loop.statics[index.id] = build_static(keys, offsets, order, payload)
        for number, rule in enumerate(self._facts.stratum.rules):
            if number in targets and rule.resolving_probe.index == index.id:
                loop.targets[number] = targets.pop(number)[order]


def _own_groups(table: Table, width: int) -> tuple[KeyMap, Array]:
    """Return the map of an index's own keys, which are the first ``width`` columns, and the id of each row's key."""
    keys = KeyMap(width)
    if width == 1:
        keys.expect_all(c.words for c in table.columns[:1])
    return keys, keys.add(flatten(table.columns[:width], table.count, masked=False), count=table.count)


def _payload(table: Table, index: StaticIndex) -> list[Column | None]:
    """Return the payload columns of an index; None for those that no rule reads."""
    return [c if p in index.read else None for p, c in enumerate(table.columns[len(index.keys) :])]
