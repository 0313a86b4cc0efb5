"""Hold one rank's part of a recursive relation: its keys as dense ids, values by id, and the *ghosts*.

Ghosts are keys that other ranks own, each with the best value already sent: a value that is no better is not sent.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import lists
from mpi_backend.kernels.flags import QUEUED, SETTLED
from mpi_backend.state.identity import identity
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.types import Column, type_of, words_of_doubles

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.shape import RelationShape
    from mpi_backend.state.strings import Strings
    from pyspark_paralagg.plan.plan import PlannedRelation

_MIN_CAPACITY = 16


class Accumulator:
    """Values of dependent columns by id, with the list of changed ids; the arrays of ``kernels.aggregates``.

    If any column is ``nullable``, ``k`` has a row for every column; those of the other columns are always valid.
    """

    def __init__(self, identities: Array, nullable: tuple[bool, ...], *, traced: bool) -> None:
        self._identities = identities
        self._valid = np.array([not n for n in nullable] if any(nullable) else [], np.uint8)
        self._traced = traced
        self.v = np.zeros((len(identities), 0), np.int64)
        self.k = np.zeros((len(self._valid), 0), np.uint8)
        self.f = np.zeros(0, np.uint8)
        self.d = np.zeros(0, np.int32)
        self.n = np.zeros(1, np.int64)
        self.p = np.zeros(0, np.int64)

    @property
    def arrays(self) -> list[Array]:
        """Return the arrays in the order of a kernel's parameters."""
        return [self.v, self.k, self.f, self.d, self.n, self.p]

    @property
    def capacity(self) -> int:
        """Return the number of ids that the arrays have room for."""
        return len(self.f)

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        return sum(a.nbytes for a in self.arrays)

    @property
    def dirty(self) -> Array:
        """Return the changed ids."""
        return self.d[: int(self.n[0])]

    def reserve(self, size: int) -> None:
        """Make room for ids below ``size``."""
        before = self.capacity
        if size <= before:
            return
        capacity = max(size, 2 * before, _MIN_CAPACITY)
        v = np.empty((len(self._identities), capacity), np.int64)
        v[:, :before] = self.v
        v[:, before:] = self._identities[:, None]
        self.v = v
        self.k = np.concatenate([self.k, np.repeat(self._valid[:, None], capacity - before, axis=1)], axis=1)
        self.f = np.concatenate([self.f, np.zeros(capacity - before, np.uint8)])
        self.d = np.concatenate([self.d, np.zeros(capacity - before, np.int32)])
        if self._traced:
            self.p = np.concatenate([self.p, np.full(capacity - before, -1, np.int64)])

    def sort_changed(self, size: int) -> None:
        """Sort the list of changed ids, if it has many of all ``size`` ids."""
        if lists.SCAN_FACTOR * int(self.n[0]) > size:
            lists.list_queued(self.f, self.d, size)

    def take(self, spare: Array) -> tuple[Array, int]:
        """Return the list of changed ids and its length. Begin a new list, in ``spare`` if that has room."""
        changed, size = self.d, int(self.n[0])
        self.d = spare if len(spare) >= self.capacity else np.zeros(self.capacity, np.int32)
        self.n[0] = 0
        return changed, size

    def copy_from(self, other: Accumulator) -> None:
        """Copy the contents of another accumulator of the same capacity."""
        for target, source in zip(self.arrays, other.arrays, strict=True):
            target[...] = source

    def copy(self) -> Accumulator:
        """Return a copy."""
        out = copy(self)
        out.v, out.k, out.f, out.d, out.n, out.p = (a.copy() for a in self.arrays)
        return out

    def reset(self) -> None:
        """Remove the values of all ids."""
        self.f[:] = 0
        self.v[:] = self._identities[:, None]
        self.k[:] = self._valid[:, None]
        self.n[0] = 0

    def remove(self, ids: Array) -> None:
        """Remove the values of these ids, also from the list of changed ids."""
        lists.clear(ids, self.v, self.k, self.f, self._identities, self._valid)
        left = self.dirty[self.f[self.dirty] != 0]
        self.d[: len(left)] = left
        self.n[0] = len(left)

    def put_flags(self, ids: Array, flags: Array) -> None:
        """Set the flags of ids that had none, and append the queued ones to the list of changed ids."""
        self.f[ids] = flags
        queued = ids[flags & QUEUED != 0]
        n = int(self.n[0])
        self.d[n : n + len(queued)] = queued
        self.n[0] = n + len(queued)

    def clear(self) -> None:
        """Remove the values of the changed ids."""
        lists.clear(self.dirty, self.v, self.k, self.f, self._identities, self._valid)
        self.n[0] = 0


class RelationPart:
    """A relation on this rank. Rules write to ``pending``, which is ``state`` itself if rules may read it at once."""

    def __init__(
        self,
        facts: Facts,
        planned: PlannedRelation,
        shape: RelationShape,
        *,
        number: int,
        rank: int,
        is_copy: bool = False,
    ) -> None:
        self.facts = facts
        self.planned = planned
        self.shape = shape
        self.number = number
        self.rank = rank
        self._is_copy = is_copy
        self.keys = KeyMap(shape.key_words)
        self.ghosts = KeyMap(shape.key_words)
        self.ghost_owner = np.zeros(0, np.int32)
        self.ghost_remote = np.zeros(0, np.int32)
        self.restart(traced=False)

    def restart(self, *, traced: bool) -> None:
        """Remove all rows, keep all ids. With ``traced``, each change stores the row that it came from."""
        self.traced = traced
        self.state = self._accumulator()
        self.pending = self.state if self.facts.stratum.in_place else self._accumulator()
        self.delta = self._accumulator() if self.facts.is_accumulating and not self._is_copy else None
        self.ghost = self._accumulator()
        self.base_snapshot: Accumulator | None = None
        self.current = np.zeros(0, np.int32)
        self.size = 0
        self.size_between = 0  # the rows that a single rank changes between two votes, but those of the last delta
        self.rows = self.rows_before = 0  # counted; before: when the iteration began
        self.grow()

    def sibling(self) -> RelationPart:
        """Return a part with the same ids and no rows."""
        other = copy(self)
        other.restart(traced=self.traced)
        return other

    def forget(self) -> None:
        """Remove the rows of ``state`` and keep all ids. A run in place has no other rows."""
        self.state.reset()
        self.rows = self.rows_before = self.size = 0

    def forget_ghosts(self) -> None:
        """Remove all ghosts, none of which is waiting to be sent. New ones get their ids."""
        self.ghosts.clear()
        self.ghost.reset()

    def present(self) -> Array:
        """Return the ids that have a row, sorted."""
        size = min(len(self.keys), self.state.capacity)
        return np.arange(size, dtype=np.int32) if self.rows == size else lists.present(self.state.f, size)

    def changed(self) -> Array:
        """Return the ids that have a row which is not settled, sorted."""
        ids = self.present()
        return ids[self.state.f[ids] & SETTLED == 0] if self.planned.settled else ids

    @property
    def name(self) -> str:
        """Return the relation's name."""
        return self.planned.name

    @property
    def driver_values(self) -> Accumulator:
        """Return the values that a driver reads: differences under sums, else the values of the rows."""
        return self.state if self.delta is None else self.delta

    @property
    def is_view(self) -> bool:
        """Return whether the relation follows other relations (``loop.views``)."""
        return any(d.view is not None for d in self.planned.dependents)

    @property
    def value_words(self) -> int:
        """Return the number of words of a row's values in a message."""
        return self.shape.value_words(traced=self.traced)

    @property
    def origin(self) -> Array:
        """Return the identifier of row 0 in a traced run: relation, rank and id in one word."""
        return np.array([self.number << 48 | self.rank << 32], np.int64)

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        accumulators = (self.state, self.pending, self.delta, self.ghost, self.base_snapshot)
        values = sum({id(a): a.bytes for a in accumulators if a is not None}.values())
        ghosts = self.ghost_owner.nbytes + self.ghost_remote.nbytes
        return values + self.keys.bytes + self.ghosts.bytes + self.current.nbytes + ghosts

    def key_column(self, c: int, ids: Array, strings: Strings) -> Column:
        """Return key ``c`` of these rows."""
        column_type = type_of(self.planned.keys[c].type)
        words = np.ascontiguousarray(self.keys.keys[ids, c])
        nulls = (self.keys.keys[ids, len(self.planned.keys)] >> c & 1) != 0 if self.shape.keys[c] else None
        return Column(column_type, words, nulls, strings.all() if column_type.kind == "text" else None)

    def value_column(self, j: int, words: Array, nulls: Array | None, strings: Strings) -> Column:
        """Return dependent column ``j`` with these words."""
        column_type = type_of(self.planned.dependents[j].column.type)
        plain = words_of_doubles(words.view(np.float64)) if column_type.kind == "fraction" else words
        if nulls is not None:  # the word of a null is 0, as in inputs: a higher stratum may read the column as one
            plain = np.where(nulls, 0, plain)
        return Column(column_type, plain, nulls, strings.all() if column_type.kind == "text" else None)

    def grow(self) -> None:
        """Make room for all keys and ghosts."""
        size = max(len(self.keys), _MIN_CAPACITY)
        for a in (self.state, self.pending, self.delta):
            if a is not None:
                a.reserve(size)
        self.grow_ghosts()

    def grow_ghosts(self) -> None:
        """Make room for all ghosts."""
        self.ghost.reserve(max(len(self.ghosts), 1))
        missing = self.ghost.capacity - len(self.ghost_owner)
        if missing > 0:
            self.ghost_owner = np.concatenate([self.ghost_owner, np.zeros(missing, np.int32)])
            self.ghost_remote = np.concatenate([self.ghost_remote, np.full(missing, -1, np.int32)])

    def _accumulator(self) -> Accumulator:
        identities = np.array([identity(d) for d in self.planned.dependents], np.int64)
        return Accumulator(identities, self.shape.dependents, traced=self.traced)
