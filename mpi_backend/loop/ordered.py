"""Evaluate a lattice best rows first (``codegen.ordered``), as delta-stepping does.

*Near* rows have values up to a limit, *far* rows lie beyond it. When few near rows are left, the limit moves by the
width 2^round(log2(mean change / mean degree)). One plain pass measures the mean change; a width up to 8 times larger or
smaller costs no time (docs/architecture.md, "The engine without Spark"). With several ranks, votes tell each rank how
far it may move its limit, and it moves it without a further exchange. There, values that rules only copy are ordered
from the start: the best value that a row gets is its last.
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
from mpi_backend.kernels.status import LENGTH, WORK

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop.runner import Runner
    from mpi_backend.state.loop_state import LoopState

_MAX_PASSES_PER_KEY = 4
"""After so many passes for each key, plain passes continue: they detect an endless climb by counting iterations."""
_MIN_PASSES = 100
"""These are added, so that few keys do not end it early."""
_SINGLE_RANK_FACTOR = 4
"""The width of a single rank is larger: fewer moves are faster, until rows are applied too early."""
_ROWS_PER_CALL = 1 << 22
"""Rows after which compiled code returns, so that progress is reported."""
_ROWS_PER_EXCHANGE = 1024
"""The same with several ranks: they exchange before a pass with more rows. Fewer rows do not pay for an exchange."""
_MIN_ROWS_PER_MOVE = 256
"""Rows for each rank that a move of the limit should make near, since a move costs an exchange."""


class Ordered:
    """The loop of one stratum in compiled code. ``is_on`` after it has started, ``is_by_value`` if ordered by value."""

    def __init__(self, loop: LoopState, runner: Runner) -> None:
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
        self._last_mean: float | None = None
        self._cur = np.zeros(LENGTH, np.int64)
        self._width: float | None = None
        self._has_fallen_back = False
        self._applied = 0
        self._rows_since_move = 0.0  # applied by all ranks since the limit of this rank moved
        self._may_move = False
        self.is_on = False
        prepare([(self._kernel.kernel, self._arguments())], loop.comm.rank)

    @staticmethod
    def fits(loop: LoopState, runner: Runner) -> bool:
        """Return whether one relation is evaluated in place, without hashing of keys or computing of texts.

        With several ranks the rows must also be ordered by value: otherwise ranks apply many rows that better values
        of other ranks replace later.
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
    def is_by_value(self) -> bool:
        """Return whether passes now take rows by their values."""
        return self.is_on and self._width is not None

    def try_start(self) -> None:
        """Start by value, once the width is known. A single rank without a useful order starts with all rows near."""
        if self._has_fallen_back:
            return
        column, is_single = self._kernel.column, self._loop.comm.size == 1
        if column is None:
            self._begin(None)
            return
        values = self._column_values(self._part.state.v)[self._part.state.dirty]
        is_copied = self._loop.facts.stratum.copies_order
        width = self._spacing_width(values) if is_copied else self._change_width(values)
        if width is None:
            return
        if not (math.isfinite(width) and width > 0) or (is_copied and is_single):
            if is_single:
                self._begin(None)
            return
        self._begin(width if self._kernel.type.kind == "fraction" else max(1, int(width)))

    def _spacing_width(self, values: Array) -> float:
        """Return the mean distance of the first values. In their order, each copied value has to be copied only once.

        A single rank is faster with plain passes, which read what they write. Other ranks would get values too late.
        """
        comm = self._loop.comm
        numbers = values.astype(np.float64)  # minimum and maximum ignore NaN, so that all ranks get the same
        low = comm.allreduce_min(float(np.fmin.reduce(numbers, initial=np.inf)))
        high = -comm.allreduce_min(float(-np.fmax.reduce(numbers, initial=-np.inf)))
        return (high - low) / max(1.0, float(comm.allreduce_sum(np.array([float(len(values))]))[0]))

    def _change_width(self, values: Array) -> float | None:
        """Return the width from the change of the mean value since the last pass; None at the first pass."""
        comm = self._loop.comm
        total, count = comm.allreduce_sum(np.array([float(values.sum()), float(len(values))]))
        before, self._last_mean = self._last_mean, total / count if count else None
        if before is None or self._last_mean is None:
            return None
        change = abs(self._last_mean - before)
        if not math.isfinite(change) or change == 0:
            return 0.0
        edges = sum(int(s.offsets[-1]) for s in self._loop.statics.values())
        edges, keys = comm.allreduce_sum(np.array([float(edges), float(len(self._part.keys))]))
        width = 2.0 ** round(math.log2(change / max(1.0, edges / max(1.0, keys))))
        return width * _SINGLE_RANK_FACTOR if comm.size == 1 else width

    def reset(self) -> None:
        """Prepare for other base rows, with the same width."""
        if self.is_on:
            self._begin(self._width)

    def count(self) -> int:
        """Count the rows that changed since the last step; return the number of all rows."""
        self._order[FOUND] += lists.count_new(self._part.state.f, self._part.state.dirty)
        return int(self._order[FOUND])

    @property
    def waiting(self) -> int:
        """Return the number of changed rows to which no rule was applied yet."""
        return int(self._order[NEAR] + self._order[FAR] + len(self._part.state.dirty))

    def step(self) -> tuple[int, int, int, float]:
        """Apply near rows until there are none, or enough were applied.

        Return the numbers of passes, of applied rows, of all rows, and of waiting rows.
        """
        self._cur[:] = 0
        passes = int(self._order[PASSES])
        self._order[UNTIL] = _ROWS_PER_CALL if self._loop.comm.size == 1 else _ROWS_PER_EXCHANGE
        self._kernel.kernel(*self._arguments())
        self._runner.check(self._cur)
        self._loop.work += int(self._cur[WORK])
        if self._has_max_passes and self._loop.comm.size == 1:
            self._fall_back()
        self._applied, self._order[ROWS] = int(self._order[ROWS]), 0
        return int(self._order[PASSES]) - passes, self._applied, int(self._order[FOUND]), float(self.waiting)

    def select(self) -> tuple[Array, int, float]:
        """Return the near rows, which all ranks apply, and the numbers of all rows and of far rows."""
        self._cur[:] = 0
        self._kernel.kernel(*self._arguments())
        self._applied = int(self._order[NEAR])
        rows = self._near[: self._applied].copy()
        lists.unqueue(self._part.state.f, rows)
        self._order[NEAR] = 0
        self._order[PASSES] += 1
        return rows, int(self._order[FOUND]), float(self._order[FAR])

    def votes(self) -> Array:
        """Return this rank's votes: has it reached the maximum of passes; a bound of far values; rows applied and far.

        The bound is no worse than any far value, of this rank or sent (inf: there is none). Far rows that became near
        may leave a bound that is too low. The limit is a bound too, and the tighter one of both is sent.
        """
        sign = -1.0 if self._kernel.descends else 1.0
        best = float(self._bounds[BEST]) * sign if self._order[FAR] else math.inf
        ghost = self._part.ghost
        if len(ghost.dirty):
            values = self._column_values(ghost.v)[ghost.dirty] * sign
            best = float(np.fmin(np.fmin.reduce(values), best))
        best = math.inf if math.isnan(best) else max(best, float(self._bounds[LIMIT]) * sign)
        return np.array([float(self._has_max_passes), best, self._applied, self._order[FAR]], np.float64)

    def apply_votes(self, all_votes: Array) -> None:
        """Set how far this rank may move its limit, or fall back to plain passes on all ranks."""
        if all_votes[:, 0].any():
            self._fall_back()
            return
        if self._may_move and not self._order[MOVES]:  # the limit has moved
            if 0 < self._rows_since_move < max(all_votes[:, 3].sum() / SPARSE, _MIN_ROWS_PER_MOVE * len(all_votes)):
                self._bounds[WIDTH] *= 2
            self._rows_since_move = 0.0
        self._rows_since_move += all_votes[:, 2].sum()
        bound, width = all_votes[:, 1].min(), float(self._bounds[WIDTH])
        sign = -1.0 if self._kernel.descends else 1.0
        if bound < bound + width < self._largest:
            self._bounds[NEXT] = sign * max(bound + width, sign * float(self._bounds[LIMIT]))
            self._order[MOVES] = 1
        else:
            self._order[MOVES] = 2 if all_votes[:, 3].any() else 0
        self._may_move = bool(self._order[MOVES])

    @property
    def _largest(self) -> float:
        return math.inf if self._kernel.type.kind == "fraction" else np.iinfo(np.int64).max

    @property
    def _has_max_passes(self) -> bool:
        return bool(self._order[PASSES] > self._order[MOST])

    def _column_values(self, v: Array) -> Array:
        words: Array = v[self._kernel.column]
        return words.view(np.float64) if self._kernel.type.kind == "fraction" else words

    def _begin(self, width: float | None) -> None:
        """Start with this width; None: every row is near."""
        keys = int(self._loop.comm.allreduce_sum(np.array([float(len(self._part.keys))]))[0])
        capacity = self._part.state.capacity
        self._width = width
        self._near, self._far = np.zeros(capacity, np.int32), np.zeros(capacity, np.int32)
        self._order[:] = 0
        self._order[MOST] = np.iinfo(np.int64).max if width is None else _MAX_PASSES_PER_KEY * keys + _MIN_PASSES
        self._order[ALONE] = self._loop.comm.size == 1
        self._order[FOUND] = self._part.rows
        self._may_move = False
        largest = self._largest
        if width is not None:
            self._bounds[WIDTH] = width
        worst = -largest if self._kernel.descends else largest
        self._bounds[LIMIT] = worst if width is None else -worst
        self._bounds[BEST] = worst
        self.is_on = True

    def _fall_back(self) -> None:
        """Stop, and make near and far rows changed rows for plain passes."""
        state = self._part.state
        rows = np.unique(np.concatenate([self._near[: self._order[NEAR]], self._far[: self._order[FAR]], state.dirty]))
        state.f[rows] |= np.uint8(QUEUED)
        state.d[: len(rows)] = rows
        state.n[0] = len(rows)
        self._order[[NEAR, FAR]] = 0
        self.is_on = False
        self._has_fallen_back = True

    def _arguments(self) -> list[Array]:
        return [self._cur, self._order, self._near, self._far, *self._kernel.arguments(self._loop)]
