"""Iterate a lattice without a limit in place: the result does not depend on the order, so passes read what they write.

Passes take rows in the order of ids, or the best values first (``ordered``). They send derived rows to the ranks that
own them (``exchange``), or rows to the ranks that have their edges (``mirrors``). The exchange carries the votes.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.exchange.mirrors import Mirrors
from mpi_backend.kernels import lists
from mpi_backend.loop import rounds
from mpi_backend.loop.loop_stats import sum_votes, votes
from mpi_backend.loop.ordered import Ordered

if TYPE_CHECKING:
    from mpi_backend.exchange.exchange import DeltaExchange
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop.loop_stats import Clock
    from mpi_backend.loop.roll_over import RollOver
    from mpi_backend.loop.runner import Runner
    from mpi_backend.state.loop_state import LoopState


class Passes:
    """The passes of one stratum. ``applied`` is the number of iterations of the last step.

    ``applied_by_value`` is the number of iterations so far that took rows by their values.
    """

    def __init__(
        self,
        loop: LoopState,
        runner: Runner,
        exchange: DeltaExchange,
        roll_over: RollOver,
        clock: Clock,
        *,
        traced: bool,
    ) -> None:
        self._loop = loop
        self._runner = runner
        self._exchange = exchange
        self._roll_over = roll_over
        self._clock = clock
        mirror = loop.facts.mirror
        self._mirrors = None if mirror is None else Mirrors(loop, mirror)
        placement = loop.facts.placement
        self._has_ghosts = placement is not None and placement.has_ghosts
        self._ordered = Ordered(loop, runner) if not traced and Ordered.fits(loop, runner) else None
        self.applied = 1
        self.applied_by_value = 0

    @property
    def is_by_value(self) -> bool:
        """Return whether passes now take rows by their values."""
        return self._ordered is not None and self._ordered.is_by_value

    def reset(self) -> None:
        """Prepare for other base rows of the same stratum."""
        self.applied_by_value = 0
        if self._ordered is not None:
            self._ordered.reset()

    def step(self) -> Array:
        """Run one pass, or several passes over few rows. Return the sums of the votes. Collective."""
        self.applied = 1
        ordered, mirrors = self._ordered, self._mirrors
        if ordered is not None and not ordered.is_on:
            ordered.try_start()
        if ordered is None or not ordered.is_on:
            return self._plain() if mirrors is None else self._mirrored(mirrors)
        is_by_value = ordered.is_by_value
        sums = self._ordered_passes(ordered) if mirrors is None else self._ordered_mirrored(ordered, mirrors)
        self.applied_by_value += self.applied if is_by_value else 0
        return sums

    def _plain(self) -> Array:
        """Apply rules to all rows that changed."""
        for p in self._loop.parts.values():
            rounds.take(p)
            p.rows += lists.count_new(p.state.f, p.current[: p.size])
            p.rows_before = p.rows
        self._clock.timed("rules", self._runner.run_rules)
        return sum_votes(self._clock.timed("exchange", partial(self._roll_over.run, self._waiting_votes)))

    def _waiting_votes(self) -> Array:
        waiting = sum(len(p.state.dirty) for p in self._loop.parts.values()) + self._exchange.waiting
        return votes(self._loop, waiting)

    def _ordered_passes(self, ordered: Ordered) -> Array:
        """Apply rules to near rows. With several ranks all passes between two exchanges count as one iteration."""
        [part] = self._loop.parts.values()
        part.rows_before, first = ordered.count(), ordered.waiting
        passes, part.size, part.rows, left = self._clock.timed("rules", ordered.step)
        if self._loop.comm.size == 1:
            self.applied = max(1, passes)
            part.size, part.size_between = first, part.size - first
            return sum_votes(votes(self._loop, left)[None, :])
        rank_votes = votes(self._loop, left + self._exchange.waiting)
        order_votes = ordered.votes()
        combined = np.concatenate([order_votes, rank_votes])
        all_votes = self._clock.timed("exchange", partial(self._exchange.run, combined))
        ordered.apply_votes(all_votes[:, : len(order_votes)])
        return sum_votes(all_votes[:, len(order_votes) :])

    def _mirrored(self, mirrors: Mirrors) -> Array:
        """Apply rules on all ranks to the changed rows of all ranks."""
        [part] = self._loop.parts.values()
        rounds.take(part)
        rows = part.current[: part.size]
        part.rows += lists.count_new(part.state.f, rows)
        part.rows_before = part.rows
        lists.unqueue(part.state.f, rows)
        all_votes = self._clock.timed("exchange", partial(mirrors.run, rows, votes(self._loop, len(rows))))
        self._apply_mirrored()
        return sum_votes(all_votes)

    def _apply_mirrored(self) -> None:
        """Apply rules to mirrored rows, and send derived rows of other ranks to their owners."""
        self._clock.timed("rules", self._runner.run_rules)
        if self._has_ghosts:
            self._clock.timed("exchange", partial(self._exchange.run, np.zeros(0)))

    def _ordered_mirrored(self, ordered: Ordered, mirrors: Mirrors) -> Array:
        """Apply rules on all ranks to the near rows of all ranks."""
        [part] = self._loop.parts.values()
        rows, part.rows, far = self._clock.timed("rules", ordered.select)
        part.size, part.rows_before = len(rows), part.rows
        order_votes = ordered.votes()
        combined = np.concatenate([order_votes, votes(self._loop, len(rows) + far)])
        all_votes = self._clock.timed("exchange", partial(mirrors.run, rows, combined))
        self._apply_mirrored()
        ordered.apply_votes(all_votes[:, : len(order_votes)])
        return sum_votes(all_votes[:, len(order_votes) :])
