"""Runs a lattice best rows first (``kernels.ordered``), after one pass has shown by how much values change.

The width is 2^round(log2(mean change / mean degree)), in which delta-stepping is insensitive by a factor of 8
(measured in docs/architecture.md). With several ranks a meeting tells each how far it may move its limit; it does so
when it has hardly a near row left, without asking whether others have. Values that rules only copy are ordered from
the start there: the best one is the last that a row gets.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.codegen.ordered import (
    ALONE,
    BEST,
    FAR,
    FOUND,
    LIMIT,
    MOST,
    MOVES,
    NEAR,
    NEXT,
    PASSES,
    ROWS,
    SPARSE,
    UNTIL,
    WIDTH,
    OrderedKernel,
)
from mpi_backend.kernels import lists
from mpi_backend.kernels.compiler import prepare
from mpi_backend.kernels.flags import QUEUED
from mpi_backend.kernels.status import LENGTH

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop.runner import Runner
    from mpi_backend.state.loop_state import Loop

_PATIENCE = 4
"""Passes that an order gets, in terms of keys; values that still change then are left to plain passes, which count."""
_WIDER_ALONE = 4
"""Fewer moves are faster until rows are applied too early; with other ranks that is sooner."""
_ENOUGH = 1 << 22
"""Rows after which compiled code comes back, so that someone hears of them."""
_ENOUGH_FOR_OTHERS = 1024
"""The same with other ranks: they hear before a pass with more rows; fewer are not worth a meeting."""
_FEWEST = 256
"""Rows a rank that a move of the limit should find: that costs a meeting."""


class Ordered:
    """The loop of one stratum in compiled code; ``is_on`` once it has taken over, ``orders`` if by value."""

    def __init__(self, loop: Loop, runner: Runner) -> None:
        self._loop = loop
        self._runner = runner
        [self._part] = loop.parts.values()
        column = loop.facts.stratum.ordered_by
        can_order = column is not None and not self._part.shape.dependents[column]
        applied = runner.rules if loop.facts.mirror is None else ()
        self._kernel = OrderedKernel(loop.facts, applied, column if can_order else None)
        self._order = np.zeros(16, np.int64)
        self._bounds = self._order.view(np.float64) if self._kernel.type.kind == "fraction" else self._order
        self._near = np.zeros(0, np.int32)
        self._far = np.zeros(0, np.int32)
        self._mean: float | None = None
        self._cur = np.zeros(LENGTH, np.int64)
        self._width: float | None = None
        self._gave_up = False
        self._applied = 0
        self._since = 0.0  # rows that all ranks applied since the limit moved here
        self._may_move = False
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
        """Takes over: by value if passes in any order would apply rows too early; alone, else with all rows near."""
        if self._gave_up:
            return
        column, alone = self._kernel.column, self._loop.comm.size == 1
        if column is None:
            self._begin(None)
            return
        values = self._valued(self._part.state.v)[self._part.state.dirty]
        copies = self._loop.facts.copies(column)
        width = self._spacing(values) if copies else self._change(values)
        if width is None:
            return
        if not (math.isfinite(width) and width > 0) or (copies and alone):
            if alone:
                self._begin(None)
            return
        self._begin(width if self._kernel.type.kind == "fraction" else max(1, int(width)))

    def _spacing(self, values: Array) -> float:
        """How far apart the first values are: those that are given on as they are have only to be given on once.

        Alone, a rank does it faster by passes that read what they wrote; others hear of it too late.
        """
        comm = self._loop.comm
        known = values.astype(np.float64)  # NaN apart: all ranks have to see the same ends
        low = comm.least(float(np.fmin.reduce(known, initial=np.inf)))
        high = -comm.least(float(-np.fmax.reduce(known, initial=-np.inf)))
        return (high - low) / max(1.0, float(comm.sum(np.array([float(len(values))]))[0]))

    def _change(self, values: Array) -> float | None:
        """The width of steps, from how far the last pass was from the one before; None: there was none yet."""
        comm = self._loop.comm
        total, count = comm.sum(np.array([float(values.sum()), float(len(values))]))
        before, self._mean = self._mean, total / count if count else None
        if before is None or self._mean is None:
            return None
        change = abs(self._mean - before)
        if not math.isfinite(change) or change == 0:
            return 0.0
        edges = sum(int(s.offsets[-1]) for s in self._loop.statics.values())
        edges, keys = comm.sum(np.array([float(edges), float(len(self._part.keys))]))
        width = 2.0 ** round(math.log2(change / max(1.0, edges / max(1.0, keys))))
        return width * _WIDER_ALONE if comm.size == 1 else width

    def again(self) -> None:
        """For other base rows, with the width that was found."""
        if self.is_on:
            self._begin(self._width)

    def step(self) -> tuple[int, int, int, float]:
        """Near rows until there are none, or for a while: passes, rows applied, rows there are, rows that wait."""
        self._cur[:] = 0
        passes = int(self._order[PASSES])
        self._order[UNTIL] = _ENOUGH if self._loop.comm.size == 1 else _ENOUGH_FOR_OTHERS
        self._kernel.kernel(*self._arguments())
        self._runner.check(self._cur)
        if self._is_tired and self._loop.comm.size == 1:
            self._give_up()
        self._applied, self._order[ROWS] = int(self._order[ROWS]), 0
        waiting = self._order[NEAR] + self._order[FAR] + len(self._part.state.dirty)
        return int(self._order[PASSES]) - passes, self._applied, int(self._order[FOUND]), float(waiting)

    def select(self) -> tuple[Array, int, float]:
        """Near rows, to be applied by all ranks; rows there are, far ones."""
        self._cur[:] = 0
        self._kernel.kernel(*self._arguments())
        self._applied = int(self._order[NEAR])
        rows = self._near[: self._applied].copy()
        lists.unqueue(self._part.state.f, rows)
        self._order[NEAR] = 0
        self._order[PASSES] += 1
        return rows, int(self._order[FOUND]), float(self._order[FAR])

    def votes(self) -> Array:
        """Is this rank tired; what is no worse than any far value, here or sent (inf: none); rows applied, far.

        Far rows that became near leave a best behind that is too good; the limit is no worse than any either, so that
        the next one lies beyond it.
        """
        sign = -1.0 if self._kernel.descends else 1.0
        best = float(self._bounds[BEST]) * sign if self._order[FAR] else math.inf
        sent = self._part.ghost
        if len(sent.dirty):
            values = self._valued(sent.v)[sent.dirty] * sign
            best = float(np.fmin(np.fmin.reduce(values), best))
        best = math.inf if math.isnan(best) else max(best, float(self._bounds[LIMIT]) * sign)
        return np.array([float(self._is_tired), best, self._applied, self._order[FAR]], np.float64)

    def agree(self, heard: Array) -> None:
        """How far this rank may move its limit; or all ranks give up."""
        if heard[:, 0].any():
            self._give_up()
            return
        if self._may_move and not self._order[MOVES]:  # it did
            if 0 < self._since < max(heard[:, 3].sum() / SPARSE, _FEWEST * len(heard)):
                self._bounds[WIDTH] *= 2
            self._since = 0.0
        self._since += heard[:, 2].sum()
        least, width = heard[:, 1].min(), float(self._bounds[WIDTH])
        sign = -1.0 if self._kernel.descends else 1.0
        if least < least + width < self._most:
            self._bounds[NEXT] = sign * max(least + width, sign * float(self._bounds[LIMIT]))
            self._order[MOVES] = 1
        else:
            self._order[MOVES] = 2 if heard[:, 3].any() else 0
        self._may_move = bool(self._order[MOVES])

    @property
    def _most(self) -> float:
        return math.inf if self._kernel.type.kind == "fraction" else np.iinfo(np.int64).max

    @property
    def _is_tired(self) -> bool:
        return bool(self._order[PASSES] > self._order[MOST])

    def _valued(self, v: Array) -> Array:
        words: Array = v[self._kernel.column]
        return words.view(np.float64) if self._kernel.type.kind == "fraction" else words

    def _begin(self, width: float | None) -> None:
        """``width`` None: every row is near."""
        keys = int(self._loop.comm.sum(np.array([float(len(self._part.keys))]))[0])
        capacity = self._part.state.capacity
        self._width = width
        self._near, self._far = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
        self._order[:] = 0
        self._order[MOST] = np.iinfo(np.int64).max if width is None else _PATIENCE * keys + 1000
        self._order[ALONE] = self._loop.comm.size == 1
        self._order[FOUND] = self._part.rows
        self._may_move = False
        most = self._most
        if width is not None:
            self._bounds[WIDTH] = width
        worst = -most if self._kernel.descends else most
        self._bounds[LIMIT] = worst if width is None else -worst
        self._bounds[BEST] = worst
        self.is_on = True

    def _give_up(self) -> None:
        """Near and far rows are changed rows again."""
        state = self._part.state
        rows = np.unique(np.concatenate([self._near[: self._order[NEAR]], self._far[: self._order[FAR]], state.dirty]))
        state.f[rows] |= np.uint8(QUEUED)
        state.d[: len(rows)] = rows
        state.n[0] = len(rows)
        self._order[[NEAR, FAR]] = 0
        self.is_on = False
        self._gave_up = True

    def _arguments(self) -> list[Array]:
        return [self._cur, self._order, self._near, self._far, *self._kernel.arguments(self._loop)]
