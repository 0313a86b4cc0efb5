"""Indexes: an input grouped by key columns (CSR), a recursive relation grouped by some of its keys (linked lists)."""

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

_LEAST = 16
_SMALL = 1 << 31


@dataclass
class Pull:
    """The edges of a rule by target: own ones, and ghosts. ``given`` is what each of the ``sources`` contributes."""

    given: Array
    sources: int
    own: Edges
    ghosts: Edges


@dataclass
class Edges:
    """Sources of ``ids[g]``: ``sources[offsets[g]]`` until ``offsets[g + 1]``."""

    ids: Array
    offsets: Array
    sources: Array


@dataclass
class StaticIndex:
    """Rows of group g are ``offsets[g]`` until ``offsets[g + 1]``; groups are ids of ``keys``.

    ``keys`` is a relation's own map where the rule joins on its whole key: the id of the driver's row is the group.
    """

    keys: KeyMap
    offsets: Array
    payload: list[Array]
    nulls: list[Array]

    @property
    def bytes(self) -> int:
        """Held in memory."""
        return self.offsets.nbytes + sum(a.nbytes for a in (*self.payload, *self.nulls))


def place_rows(groups: Array, count: int, targets: Array | None) -> tuple[Array, Array]:
    """Sorts rows by group: offsets, and the old number of each row in its new place.

    With ``targets`` (complements for rows of other ranks) own ones come first in a group: the loop's branch is
    predictable.
    """
    offsets = np.zeros(count + 1, np.int32)
    order = np.empty(len(groups), np.int32)
    lists.counting_sort(groups, np.zeros(0, np.int32) if targets is None else targets, offsets, order)
    return offsets, order


def build_static(keys: KeyMap, offsets: Array, order: Array, payload: list[Column | None]) -> StaticIndex:
    """Puts the payload in its places; columns that no rule reads (None) are left out."""
    words: list[Array] = []
    nulls: list[Array] = []
    for column in payload:
        if column is None:
            words.append(np.zeros(0, np.int64))
            nulls.append(np.zeros(0, np.bool_))
            continue
        words.append(_narrow(column, order))
        nulls.append(np.zeros(len(order), np.bool_) if column.nulls is None else column.nulls[order])
    return StaticIndex(keys, offsets, words, nulls)


def _narrow(column: Column, order: Array) -> Array:
    """The column in its new order, in half the bytes where that is enough."""
    words = column.words
    if column.type.kind == "fraction":
        return words[order].view(np.float64)
    if not len(words) or (words.min() >= -_SMALL and words.max() < _SMALL):
        words = words.astype(np.int32)
    return words[order]


def by_target(offsets: Array, targets: Array, columns: int) -> Pull:
    """The edges of a static index turned round; complements among ``targets`` are ghosts."""
    degrees = np.diff(offsets)
    sources = np.repeat(np.arange(len(degrees), dtype=np.int32), degrees)
    own = targets >= 0
    return Pull(
        np.zeros((columns, len(degrees))),
        int(np.count_nonzero(degrees)),
        _edges(targets[own], sources[own]),
        _edges(~targets[~own], sources[~own]),
    )


def _edges(targets: Array, sources: Array) -> Edges:
    offsets, order = place_rows(targets, int(targets.max()) + 1 if len(targets) else 0, None)
    found = np.flatnonzero(np.diff(offsets)).astype(np.int32)
    return Edges(found, np.append(offsets[found], offsets[-1]), sources[order])


@dataclass
class RelationIndex:
    """Rows of group g: ``heads[g]``, then along ``next``. A row with a null among the keys joins with nothing."""

    planned: Planned
    part: RelationPart
    groups: KeyMap = field(init=False)
    heads: Array = field(init=False)
    next: Array = field(init=False)

    def __post_init__(self) -> None:
        self.groups = KeyMap(len(self.planned.keys))
        self.clear()

    def clear(self) -> None:
        """As if nothing had been linked."""
        self.heads = np.full(_LEAST, -1, np.int32)
        self.next = np.full(_LEAST, lists.UNLINKED, np.int32)

    @property
    def bytes(self) -> int:
        """Held in memory."""
        return self.heads.nbytes + self.next.nbytes + self.groups.bytes

    def link_current(self) -> None:
        """Links the rows of the part's current delta that are new."""
        ids = self.part.current[: self.part.size]
        capacity = self.part.state.capacity
        if len(self.next) < capacity:
            self.next = np.concatenate([self.next, np.full(capacity - len(self.next), lists.UNLINKED, np.int32)])
        fresh = ids[self.next[ids] == lists.UNLINKED]
        shape = self.part.shape
        words = self.part.keys.keys
        if shape.has_null_keys and len(fresh):
            mask = words[fresh, len(shape.keys)]
            joins = np.zeros(len(fresh), np.bool_)
            for c in self.planned.keys:
                joins |= (mask >> c & 1) != 0
            fresh = fresh[~joins]
        if not len(fresh):
            return
        flat = np.ascontiguousarray(words[fresh][:, list(self.planned.keys)]).ravel()
        groups = self.groups.add(flat, count=len(fresh))
        if len(self.groups) > len(self.heads):
            more = max(len(self.groups), 2 * len(self.heads)) - len(self.heads)
            self.heads = np.concatenate([self.heads, np.full(more, -1, np.int32)])
        lists.link(fresh, groups, self.heads, self.next)
