"""Relations whose rows follow others of the stratum (``mcount``, ``msum``), brought up to date between rounds.

What a witness adds now, less what it added before, is added to the count that it belongs to. A relation and those
that it follows are distributed alike, so all of this stays within a rank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import follow
from mpi_backend.loop.runner import SumOverflowError
from mpi_backend.state.shape import COUNTED
from mpi_backend.state.types import type_of

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import Loop
    from mpi_backend.state.relation_part import Accumulator, Part


class Views:
    """All relations of a stratum that follow others."""

    def __init__(self, loop: Loop) -> None:
        self._all = []
        for target in loop.parts.values():
            for name in dict.fromkeys(d.view.relation for d in target.of.dependents if d.view is not None):
                self._all.append(_View(target, loop.parts[name]))

    def follow(self) -> None:
        """After a round of a lattice: rows that changed in what is followed change the rows here."""
        for v in self._all:
            v.follow(v.source.current[: v.source.size], v.target.state)

    def recount(self) -> None:
        """After a round of an iterated relation: all rows anew, into ``pending``."""
        for v in self._all:
            v.target.pending.clear()
        for v in self._all:
            v.forget()
            v.follow(v.source.state.dirty, v.target.pending)


class _View:
    """Those columns of ``target`` that follow ``source``."""

    def __init__(self, target: Part, source: Part) -> None:
        self.target = target
        self.source = source
        facts = target.facts
        mine = [
            (j, d) for j, d in enumerate(target.of.dependents) if d.view is not None and d.view.relation == source.name
        ]
        codes = []
        for j, d in mine:
            assert d.view is not None  # noqa: S101 - for the type checker
            column = facts.view_column(d.view)
            of = type_of(d.column.type)
            kind = follow.COPY
            if d.aggregator in COUNTED:
                kind = follow.COUNT if column is None else follow.FRACTION if of.kind == "fraction" else follow.WHOLE
            most = 10**of.precision if of.is_decimal else 0
            codes.append((j, -1 if column is None else column, kind, most))
        self._codes = np.array(codes, np.int64).reshape(len(codes), 4)
        self._added = np.zeros((len(codes), 0), np.int64)
        self._row = np.zeros(0, np.int32)

    def forget(self) -> None:
        self._added[:] = 0

    def follow(self, rows: Array, into: Accumulator) -> None:
        missing = self.source.state.capacity - len(self._row)
        if missing > 0:
            self._row = np.concatenate([self._row, np.full(missing, -1, np.int32)])
            self._added = np.concatenate([self._added, np.zeros((len(self._added), missing), np.int64)], axis=1)
        self._find(rows)
        s = self.source
        nulls = np.zeros(len(s.keys.keys), np.int64)
        if s.shape.has_null_keys:
            nulls = s.keys.keys[:, len(s.of.keys)] >> len(self.target.of.keys)
        failed = follow.follow(
            rows, self._row, self._codes, self._added, nulls, s.state.v, s.state.k, into.v, into.k, into.f, into.d,
            into.n, into.p if self.target.traced else np.zeros(0, np.int64), s.origin[0],
        )  # fmt: skip
        if failed:
            raise SumOverflowError("PARALAGG_OVERFLOW", "a sum overflows", place=self.target.name)

    def _find(self, rows: Array) -> None:
        """The row here of each row of the source."""
        fresh = rows[self._row[rows] < 0]
        if not len(fresh):
            return
        t, s = self.target, self.source
        k = len(t.of.keys)
        words = s.keys.keys[fresh, :k]
        if t.shape.has_null_keys:
            mask = s.keys.keys[fresh, len(s.of.keys)] if s.shape.has_null_keys else np.zeros(len(fresh), np.int64)
            words = np.concatenate([words, (mask & ((1 << k) - 1))[:, None]], axis=1)
        flat = np.ascontiguousarray(words).ravel()
        self._row[fresh] = t.keys.add(flat, count=len(fresh))
        t.grow()
