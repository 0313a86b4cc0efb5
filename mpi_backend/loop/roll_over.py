"""Exchange derived rows early, within an iteration, if a rank holds many for other ranks (iteration roll-over).

Load-Balancing Parallel Relational Algebra, section 3 ("temporal load imbalance"): a rank whose rules have derived too
many rows for others suspends them, and all ranks exchange. An iteration ends with the first exchange in which no rank
has suspended its rules, so rounds stay exact: rules do not read what a round has derived. A vote in the exchange says
whether a rank will continue, so runs without early exchanges have no further meeting.

Not bounded: rows of copies (``CopyExchange``), which are stored anyway, and ghosts whose ids were resolved at load. The
paper's rule also suspends a join whose own output is large; here own rows are aggregated at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.loop.loop_stats import BYTES, NUMBERS, SIZES, WORK
from mpi_backend.loop.runner import SumOverflowError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.exchange.exchange import DeltaExchange
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop.runner import Runner
    from mpi_backend.state.loop_state import LoopState


class RollOver:
    """The exchanges of derived rows of one loop. ``early`` is the number of those that ended no iteration."""

    def __init__(self, loop: LoopState, runner: Runner, exchange: DeltaExchange, *, traced: bool) -> None:
        self._loop = loop
        self._exchange = exchange
        self._parts = [loop.parts[name] for name in loop.facts.stratum.sent_early]
        self._limit = loop.facts.roll_over_rows
        self.is_on = self._limit > 0 and len(self._parts) > 0 and loop.comm.size > 1 and not traced
        self._votes = SIZES + NUMBERS * len(loop.parts) if loop.facts.stratum.in_place else 0
        self.early = 0
        if self.is_on:
            runner.on_derived = self._check

    def __str__(self) -> str:
        return f"{self.early} early exchange{'' if self.early == 1 else 's'}"

    def run(self, votes: Callable[[], Array]) -> Array:
        """Exchange rows until the rules of all ranks have ended. Return the votes of all ranks. Collective."""
        if not self.is_on:
            return self._exchange.run(votes())
        overflow = None
        while True:
            own = votes()
            message, all_votes = self._exchange.send(np.append(own, 0.0))
            try:
                self._receive(message)
            except SumOverflowError as problem:  # the other ranks may still continue
                overflow = problem
            if not all_votes[:, -1].any():
                break
            self.early += 1
            if len(own):
                self._loop.work += int(own[WORK])
                self._loop.comm.sent_bytes += int(own[BYTES])
        if overflow is not None:
            raise overflow
        return all_votes[:, :-1]

    def _check(self) -> None:
        """Exchange, and vote to continue, if this rank has many rows for others. Collective with ``run`` of others."""
        if self._ghosts >= self._limit:
            self.early += 1
            message, _ = self._exchange.send(np.append(np.zeros(self._votes), 1.0))
            self._receive(message)

    def _receive(self, message: tuple[Array, Array]) -> None:
        # All ghosts have been sent. A lattice has kept their best values, which is worth less than half of the limit.
        if 2 * self._ghosts > self._limit:
            for p in self._parts:
                p.forget_ghosts()
        self._exchange.receive(*message)

    @property
    def _ghosts(self) -> int:
        return sum(len(p.ghosts) for p in self._parts)
