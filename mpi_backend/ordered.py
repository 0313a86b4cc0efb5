"""Runs a lattice best rows first (``kernels.ordered``), after one pass has shown by how much values change.

The width is 2^round(log2(mean change / mean degree)), in which delta-stepping is insensitive by a factor of 8
(measured in docs/architecture.md). With several ranks the limit is one for all: it moves when no rank has a near row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels.compiler import prepare
from mpi_backend.kernels.ordered import ALONE, FAR, LIMIT, MOST, MOVES, NEAR, NEXT, PASSES, WIDTH, OrderedKernel
from mpi_backend.kernels.status import LENGTH

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop import Loop
    from mpi_backend.runner import Runner

_PATIENCE = 4
"""Passes that an order gets, in terms of keys; values that still change then are left to plain passes, which count."""
_FEWER_MEETINGS = 8
"""How much wider steps are where ranks have to meet after each."""


class Ordered:
    """The ordered loop of one stratum; ``is_on`` once it has taken over."""

    def __init__(self, loop: Loop, runner: Runner) -> None:
        self._loop = loop
        self._runner = runner
        [self._part] = loop.parts.values()
        self._kernel = OrderedKernel(loop.facts, runner.rules)
        self._order = np.zeros(16, np.int64)
        self._bounds = self._order.view(np.float64) if self._kernel.type.kind == "fraction" else self._order
        self._near = np.zeros(0, np.int32)
        self._far = np.zeros(0, np.int32)
        self._mean: float | None = None
        self._cur = np.zeros(LENGTH, np.int64)
        self._width = 0.0
        self.is_on = False
        prepare([(self._kernel.kernel, self._arguments())], loop.comm.rank)

    @staticmethod
    def fits(loop: Loop, runner: Runner) -> bool:
        """Whether the Plan allows it, and nothing in the data or the rules forbids it."""
        column = loop.facts.stratum.ordered_by
        if column is None or any(r.sites.calls for r in runner.rules):
            return False
        [part] = loop.parts.values()
        return not part.shape.dependents[column]

    def consider(self) -> None:
        """Takes over if the rows that the last pass changed are, on the whole, at another value than those before."""
        values = self._values[self._part.state.dirty]
        total, count = self._loop.comm.sum(np.array([float(values.sum()), float(len(values))]))
        before, self._mean = self._mean, total / count if count else None
        if before is None or self._mean is None or not math.isfinite(self._mean - before) or self._mean == before:
            return
        rows = sum(int(s.offsets[-1]) for s in self._loop.statics.values())
        rows, keys = self._loop.comm.sum(np.array([float(rows), float(len(self._part.keys))]))
        width = 2.0 ** round(math.log2(abs(self._mean - before) / max(1.0, rows / max(1.0, keys))))
        if self._loop.comm.size > 1:
            width *= _FEWER_MEETINGS
        self._begin(width if self._kernel.type.kind == "fraction" else max(1, int(width)), int(keys))

    def again(self) -> None:
        """For other base rows, with the width that was found."""
        if self.is_on:
            self._begin(self._width, int(self._order[MOST] - 1000) // _PATIENCE)

    def step(self) -> tuple[float, float]:
        """Near rows until there are none, on this rank; rows that changed, and rows that wait (near or far)."""
        self._cur[:] = 0
        passes = int(self._order[PASSES])
        self._kernel.kernel(*self._arguments())
        self._runner.check(self._cur)
        if self._is_tired and self._loop.comm.size == 1:
            self._give_up()
        return float(self._order[PASSES] - passes), float(self._order[NEAR] + self._order[FAR])

    def agree(self) -> None:
        """With no near row anywhere, all ranks move the limit to the same place; or all of them give up."""
        if self._loop.comm.size == 1 or not self.is_on:
            return
        if self._loop.comm.sum(np.array([float(self._is_tired)]))[0] > 0:
            self._give_up()
            return
        sign = -1.0 if self._kernel.descends else 1.0
        best = float(self._bounds[NEXT]) * sign if self._order[FAR] else math.inf
        if len(self._part.state.dirty):
            best = -math.inf  # it may be near
        least = self._loop.comm.least(best)
        if math.isfinite(least):
            self._bounds[NEXT] = self._bounds.dtype.type(least * sign + sign * float(self._bounds[WIDTH]))
            self._order[MOVES] = 1

    @property
    def _is_tired(self) -> bool:
        return bool(self._order[PASSES] > self._order[MOST])

    @property
    def _values(self) -> Array:
        words: Array = self._part.state.v[self._kernel.column]
        return words.view(np.float64) if self._kernel.type.kind == "fraction" else words

    def _begin(self, width: float, keys: int) -> None:
        capacity = self._part.state.capacity
        self._width = width
        self._near, self._far = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
        self._order[:] = 0
        self._order[MOST] = _PATIENCE * keys + 1000
        self._order[ALONE] = self._loop.comm.size == 1
        self._bounds[WIDTH] = width
        worst = np.inf if self._kernel.type.kind == "fraction" else np.iinfo(np.int64).max
        self._bounds[LIMIT] = worst if self._kernel.descends else -worst
        self.is_on = True

    def _give_up(self) -> None:
        """Near and far rows are changed rows again."""
        state = self._part.state
        rows = np.unique(np.concatenate([self._near[: self._order[NEAR]], self._far[: self._order[FAR]], state.dirty]))
        state.f[rows] |= 1
        state.d[: len(rows)] = rows
        state.n[0] = len(rows)
        self._order[[NEAR, FAR]] = 0
        self.is_on = False

    def _arguments(self) -> list[Array]:
        return [self._cur, self._order, self._near, self._far, *self._kernel.arguments(self._loop)]
