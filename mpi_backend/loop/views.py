"""Update relations that follow others of the stratum (``mcount``, ``msum``) between rounds.

The update adds to each count what a witness contributes now, minus what it contributed before. A relation and those
that it follows have the same distribution, so updates send nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import follow
from mpi_backend.loop.runner import SumOverflowError
from mpi_backend.state.types import type_of

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
        codes = []
        for j, d in columns:
            assert d.view is not None  # noqa: S101 - for the type checker
            column = facts.view_column(d.view)
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
