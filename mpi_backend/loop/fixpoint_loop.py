"""Run one rank's part of a fixpoint: apply all rules to the delta, exchange rows, aggregate, vote.

In place (a lattice without a limit) an iteration is a pass (``passes``). In rounds, rules write to ``pending``, and the
relation changes only after the whole step, so the number of iterations is exact (docs/architecture.md, "Evaluation")::

    lattice       delta = the rows that pending improves
    accumulating  state += pending;  delta = pending     (theorem 1 of Wang et al., PowerLog)
    iterated      state = base U pending                 (recomputed each round)
"""

from __future__ import annotations

import logging
import math
import time
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from mpi_backend.exchange.exchange import CopyExchange, DeltaExchange
from mpi_backend.loop import rounds
from mpi_backend.loop.loop_stats import CHANGED, DIFFERENCE, OVERFLOW, Clock, Counts, LoopStats, sum_votes, votes
from mpi_backend.loop.passes import Passes
from mpi_backend.loop.refining import Refining
from mpi_backend.loop.roll_over import RollOver
from mpi_backend.loop.runner import Runner, SumOverflowError
from mpi_backend.loop.views import Views
from pyspark_paralagg.errors import FixpointError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.relation_part import RelationPart

    Progress = Callable[[Counts], None]
logger = logging.getLogger("pyspark_paralagg")
T = TypeVar("T")
PATIENCE = 100
"""The minimum of rounds before an iterated step counts as endless, and before a climb is logged."""


class EndlessClimbError(Exception):
    """A run that does not end: more iterations than keys, or a sum that overflows. All ranks raise it."""

    def __init__(self, iterations: int, overflow: SumOverflowError | None, *, overflowed: bool) -> None:
        super().__init__(f"endless after {iterations} iterations")
        self.iterations = iterations
        self.overflow = overflow
        self.overflowed = overflowed


class FixpointLoop:
    """The loop of a stratum. ``progress`` is called after each iteration (on rank 0 only)."""

    def __init__(self, loop: LoopState, *, ansi: bool, traced: bool = False, progress: Progress | None = None) -> None:
        self._loop = loop
        self._facts = loop.facts
        self._stratum = loop.facts.stratum
        self._comm = loop.comm
        self._runner = Runner(loop, ansi=ansi, traced=traced)
        self._runner.prepare()
        self._exchange = DeltaExchange(loop, self._runner.combine)
        self._exchange.prepare()
        self._clock = Clock()
        self.roll_over = RollOver(loop, self._runner, self._exchange, traced=traced)
        self._passes = Passes(loop, self._runner, self._exchange, self.roll_over, self._clock, traced=traced)
        self._copies = CopyExchange(loop)
        self._views = Views(loop)
        is_refined = loop.facts.refinement is not None and loop.comm.size > 1 and not traced
        self.refining = Refining(loop) if is_refined else None
        self._progress = progress
        self._overflow: SumOverflowError | None = None
        self._has_warned = False
        self._own_indexes = [i for i in loop.indexes.values() if not i.planned.copy]
        self.stats = self._new_stats()

    def _new_stats(self) -> LoopStats:
        names = [r.name for r in self._stratum.relations]
        return LoopStats(names, self._comm.size, works_ahead=self._facts.mirror is not None)

    def run(self) -> None:
        """Run to the fixpoint or to the limit. Collective."""
        self.start()
        iteration = 0
        is_running = self._may_apply(iteration)
        while is_running:
            started_at = time.perf_counter()
            sums = self.step()
            if self.refining is not None:
                self.refining.total = self.stats.total(sums)
            iteration += self._passes.applied
            seconds = time.perf_counter() - started_at
            self.stats.add(iteration, sums, seconds, self._clock.take(), ahead=self._stratum.in_place)
            if self._progress is not None:
                self._progress(self.stats.counts())
            tolerance = self._stratum.tolerance
            has_changed = sums[CHANGED] > 0 and not (tolerance is not None and sums[DIFFERENCE] < tolerance)
            ends_at = self._stratum.ends_at
            has_enough = ends_at is not None and self.stats.total(sums) >= ends_at
            is_running = has_changed and not has_enough and self._may_apply(iteration)
            if sums[OVERFLOW] > 0:
                raise EndlessClimbError(iteration, self._overflow, overflowed=True)
            if has_changed and not is_running and not has_enough and self._stratum.on_limit == "error":
                raise self._limit_reached(iteration, sums)
            if is_running and self._is_endless(iteration, sums):
                raise EndlessClimbError(iteration, None, overflowed=False)
        self.stats.iterations = iteration

    @property
    def reads_only(self) -> bool:
        """Return whether rules neither add keys nor compute texts."""
        adds_no_keys = all(r.target.kind in ("same", "resolved") for r in self._stratum.rules)
        return adds_no_keys and not self._stratum.makes_strings and not any(r.sites.calls for r in self._runner.rules)

    @property
    def is_by_value(self) -> bool:
        """Return whether rows were taken by their values."""
        return self._passes.applied_by_value > 0

    @property
    def is_by_target(self) -> bool:
        """Return whether iterations added up sums by target."""
        return self._runner.added_by_target > 0

    def reset(self) -> None:
        """Clear the counts, to run with other base rows of the same stratum."""
        self.stats = self._new_stats()
        self._passes.reset()

    def start(self) -> None:
        """Set the relations to R_0: the initial rows, or else the base rows; both if the initial rows are settled."""
        self._settle()
        for p in self._parts:
            rows = self._loop.base[p.name]
            if not p.planned.settled:
                rows = self._loop.initial.get(p.name, rows)
            p.grow()
            self._runner.put(p, p.state, rows)
            if p.delta is not None:
                p.delta = p.state.copy()
            if self._facts.is_iterated:
                rounds.read_all(p)
            elif not self._stratum.in_place:
                rounds.take_current(p)
        self._follow_views()
        if not self._stratum.in_place:
            self._publish()

    def _settle(self) -> None:
        """Put the initial rows of settled relations into the state, all indexes and copies, but into no delta."""
        settled = [p for p in self._parts if p.planned.settled]
        for p in settled:
            p.grow()
            self._runner.put(p, p.state, self._loop.initial[p.name])
            rounds.take_current(p)
        if settled and not self._stratum.in_place:
            self._publish()
        for p in settled:
            rounds.settle_current(p)

    def step(self) -> Array:
        """Run one iteration. Return the sums of the votes."""
        if not self._stratum.in_place:
            return self._round()
        self._refine()
        return self._passes.step()

    # --- rounds -----------------------------------------------------------------------------------------------------

    def _round(self) -> Array:
        self._clock.timed("rules", partial(self._catching, self._apply_rules))
        self._clock.timed("exchange", partial(self._catching, partial(self.roll_over.run, lambda: np.zeros(0))))
        changed, difference = self._clock.timed("aggregate", self._aggregate)
        followed = self._clock.timed("aggregate", self._follow_views)
        if followed and self._stratum.tolerance is not None:
            difference = math.inf
        changed += followed
        self._refine()
        self._clock.timed("copy", self._publish)
        rank_votes = votes(self._loop, float(changed), difference, float(self._overflow is not None))
        return sum_votes(self._clock.timed("vote", partial(self._comm.allgather, rank_votes)))

    def _aggregate(self) -> tuple[int, float]:
        """Combine the pending rows into the relations. Return the number of changed rows, and Σ|Δ| of sum columns.

        For a tolerance a changed relation without sums is infinitely far from its end.
        """
        changed, difference = 0, 0.0
        for p in self._parts:
            if p.is_view:
                continue
            # Of a followed relation only the changes of its followers count: rules read these only.
            is_counted = not self._facts.is_followed(p.name)
            if self._facts.is_iterated:
                n, d = rounds.replace(p)
                difference += d
            else:
                difference += self._catching(partial(self._runner.apply, p, p.pending, p.state)) or 0.0
                if p.delta is not None:
                    rounds.swap_delta(p)
                else:
                    p.pending.clear()
                rounds.take_current(p)
                n = p.size
            changed += n if is_counted else 0
            if n and self._stratum.tolerance is not None and not any(d.definition.is_sum for d in p.planned.dependents):
                difference = math.inf
        return changed, difference

    def _apply_rules(self) -> None:
        if self._facts.is_iterated:
            for p in self._parts:
                if not p.is_view:
                    rounds.begin(p, partial(self._runner.put, p, p.pending, self._loop.base[p.name]))
        self._runner.run_rules()

    def _follow_views(self) -> int:
        """Update the relations that follow others. Return the number of their changed rows."""
        followers = [p for p in self._parts if p.is_view]
        if not followers:
            return 0
        if self._facts.is_iterated:
            self._catching(self._views.recount)
            return sum(rounds.replace(p)[0] for p in followers)
        self._catching(self._views.follow)
        for p in followers:
            rounds.take_current(p)
        return sum(p.size for p in followers)

    def _refine(self) -> None:
        """Split and merge sub-buckets. Copies of the delta follow it, since they go where the rows then are."""
        if self.refining is not None:
            self._clock.timed("move", self.refining.run)

    def _publish(self) -> None:
        """Add the current rows to the indexes on the relations, and send them to the copies on other ranks."""
        for index in self._own_indexes:
            index.link_current()
        self._copies.run()

    # --- ends -------------------------------------------------------------------------------------------------------

    @property
    def _parts(self) -> list[RelationPart]:
        return list(self._loop.parts.values())

    def _may_apply(self, done: int) -> bool:
        return self._stratum.max_iterations is None or done < self._stratum.max_iterations

    def _catching(self, body: Callable[[], T]) -> T | None:
        """Call ``body``. Keep an overflow for the next vote, so that all ranks end the run together."""
        try:
            return body()
        except SumOverflowError as problem:
            if not self._stratum.cycle_check:
                raise
            self._overflow = problem
            return None

    def _is_endless(self, iteration: int, sums: Array) -> bool:
        """Return whether values still change after more rounds than there are keys, so that changes follow a cycle.

        If rules only translate values, the climb is endless. Otherwise values may converge late, and a limit of
        iterations decides. Sums of fractions may also converge (damping): they climb if as many rounds as there are
        keys have not made the changes smaller. An iterated step gets at least ``PATIENCE`` rounds. Passes that take
        rows by their values prove nothing and are not counted.
        """
        s = self._stratum
        if s.max_iterations is not None or s.tolerance is not None or not s.cycle_check:
            return False
        if self._passes.is_by_value:
            return False  # it has its own limit, after which plain passes continue
        keys = self.stats.total(sums) + 1 + self._passes.applied_by_value
        if s.climb_limit is not None:
            if iteration > max(keys, PATIENCE) and not self._has_warned and self._comm.rank == 0:
                self._has_warned = True
                logger.warning(
                    "%s: values still change after %s iterations, more than there are keys; the run goes on to %s "
                    "iterations (spark.paralagg.climb.maxIterations)", self.name, iteration, s.climb_limit,
                )  # fmt: skip
            return iteration >= s.climb_limit
        fractions = any(
            d.definition.is_sum and (d.column.type in ("double", "float") or d.column.type.startswith("decimal"))
            for r in s.relations
            for d in r.dependents
        )
        if fractions:
            before = self.stats.difference(iteration - keys)
            return iteration > 2 * keys and before is not None and before <= sums[DIFFERENCE]
        return iteration > (max(keys, PATIENCE) if self._facts.is_iterated else keys)

    def _limit_reached(self, iterations: int, sums: Array) -> FixpointError:
        return FixpointError(
            "PARALAGG_LIMIT_REACHED",
            f"{self.name}: {self.stats.delta(sums)} rows still change after {iterations} iterations.",
            value=iterations,
            hint="raise the limit (max_iterations; max_iter of ra.graph, MAX RECURSION LEVEL in SQL, .limit in a "
            "text), or set on_limit='return' to get R_n itself.",
        )

    @property
    def name(self) -> str:
        """Return the name of the stratum: the names of its relations."""
        return "_".join(r.name for r in self._stratum.relations)
