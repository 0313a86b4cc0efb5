"""Iterations of a lattice without a limit: nobody can tell when a value was read, so passes read what they write.

In the order of rows, or the best first (``ordered``); what is derived for rows of other ranks is sent to them
(``exchange``), or rows are sent to where their edges are (``mirrors``). Votes travel with the exchange.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.exchange.mirrors import Mirrors
from mpi_backend.kernels import lists
from mpi_backend.loop import rounds
from mpi_backend.loop.ordered import Ordered
from mpi_backend.loop.stats import counted, votes

if TYPE_CHECKING:
    from mpi_backend.exchange.exchange import DeltaExchange
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop.runner import Runner
    from mpi_backend.loop.stats import Clock
    from mpi_backend.state.loop_state import Loop


class Passes:
    """Of one stratum. ``applied`` is how many iterations the last step was."""

    def __init__(self, loop: Loop, runner: Runner, exchange: DeltaExchange, clock: Clock, *, traced: bool) -> None:
        self._loop = loop
        self._runner = runner
        self._exchange = exchange
        self._clock = clock
        mirror = loop.facts.mirror
        self._mirrors = None if mirror is None else Mirrors(loop, mirror)
        self._ordered = Ordered(loop, runner) if not traced and Ordered.fits(loop, runner) else None
        self.applied = 1

    @property
    def orders(self) -> bool:
        """Whether rows are taken by their values now."""
        return self._ordered is not None and self._ordered.orders

    def again(self) -> None:
        """For other base rows of the same stratum."""
        if self._ordered is not None:
            self._ordered.again()

    def step(self) -> Array:
        """One pass, or passes over few rows; the sums of the votes. Collective."""
        self.applied = 1
        ordered, mirrors = self._ordered, self._mirrors
        if ordered is not None and not ordered.is_on:
            ordered.consider()
        if ordered is None or not ordered.is_on:
            return self._plain() if mirrors is None else self._mirrored(mirrors)
        return self._ordered_passes(ordered) if mirrors is None else self._ordered_mirrored(ordered, mirrors)

    def _plain(self) -> Array:
        """Over all rows that changed."""
        parts = list(self._loop.parts.values())
        for p in parts:
            rounds.take(p)
            p.rows += lists.count_new(p.state.f, p.current[: p.size])
        self._clock.timed("rules", self._runner.run_rules)
        waiting = sum(len(p.state.dirty) for p in parts) + self._exchange.waiting
        heard = self._clock.timed("exchange", partial(self._exchange.run, votes(self._loop, waiting)))
        return counted(heard)

    def _ordered_passes(self, ordered: Ordered) -> Array:
        """Over near rows; with other ranks all passes until they are told of something count as one iteration."""
        [part] = self._loop.parts.values()
        passes, part.size, part.rows, left = self._clock.timed("rules", ordered.step)
        mine = votes(self._loop, left + self._exchange.waiting)
        if self._loop.comm.size == 1:
            self.applied = max(1, passes)
            return counted(mine[None, :])
        of_order = ordered.votes()
        both = np.concatenate([of_order, mine])
        heard = self._clock.timed("exchange", partial(self._exchange.run, both))
        ordered.agree(heard[:, : len(of_order)])
        return counted(heard[:, len(of_order) :])

    def _mirrored(self, mirrors: Mirrors) -> Array:
        """All ranks apply the rows of all that changed."""
        [part] = self._loop.parts.values()
        rounds.take(part)
        rows = part.current[: part.size]
        part.rows += lists.count_new(part.state.f, rows)
        lists.unqueue(part.state.f, rows)
        heard = self._clock.timed("exchange", partial(mirrors.run, rows, votes(self._loop, len(rows))))
        self._clock.timed("rules", self._runner.run_rules)
        return counted(heard)

    def _ordered_mirrored(self, ordered: Ordered, mirrors: Mirrors) -> Array:
        """All ranks apply the near rows of all."""
        [part] = self._loop.parts.values()
        rows, part.rows, far = self._clock.timed("rules", ordered.select)
        part.size = len(rows)
        of_order = ordered.votes()
        both = np.concatenate([of_order, votes(self._loop, len(rows) + far)])
        heard = self._clock.timed("exchange", partial(mirrors.run, rows, both))
        self._clock.timed("rules", self._runner.run_rules)
        ordered.agree(heard[:, : len(of_order)])
        return counted(heard[:, len(of_order) :])
