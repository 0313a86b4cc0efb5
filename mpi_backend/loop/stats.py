"""What a loop counted, iteration by iteration; every rank has the same sums, rank 0 reports them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import Loop

T = TypeVar("T")

CHANGED, DIFFERENCE, OVERFLOW, BYTES, SIZES = 0, 1, 2, 3, 4
"""Votes: rows changed, Σ|Δ|, ranks with an overflow, bytes; then delta and total of each relation.

Their sums (``counted``) have one number more for each relation: its delta on the rank that has most of it.
"""


class Counts(NamedTuple):
    """How far a loop is: the last iteration, rows that it changed, rows there are; then of all iterations so far.

    Those are rows changed, bytes sent, and rows changed on the rank that had most of them (``heaviest``).
    """

    iteration: int
    delta: int
    total: int
    changed: int
    bytes: int
    heaviest: int


def votes(loop: Loop, changed: float, difference: float = 0.0, failed: float = 0.0) -> Array:
    """This rank's, with the bytes that it has sent since the last ones."""
    sizes = [x for p in loop.parts.values() for x in (float(p.size), float(p.rows))]
    sent, loop.comm.sent = loop.comm.sent, 0
    return np.array([changed, difference, failed, float(sent), *sizes])


def counted(heard: Array) -> Array:
    """The sums of everybody's votes, a row a rank."""
    return np.concatenate([heard.sum(axis=0), heard[:, SIZES::2].max(axis=0)])


class Clock:
    """Seconds of the phases of an iteration."""

    def __init__(self) -> None:
        self._phases: dict[str, float] = {}

    def timed(self, phase: str, body: Callable[[], T]) -> T:
        """Runs a part of a phase."""
        began = time.perf_counter()
        out = body()
        self._phases[phase] = self._phases.get(phase, 0.0) + time.perf_counter() - began
        return out

    def take(self) -> dict[str, float]:
        """All phases; the next iteration begins with none."""
        phases, self._phases = self._phases, {}
        return phases


class Stats:
    """Of one stratum."""

    def __init__(self, relations: Sequence[str], ranks: int) -> None:
        self._relations = relations
        self._ranks = ranks
        self._most = SIZES + 2 * len(relations)
        self._sums: list[Array] = []
        self._seconds: list[float] = []
        self._phases: list[Mapping[str, float]] = []
        self._ahead = False
        self._numbers: list[int] = []
        self._changed = self._bytes = self._heaviest = 0
        self.iterations = 0

    def add(self, iteration: int, sums: Array, seconds: float, phases: Mapping[str, float], *, ahead: bool) -> None:
        """Up to ``iteration``; ``phases`` are seconds on this rank.

        ``ahead``: the delta in these sums is what the iteration before left, and the bytes what it sent.
        """
        self._ahead = ahead
        self._numbers.append(iteration)
        self._sums.append(sums)
        self._seconds.append(seconds)
        self._phases.append(phases)
        self._changed += self.delta(sums)
        self._bytes += int(sums[BYTES])
        self._heaviest += int(sums[self._most :].sum())

    def counts(self) -> Counts:
        """After the last sums."""
        sums = self._sums[-1]
        told = self._numbers[-1], self.delta(sums), self.total(sums)
        return Counts(*told, self._changed, self._bytes, self._heaviest)

    def delta(self, sums: Array) -> int:
        """Rows that changed."""
        return int(sums[SIZES : self._most : 2].sum())

    def total(self, sums: Array) -> int:
        """Rows that there are."""
        return int(sums[SIZES + 1 : self._most : 2].sum())

    def difference(self, iteration: int) -> float | None:
        """Σ|Δ| of an iteration."""
        return float(self._sums[iteration - 1][DIFFERENCE]) if 0 < iteration <= len(self._sums) else None

    @property
    def tuples(self) -> int:
        """Rows at the end."""
        return self.total(self._sums[-1]) if self._sums else 0

    def per_iteration(self) -> list[dict[str, Any]]:
        """One entry for each iteration and relation."""
        out = []
        for n, sums in enumerate(self._sums):
            later = self._sums[n + 1] if n + 1 < len(self._sums) else None
            shown = later if self._ahead else sums
            for r, name in enumerate(self._relations):
                delta = 0 if shown is None else int(shown[SIZES + 2 * r])
                total = int((sums if shown is None else shown)[SIZES + 1 + 2 * r])
                seconds = self._seconds[n]
                sent = 0 if shown is None or r else int(shown[BYTES])  # relations share an exchange
                out.append(
                    {
                        "iteration": self._numbers[n],
                        "relation": name,
                        "delta": delta,
                        "total": total,
                        "seconds": seconds,
                        "bytes": sent,
                        "balance": None if shown is None or not delta else self._balance(shown, r, delta),
                        "phases": self._phases[n],
                    }
                )
        return out

    def _balance(self, sums: Array, relation: int, delta: int) -> float:
        """The heaviest rank's part of a delta, by the average of all."""
        return float(sums[self._most + relation]) * self._ranks / delta
