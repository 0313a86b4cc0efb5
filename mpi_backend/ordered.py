"""Runs a lattice best rows first (``kernels.ordered``), after one pass has shown by how much values change.

The width is 2^round(log2(mean change / mean degree)), in which delta-stepping is insensitive by a factor of 8
(measured in docs/architecture.md). With several ranks the limit is one for all: it moves when no rank has a near row.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels.compiler import prepare
from mpi_backend.kernels.ordered import (
    ALONE,
    FAR,
    FOUND,
    LIMIT,
    MOST,
    MOVES,
    NEAR,
    NEXT,
    PASSES,
    ROWS,
    UNTIL,
    WIDTH,
    OrderedKernel,
)
from mpi_backend.kernels.status import LENGTH

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop import Loop
    from mpi_backend.runner import Runner

_PATIENCE = 4
"""Passes that an order gets, in terms of keys; values that still change then are left to plain passes, which count."""
_FEWER_MEETINGS = 8
"""How much wider steps are where ranks have to meet after each."""
_A_WHILE = 4096
"""Passes after which compiled code comes back, so that someone hears of them."""


class Ordered:
    """The loop of one stratum in compiled code; ``is_on`` once it has taken over, ``orders`` if by value."""

    def __init__(self, loop: Loop, runner: Runner) -> None:
        self._loop = loop
        self._runner = runner
        [self._part] = loop.parts.values()
        column = loop.facts.stratum.ordered_by
        can_order = column is not None and not self._part.shape.dependents[column]
        self._kernel = OrderedKernel(loop.facts, runner.rules, column if can_order else None)
        self._order = np.zeros(16, np.int64)
        self._bounds = self._order.view(np.float64) if self._kernel.type.kind == "fraction" else self._order
        self._near = np.zeros(0, np.int32)
        self._far = np.zeros(0, np.int32)
        self._mean: float | None = None
        self._cur = np.zeros(LENGTH, np.int64)
        self._width: float | None = None
        self._gave_up = False
        self.is_on = False
        prepare([(self._kernel.kernel, self._arguments())], loop.comm.rank)

    @staticmethod
    def fits(loop: Loop, runner: Runner) -> bool:
        """Whether one relation is evaluated in place, finds its rows without hashing, and computes no texts.

        With other ranks only an order makes up for what is not heard of them in between.
        """
        stratum = loop.facts.stratum
        if not stratum.in_place or len(stratum.relations) > 1 or not runner.rules:
            return False
        if any(r.sites.calls or r.computes for r in runner.rules):
            return False
        [part] = loop.parts.values()
        column = stratum.ordered_by
        return loop.comm.size == 1 or (column is not None and not part.shape.dependents[column])

    @property
    def orders(self) -> bool:
        """Whether rows are taken by their values now."""
        return self.is_on and self._width is not None

    def consider(self) -> None:
        """Takes over: by value if the rows that the last pass changed are, on the whole, not at the value of before."""
        if self._gave_up:
            return
        keys = len(self._part.keys)
        if self._kernel.column is None:
            self._begin(None, keys)
            return
        values = self._valued(self._part.state.v)[self._part.state.dirty]
        total, count = self._loop.comm.sum(np.array([float(values.sum()), float(len(values))]))
        before, self._mean = self._mean, total / count if count else None
        if before is None or self._mean is None:
            return
        change = abs(self._mean - before)
        if not math.isfinite(change) or change == 0:
            if self._loop.comm.size == 1:
                self._begin(None, keys)
            return
        rows = sum(int(s.offsets[-1]) for s in self._loop.statics.values())
        rows, keys = self._loop.comm.sum(np.array([float(rows), float(keys)]))
        width = 2.0 ** round(math.log2(change / max(1.0, rows / max(1.0, keys))))
        if self._loop.comm.size > 1:
            width *= _FEWER_MEETINGS
        self._begin(width if self._kernel.type.kind == "fraction" else max(1, int(width)), int(keys))

    def again(self) -> None:
        """For other base rows, with the width that was found."""
        if self.is_on:
            self._begin(self._width, len(self._part.keys))

    def step(self) -> tuple[int, int, int, float]:
        """Near rows until there are none, or for a while: passes, rows applied, rows there are, rows that wait."""
        self._cur[:] = 0
        passes = int(self._order[PASSES])
        self._order[UNTIL] = passes + _A_WHILE
        self._kernel.kernel(*self._arguments())
        self._runner.check(self._cur)
        if self._is_tired and self._loop.comm.size == 1:
            self._give_up()
        rows, self._order[ROWS] = int(self._order[ROWS]), 0
        waiting = self._order[NEAR] + self._order[FAR] + len(self._part.state.dirty)
        return int(self._order[PASSES]) - passes, rows, int(self._order[FOUND]), float(waiting)

    def votes(self) -> Array:
        """Whether this rank is tired, and the best value that waits, here or for another rank (inf: none)."""
        sign = -1.0 if self._kernel.descends else 1.0
        best = float(self._bounds[NEXT]) * sign if self._order[FAR] else math.inf
        sent = self._part.ghost
        if len(sent.dirty):
            values = self._valued(sent.v)[sent.dirty] * sign
            best = float(np.fmin(np.fmin.reduce(values), best))
        best = math.inf if math.isnan(best) else best  # NaN is no better than any limit
        if self._order[NEAR] or best < float(self._bounds[LIMIT]) * sign:
            best = -math.inf  # it is near: the limit stays
        return np.array([float(self._is_tired), best])

    def agree(self, heard: Array) -> None:
        """With no near row anywhere, all ranks move the limit to the same place; or all of them give up."""
        if heard[:, 0].any():
            self._give_up()
            return
        least = heard[:, 1].min()
        sign = -1.0 if self._kernel.descends else 1.0
        if least == math.inf:
            self._order[MOVES] = 2
        elif math.isfinite(least):
            self._bounds[NEXT] = self._bounds.dtype.type(least * sign + sign * float(self._width or 0))
            self._order[MOVES] = 1

    @property
    def _is_tired(self) -> bool:
        return bool(self._order[PASSES] > self._order[MOST])

    def _valued(self, v: Array) -> Array:
        words: Array = v[self._kernel.column]
        return words.view(np.float64) if self._kernel.type.kind == "fraction" else words

    def _begin(self, width: float | None, keys: int) -> None:
        """``width`` None: every row is near."""
        capacity = self._part.state.capacity
        self._width = width
        self._near, self._far = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
        self._order[:] = 0
        self._order[MOST] = np.iinfo(np.int64).max if width is None else _PATIENCE * keys + 1000
        self._order[ALONE] = self._loop.comm.size == 1
        self._order[FOUND] = self._part.rows
        most = np.inf if self._kernel.type.kind == "fraction" else np.iinfo(np.int64).max
        if width is not None:
            self._bounds[WIDTH] = width
        self._bounds[LIMIT] = most if self._kernel.descends == (width is not None) else -most
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
        self._gave_up = True

    def _arguments(self) -> list[Array]:
        return [self._cur, self._order, self._near, self._far, *self._kernel.arguments(self._loop)]
