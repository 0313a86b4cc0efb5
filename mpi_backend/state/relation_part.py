"""One rank's part of a recursive relation: its keys as dense ids, values by id, and the *ghosts*.

Ghosts are keys that other ranks own, with the best value already sent to each: what cannot improve anything is not
sent.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import lists
from mpi_backend.state.identity import identity
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.types import Column, type_of, words_of_doubles

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.shape import RelationShape
    from mpi_backend.state.strings import Strings
    from pyspark_paralagg.plan.plan import PlannedRelation

_LEAST = 16


class Accumulator:
    """Values of dependent columns by id, with the list of ids that changed; the arrays of ``kernels.aggregates``.

    Where some column is ``nullable``, ``k`` has all of them: the others are never null.
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
        """As kernels take them."""
        return [self.v, self.k, self.f, self.d, self.n, self.p]

    @property
    def capacity(self) -> int:
        """Ids that there is room for."""
        return len(self.f)

    @property
    def bytes(self) -> int:
        """Held in memory."""
        return sum(a.nbytes for a in self.arrays)

    @property
    def dirty(self) -> Array:
        """Ids that changed."""
        return self.d[: int(self.n[0])]

    def reserve(self, size: int) -> None:
        """Room for ids below ``size``."""
        before = self.capacity
        if size <= before:
            return
        wanted = max(size, 2 * before, _LEAST)
        v = np.empty((len(self._identities), wanted), np.int64)
        v[:, :before] = self.v
        v[:, before:] = self._identities[:, None]
        self.v = v
        self.k = np.concatenate([self.k, np.repeat(self._valid[:, None], wanted - before, axis=1)], axis=1)
        self.f = np.concatenate([self.f, np.zeros(wanted - before, np.uint8)])
        self.d = np.concatenate([self.d, np.zeros(wanted - before, np.int32)])
        if self._traced:
            self.p = np.concatenate([self.p, np.full(wanted - before, -1, np.int64)])

    def ascend(self, size: int) -> None:
        """The list of what changed in the order of ids, where it has many of the ``size`` ids that there are."""
        if lists.MANY * int(self.n[0]) > size:
            lists.ascend(self.f, self.d, size)

    def take(self, spare: Array) -> tuple[Array, int]:
        """The list of what changed, and its length; a new list begins in ``spare`` if that has room."""
        taken, size = self.d, int(self.n[0])
        self.d = spare if len(spare) >= self.capacity else np.zeros(self.capacity, np.int32)
        self.n[0] = 0
        return taken, size

    def become(self, other: Accumulator) -> None:
        """The same as another one of this capacity."""
        for mine, its in zip(self.arrays, other.arrays, strict=True):
            mine[...] = its

    def twin(self) -> Accumulator:
        """A copy."""
        out = copy(self)
        out.v, out.k, out.f, out.d, out.n, out.p = (a.copy() for a in self.arrays)
        return out

    def reset(self) -> None:
        """Back to "nothing came in" for every id."""
        self.f[:] = 0
        self.v[:] = self._identities[:, None]
        self.k[:] = self._valid[:, None]
        self.n[0] = 0

    def clear(self) -> None:
        """Back to "nothing came in" for every id that changed."""
        lists.clear(self.dirty, self.v, self.k, self.f, self._identities, self._valid)
        self.n[0] = 0


class Part:
    """A relation on this rank. Rules write to ``pending``, which is ``state`` where the Plan allows to read at once."""

    def __init__(
        self, facts: Facts, of: PlannedRelation, shape: RelationShape, *, number: int, rank: int, is_copy: bool = False
    ) -> None:
        self.facts = facts
        self.of = of
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
        """Forgets all rows, keeps all ids. ``traced``: from here on each change notes where it came from."""
        self.traced = traced
        self.state = self._accumulator()
        self.pending = self.state if self.facts.stratum.in_place else self._accumulator()
        self.delta = self._accumulator() if self.facts.is_accumulating and not self._is_copy else None
        self.ghost = self._accumulator()
        self.begun: Accumulator | None = None
        self.current = np.zeros(0, np.int32)
        self.size = 0
        self.rows = 0
        self.grow()

    def sibling(self) -> Part:
        """The same ids, no rows."""
        other = copy(self)
        other.restart(traced=self.traced)
        return other

    def forget(self) -> None:
        """All rows of ``state``, which is all there is in a run in place; ids stay."""
        self.state.reset()
        self.rows = self.size = 0

    def present(self) -> Array:
        """Ids that have a row, in their order."""
        size = min(len(self.keys), self.state.capacity)
        return np.arange(size, dtype=np.int32) if self.rows == size else lists.present(self.state.f, size)

    @property
    def name(self) -> str:
        """Of the relation."""
        return self.of.name

    @property
    def driver_values(self) -> Accumulator:
        """What a driver reads: differences under sums, else the values of the rows."""
        return self.state if self.delta is None else self.delta

    @property
    def is_view(self) -> bool:
        """Whether its rows follow other relations."""
        return any(d.view is not None for d in self.of.dependents)

    @property
    def value_words(self) -> int:
        """Words of a row's values in a message."""
        return self.shape.value_words(traced=self.traced)

    @property
    def origin(self) -> Array:
        """The name of row 0 in a traced run: relation, rank and id in one word."""
        return np.array([self.number << 48 | self.rank << 32], np.int64)

    @property
    def bytes(self) -> int:
        """Held in memory."""
        own = {id(a): a.bytes for a in (self.state, self.pending, self.delta, self.ghost, self.begun) if a is not None}
        ghosts = self.ghost_owner.nbytes + self.ghost_remote.nbytes
        return sum(own.values()) + self.keys.bytes + self.ghosts.bytes + self.current.nbytes + ghosts

    def key_column(self, c: int, ids: Array, strings: Strings) -> Column:
        """Key ``c`` of these rows."""
        of = type_of(self.of.keys[c].type)
        words = np.ascontiguousarray(self.keys.keys[ids, c])
        nulls = (self.keys.keys[ids, len(self.of.keys)] >> c & 1) != 0 if self.shape.keys[c] else None
        return Column(of, words, nulls, strings.all() if of.kind == "text" else None)

    def value_column(self, j: int, words: Array, nulls: Array | None, strings: Strings) -> Column:
        """Dependent ``j`` with these words."""
        of = type_of(self.of.dependents[j].column.type)
        plain = words_of_doubles(words.view(np.float64)) if of.kind == "fraction" else words
        return Column(of, plain, nulls, strings.all() if of.kind == "text" else None)

    def grow(self) -> None:
        """Room for all keys and ghosts."""
        size = max(len(self.keys), _LEAST)
        for a in (self.state, self.pending, self.delta):
            if a is not None:
                a.reserve(size)
        self.grow_ghosts()

    def grow_ghosts(self) -> None:
        """Room for all ghosts."""
        self.ghost.reserve(max(len(self.ghosts), 1))
        missing = self.ghost.capacity - len(self.ghost_owner)
        if missing > 0:
            self.ghost_owner = np.concatenate([self.ghost_owner, np.zeros(missing, np.int32)])
            self.ghost_remote = np.concatenate([self.ghost_remote, np.full(missing, -1, np.int32)])

    def _accumulator(self) -> Accumulator:
        identities = np.array([identity(d) for d in self.of.dependents], np.int64)
        return Accumulator(identities, self.shape.dependents, traced=self.traced)
