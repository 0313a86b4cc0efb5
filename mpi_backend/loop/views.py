"""Update relations that follow others of the stratum (``mcount``, ``msum``, ``h_index``) between rounds.

The update adds to each count what a witness contributes now, minus what it contributed before. A relation and those
that it follows have the same distribution, so updates send nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import follow, h_index
from mpi_backend.loop.runner import SumOverflowError
from mpi_backend.state.types import type_of
from pyspark_paralagg.errors import FixpointError

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.relation_part import Accumulator, RelationPart


class Views:
    """The relations of a stratum that follow others."""

    def __init__(self, loop: LoopState) -> None:
        self._all = []
        for target in loop.parts.values():
            for name in dict.fromkeys(d.view.relation for d in target.planned.dependents if d.view is not None):
                self._all.append(_View(target, loop.parts[name]))

    def follow(self) -> None:
        """Update the followers from the rows that changed, after a round of a lattice."""
        for v in self._all:
            v.follow(v.source.current[: v.source.size], v.target.state)

    def recount(self) -> None:
        """Compute all rows of the followers into ``pending``, after a round of an iterated relation."""
        for v in self._all:
            v.target.pending.clear()
        for v in self._all:
            v.forget()
            v.follow(v.source.state.dirty, v.target.pending)


class _View:
    """The columns of ``target`` that follow ``source``."""

    def __init__(self, target: RelationPart, source: RelationPart) -> None:
        self.target = target
        self.source = source
        facts = target.facts
        dependents = enumerate(target.planned.dependents)
        columns = [(j, d) for j, d in dependents if d.view is not None and d.view.relation == source.name]
        codes, self._h_indexes = [], list[_HIndex]()
        for j, d in columns:
            assert d.view is not None  # noqa: S101 - for the type checker
            column, total = (facts.column_of(d.view.relation, c) for c in (d.view.column, d.view.total))
            if total is not None:
                assert column is not None  # noqa: S101 - likewise
                self._h_indexes.append(_HIndex(j, total, column))
                continue
            column_type = type_of(d.column.type)
            kind = follow.COPY
            if d.definition.is_counted:
                number_kind = follow.FRACTION if column_type.kind == "fraction" else follow.WHOLE
                kind = follow.COUNT if column is None else number_kind
            bound = 10**column_type.precision if column_type.is_decimal else 0
            codes.append((j, -1 if column is None else column, kind, bound))
        self._codes = np.array(codes, np.int64).reshape(len(codes), 4)
        self._added = np.zeros((len(codes), 0), np.int64)
        self._row = np.zeros(0, np.int32)

    def forget(self) -> None:
        self._added[:] = 0
        self._h_indexes = [_HIndex(h.at, h.total, h.value) for h in self._h_indexes]

    def follow(self, rows: Array, into: Accumulator) -> None:
        missing = self.source.state.capacity - len(self._row)
        if missing > 0:
            self._row = np.concatenate([self._row, np.full(missing, -1, np.int32)])
            self._added = np.concatenate([self._added, np.zeros((len(self._added), missing), np.int64)], axis=1)
        self._resolve_rows(rows)
        s = self.source
        nulls = np.zeros(len(s.keys.keys), np.int64)
        if s.shape.has_null_keys:
            nulls = s.keys.keys[:, len(s.planned.keys)] >> len(self.target.planned.keys)
        failed = follow.follow(
            rows, self._row, self._codes, self._added, nulls, s.state.v, s.state.k, into.v, into.k, into.f, into.d,
            into.n, into.p if self.target.traced else np.zeros(0, np.int64), s.origin[0],
        )  # fmt: skip
        if failed:
            raise SumOverflowError("PARALAGG_OVERFLOW", "a sum overflows", place=self.target.name)
        for h in self._h_indexes:
            h.follow(rows, self._row, nulls, s, self.target, into)

    def _resolve_rows(self, rows: Array) -> None:
        """Look up the target row of each source row, and add those that are missing."""
        new = rows[self._row[rows] < 0]
        if not len(new):
            return
        t, s = self.target, self.source
        k = len(t.planned.keys)
        words = s.keys.keys[new, :k]
        if t.shape.has_null_keys:
            mask = s.keys.keys[new, len(s.planned.keys)] if s.shape.has_null_keys else np.zeros(len(new), np.int64)
            words = np.concatenate([words, (mask & ((1 << k) - 1))[:, None]], axis=1)
        flat = np.ascontiguousarray(words).ravel()
        self._row[new] = t.keys.add(flat, count=len(new))
        t.grow()


class _HIndex:
    """A column ``at`` of a view with the h-index of the witnesses of ``source``, by their columns total and value."""

    def __init__(self, at: int, total: int, value: int) -> None:
        self.at, self.total, self.value = at, total, value
        self._taken = np.zeros(0, np.int64)
        self._totals = np.zeros(0, np.int64)
        self._levels = np.zeros(0, np.int64)
        self._lost = np.zeros(0, np.int32)
        self._first = np.zeros(0, np.int64)
        self._below = np.zeros(1024, np.int32)
        self._used = np.zeros(1, np.int64)

    def follow(
        self, rows: Array, row_of: Array, nulls: Array, source: RelationPart, target: RelationPart, into: Accumulator
    ) -> None:
        self._taken = _lengthened(self._taken, len(row_of), h_index.ANY)
        self._totals = _lengthened(self._totals, into.capacity, h_index.MISSING)
        self._levels, self._lost = (_lengthened(a, into.capacity, 0) for a in (self._levels, self._lost))
        self._first = _lengthened(self._first, into.capacity, -1)
        done = 0
        while done < len(rows):
            done = h_index.follow(
                rows, done, row_of, nulls, source.state.v[self.total], source.state.v[self.value], source.state.k,
                self.value, self._taken, self._totals, self._levels, self._lost, self._first, self._below, self._used,
                into.v[self.at], into.f, into.d, into.n, into.p if target.traced else np.zeros(0, np.int64),
                source.origin[0],
            )  # fmt: skip
            if done < len(rows):  # a row needs more room than is left
                level = int(self._levels[row_of[rows[done]]])
                if level > h_index.MOST:
                    raise FixpointError(
                        "PARALAGG_OVERFLOW",
                        f"h_index takes totals up to {h_index.MOST:,}, but a key has {level:,}",
                        value=level,
                        place=target.name,
                        hint="the total is the number of witnesses of a key; count them",
                    )
                self._below = _lengthened(self._below, max(int(self._used[0]) + level, 2 * len(self._below)), 0)
        if len(into.k):
            into.k[self.at, row_of[rows]] = 1


def _lengthened(a: Array, size: int, missing: int) -> Array:
    return a if size <= len(a) else np.concatenate([a, np.full(size - len(a), missing, a.dtype)])
