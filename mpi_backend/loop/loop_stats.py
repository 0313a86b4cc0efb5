"""Count the work of a loop by iteration, from votes. All ranks compute the same sums; rank 0 reports them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import LoopState

T = TypeVar("T")

CHANGED, DIFFERENCE, OVERFLOW, BYTES, WORK, SIZES = 0, 1, 2, 3, 4, 5
NUMBERS = 4
"""Positions of the votes: rows changed, Σ|Δ|, ranks with an overflow, bytes, work; then four numbers by relation.

These are its delta, its rows when the iteration began, its rows now, and the delta of all but the last of the
iterations that a single rank has run between two votes. In place, a rank does not know at its vote
which rows it will receive. So the rows after an iteration are those with which the next one begins.
Their sums (``sum_votes``) have one more number for each relation, the maximum of its delta over all ranks, and at the
end the maximum of the work.
"""


class Counts(NamedTuple):
    """The progress of a loop: the last iteration, the rows that it changed and all rows; then sums over all iterations.

    The sums are rows changed, bytes sent, and rows changed on the rank with most changes (``heaviest``).
    """

    iteration: int
    delta: int
    total: int
    changed: int
    bytes: int
    heaviest: int


def votes(loop: LoopState, changed: float, difference: float = 0.0, failed: float = 0.0) -> Array:
    """Return this rank's votes, with the bytes sent and the work done since its last votes."""
    sizes = [float(x) for p in loop.parts.values() for x in (p.size, p.rows_before, p.rows, p.size_between)]
    sent, loop.comm.sent_bytes = loop.comm.sent_bytes, 0
    work, loop.work = loop.work, 0
    return np.array([changed, difference, failed, float(sent), float(work), *sizes])


def sum_votes(all_votes: Array) -> Array:
    """Return the sums of the votes of all ranks, a row for each rank, and the maxima of deltas and work."""
    maxima = all_votes[:, SIZES::NUMBERS].max(axis=0), all_votes[:, WORK : WORK + 1].max(axis=0)
    return np.concatenate([all_votes.sum(axis=0), *maxima])


class Clock:
    """The seconds of each phase of an iteration."""

    def __init__(self) -> None:
        self._phases: dict[str, float] = {}

    def timed(self, phase: str, body: Callable[[], T]) -> T:
        """Run a part of a phase and return its result."""
        started_at = time.perf_counter()
        result = body()
        self._phases[phase] = self._phases.get(phase, 0.0) + time.perf_counter() - started_at
        return result

    def take(self) -> dict[str, float]:
        """Return all phases, and clear them for the next iteration."""
        phases, self._phases = self._phases, {}
        return phases


class LoopStats:
    """The counts of one stratum's loop. With ``works_ahead``, votes have the work of the previous iteration."""

    def __init__(self, relations: Sequence[str], ranks: int, *, works_ahead: bool) -> None:
        self._works_ahead = works_ahead
        self._relations = relations
        self._ranks = ranks
        self._maxima = SIZES + NUMBERS * len(relations)
        self._sums: list[Array] = []
        self._seconds: list[float] = []
        self._phases: list[Mapping[str, float]] = []
        self._is_ahead = False
        self._iterations: list[int] = []
        self._changed = self._bytes = self._heaviest = 0
        self.iterations = 0

    def add(self, iteration: int, sums: Array, seconds: float, phases: Mapping[str, float], *, ahead: bool) -> None:
        """Add the sums of the iterations up to ``iteration``. ``phases`` are seconds on this rank.

        With ``ahead``, the delta, the rows before and the bytes in these sums are those of the previous iteration.
        """
        self._is_ahead = ahead
        self._iterations.append(iteration)
        self._sums.append(sums)
        self._seconds.append(seconds)
        self._phases.append(phases)
        self._changed += self.delta(sums)
        self._bytes += int(sums[BYTES])
        self._heaviest += int(sums[self._maxima : -1].sum() + sums[SIZES + 3 : self._maxima : NUMBERS].sum())

    def counts(self) -> Counts:
        """Return the progress after the last sums."""
        sums = self._sums[-1]
        last = self._iterations[-1], self.delta(sums), self.total(sums)
        return Counts(*last, self._changed, self._bytes, self._heaviest)

    def delta(self, sums: Array) -> int:
        """Return the number of rows that changed."""
        return int(sums[SIZES : self._maxima : NUMBERS].sum() + sums[SIZES + 3 : self._maxima : NUMBERS].sum())

    def total(self, sums: Array) -> int:
        """Return the number of rows that are counted."""
        return int(sums[SIZES + 2 : self._maxima : NUMBERS].sum())

    def difference(self, iteration: int) -> float | None:
        """Return Σ|Δ| of an iteration."""
        return float(self._sums[iteration - 1][DIFFERENCE]) if 0 < iteration <= len(self._sums) else None

    @property
    def tuples(self) -> int:
        """Return the number of rows at the end."""
        return self.total(self._sums[-1]) if self._sums else 0

    def per_iteration(self) -> list[dict[str, Any]]:
        """Return one entry for each iteration and relation."""
        entries = []
        for n, sums in enumerate(self._sums):
            later = self._sums[n + 1] if n + 1 < len(self._sums) else None
            source = later if self._is_ahead else sums
            for r, name in enumerate(self._relations):
                at = SIZES + NUMBERS * r
                between = int(sums[at + 3])
                delta = between + (0 if source is None else int(source[at]))
                total = int(later[at + 1] if self._is_ahead and later is not None else sums[at + 2])
                seconds = self._seconds[n]
                work = later if self._works_ahead else sums
                sent = 0 if source is None or r else int(source[BYTES])  # relations share an exchange
                entries.append(
                    {
                        "iteration": self._iterations[n],
                        "relation": name,
                        "delta": delta,
                        "total": total,
                        "seconds": seconds,
                        "bytes": sent,
                        "balance": self._balance(source, r, between, delta) if delta else None,
                        "work": 0 if work is None or r else int(work[WORK]),
                        "work_balance": None if work is None or r else self._work_balance(work),
                        "phases": self._phases[n],
                    }
                )
        return entries

    def _work_balance(self, sums: Array) -> float | None:
        """Return the work of the rank with most, divided by the mean over all ranks; None without work."""
        return float(sums[-1]) * self._ranks / float(sums[WORK]) if sums[WORK] else None

    def _balance(self, sums: Array | None, relation: int, between: int, delta: int) -> float:
        """Return the largest delta of a rank, divided by the mean over all ranks."""
        largest = 0.0 if sums is None else float(sums[self._maxima + relation])
        return (between + largest) * self._ranks / delta
