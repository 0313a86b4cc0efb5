"""Index rows for joins: inputs by key columns (CSR), recursive relations by some of their keys (linked lists)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import lists
from mpi_backend.state.key_map import KeyMap

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.relation_part import RelationPart
    from mpi_backend.state.types import Column
    from pyspark_paralagg.plan.plan import RelationIndex as Planned

_MIN_CAPACITY = 16
_INT32_LIMIT = 1 << 31


@dataclass
class TargetSums:
    """The edges of a rule by target: targets on this rank, and ghosts. ``sources`` counts the rows that contribute."""

    contributions: Array
    sources: int
    local: Edges
    ghosts: Edges


@dataclass
class Edges:
    """Edges grouped by target: the sources of ``ids[g]`` are ``sources[offsets[g] : offsets[g + 1]]``."""

    ids: Array
    offsets: Array
    sources: Array


@dataclass
class StaticIndex:
    """An input grouped by key: group g has the rows ``offsets[g] : offsets[g + 1]``.

    Groups are ids of ``keys``. If the rule joins on the driver's whole key, ``keys`` is the map of the driver's
    relation, and the id of the driver's row is the group.
    """

    keys: KeyMap
    offsets: Array
    payload: list[Array]
    nulls: list[Array]

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        return self.offsets.nbytes + sum(a.nbytes for a in (*self.payload, *self.nulls))


def place_rows(groups: Array, count: int, targets: Array | None) -> tuple[Array, Array]:
    """Sort rows by group. Return the groups' offsets, and the old number of each row by its new position.

    ``targets`` has complements for rows of other ranks. In each group, rows with a target on this rank come first,
    so that the loop's branch is predictable.
    """
    offsets = np.zeros(count + 1, np.int32)
    order = np.empty(len(groups), np.int32)
    lists.counting_sort(groups, np.zeros(0, np.int32) if targets is None else targets, offsets, order)
    return offsets, order


def build_static(keys: KeyMap, offsets: Array, order: Array, payload: list[Column | None]) -> StaticIndex:
    """Build an index whose payload is sorted by ``order``. Omit columns that no rule reads (None).

    The list loses its columns, each of which is freed if nothing else has it.
    """
    words: list[Array] = []
    nulls: list[Array] = []
    payload.reverse()
    while payload:
        column = payload.pop()
        if column is None:
            words.append(np.zeros(0, np.int64))
            nulls.append(np.zeros(0, np.bool_))
            continue
        words.append(_narrow(column, order))
        nulls.append(np.zeros(len(order), np.bool_) if column.nulls is None else column.nulls[order])
    return StaticIndex(keys, offsets, words, nulls)


def _narrow(column: Column, order: Array) -> Array:
    """Return the sorted column, as 32-bit words if all values fit."""
    words = column.words
    if column.type.kind == "fraction":
        return words[order].view(np.float64)
    return (words.astype(np.int32) if fit_int32(words) else words)[order]


def fit_int32(words: Array) -> bool:
    """Return whether all words fit into 32 bits."""
    return not len(words) or bool(words.min() >= -_INT32_LIMIT and words.max() < _INT32_LIMIT)


def reverse_edges(offsets: Array, targets: Array, columns: int) -> TargetSums:
    """Reverse the edges of a static index. Complements among ``targets`` are ghosts."""
    degrees = np.diff(offsets)
    sources = np.repeat(np.arange(len(degrees), dtype=np.int32), degrees)
    is_local = targets >= 0
    return TargetSums(
        np.zeros((columns, len(degrees))),
        int(np.count_nonzero(degrees)),
        _edges(targets[is_local], sources[is_local]),
        _edges(~targets[~is_local], sources[~is_local]),
    )


def _edges(targets: Array, sources: Array) -> Edges:
    offsets, order = place_rows(targets, int(targets.max()) + 1 if len(targets) else 0, None)
    ids = np.flatnonzero(np.diff(offsets)).astype(np.int32)
    return Edges(ids, np.append(offsets[ids], offsets[-1]), sources[order])


@dataclass
class RelationIndex:
    """A relation grouped by keys: group g has the row ``heads[g]``, then those along ``next``.

    From ``old_heads[g]`` on, the list has the rows before the last delta: those of the delta are linked in front.
    A row with a null key joins with nothing, so it is in no group.
    """

    planned: Planned
    part: RelationPart
    groups: KeyMap = field(init=False)
    heads: Array = field(init=False)
    old_heads: Array = field(init=False)
    next: Array = field(init=False)

    def __post_init__(self) -> None:
        self.groups = KeyMap(len(self.planned.keys))
        self.clear()

    def clear(self) -> None:
        """Unlink all rows."""
        self.heads = np.full(_MIN_CAPACITY, -1, np.int32)
        self.old_heads = self.heads.copy()
        self._changed_groups = np.zeros(0, np.int32)
        self.next = np.full(_MIN_CAPACITY, lists.UNLINKED, np.int32)

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        return self.heads.nbytes + self.old_heads.nbytes + self.next.nbytes + self.groups.bytes

    def link_current(self) -> None:
        """Link the new rows of the part's current delta."""
        self.old_heads[self._changed_groups] = self.heads[self._changed_groups]
        self._changed_groups = self._changed_groups[:0]
        self._link(self.part.current[: self.part.size])

    def rebuild(self) -> None:
        """Link all rows of the part but the current delta, which ``link_current`` links next."""
        self.groups = KeyMap(len(self.planned.keys))
        self.clear()
        is_old = np.zeros(self.part.state.capacity, np.bool_)
        is_old[lists.present(self.part.state.f, len(self.part.keys))] = True
        is_old[self.part.current[: self.part.size]] = False
        self._link(np.flatnonzero(is_old).astype(np.int32))

    def _link(self, ids: Array) -> None:
        capacity = self.part.state.capacity
        if len(self.next) < capacity:
            self.next = np.concatenate([self.next, np.full(capacity - len(self.next), lists.UNLINKED, np.int32)])
        new_rows = ids[self.next[ids] == lists.UNLINKED]
        shape = self.part.shape
        words = self.part.keys.keys
        if shape.has_null_keys and len(new_rows):
            mask = words[new_rows, len(shape.keys)]
            has_null = np.zeros(len(new_rows), np.bool_)
            for c in self.planned.keys:
                has_null |= (mask >> c & 1) != 0
            new_rows = new_rows[~has_null]
        if not len(new_rows):
            return
        flat = np.ascontiguousarray(words[new_rows][:, list(self.planned.keys)]).ravel()
        groups = self.groups.add(flat, count=len(new_rows))
        if len(self.groups) > len(self.heads):
            more = max(len(self.groups), 2 * len(self.heads)) - len(self.heads)
            self.heads = np.concatenate([self.heads, np.full(more, -1, np.int32)])
            self.old_heads = np.concatenate([self.old_heads, np.full(more, -1, np.int32)])
        lists.link(new_rows, groups, self.heads, self.next)
        self._changed_groups = groups
