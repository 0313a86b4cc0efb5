"""Execute a recursion with plain DataFrames: the definition of the fixpoint, one round after another.

Only a proof needs a jar, so ``mode="iterate"`` runs on Connect and serverless, and supports any step that Spark can
run. It is eager: the loop runs in Python at the call. A local checkpoint cuts the lineage of each round, and the
previous checkpoint is freed. The result is the last checkpoint and is kept while something reads it.
"""

from __future__ import annotations

import logging
import time
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.backends.climb import only_translates
from pyspark_paralagg.backends.path_search import PathSearch
from pyspark_paralagg.errors import FixpointError, UnsupportedError
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.report.progress import publish
from pyspark_paralagg.report.run_progress import RunProgress
from pyspark_paralagg.report.run_report import Record, RunReport, keep
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.attach import drop_checkpoint
from pyspark_paralagg.session.interrupt import cancel_on_interrupt
from pyspark_paralagg.session.interrupted_calls import after_interrupt, drop_checkpoints
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.protocol import Job, Seed
    from pyspark_paralagg.backends.rounds import Change
    from pyspark_paralagg.report.run_progress import State

logger = logging.getLogger("pyspark_paralagg")
_MIN_ROUNDS = 100
"""The least number of rounds before a climb is reported as endless."""
_SHOWN_KEYS = 5
_RUNS = count(1)
_SIZE_BITS = 63
"""The bits of Spark's default size of an RDD without statistics."""


class DataFrameBackend:
    """The executor that computes ``R(i+1) = agg(C + F(Ri))`` in full each round."""

    name = "dataframe"

    def obstacle(self, session: SparkSession) -> str | None:  # noqa: ARG002 - the protocol requires it
        """Return None: this executor always works."""
        return None

    def run(self, job: Job, reason: str) -> dict[str, DataFrame]:
        """Run ``job`` now. Raises ``FixpointError`` ``PARALAGG_LIMIT_REACHED`` or ``PARALAGG_NO_FIXPOINT``.

        Raises what ``check_proof`` raises before anything runs.
        """
        from pyspark_paralagg.backends.compiled import check_proof  # noqa: PLC0415 - pyspark is optional

        job.refuse_settled("plain DataFrames")
        _refuse_question(job, reason)
        check_proof(job)
        searches = [PathSearch(job, seed, reason) for seed in job.seeds if seed.relation.traces]
        if not is_connect(job.session):
            cancel_on_interrupt(job.session)
        loop = _Loop(job)
        try:
            loop.load()
            loop.iterate()
            for search in searches:
                loop.trace(search)
        except BaseException as problem:
            loop.abandon(problem)
            loop.publish_state("failed")
            raise
        loop.publish_state("done")
        return loop.store(reason)


def _refuse_question(job: Job, reason: str) -> None:
    if job.question is not None:
        raise UnsupportedError(
            "PARALAGG_WHY_UNSUPPORTED",
            f"plain DataFrames explain no rows, and they were to run {job.name!r}: {reason}",
            value=job.name,
            place=f"relation {job.name}",
            hint="use a step that an engine supports",
        )


class _Loop:
    """The state of one run. ``live`` has every checkpoint that is not yet freed."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.live: list[DataFrame] = []
        self.bases: dict[str, DataFrame] = {}
        self.state: dict[str, DataFrame] = {}
        self.totals: dict[str, int] = {}
        self.rows: list[dict[str, Any]] = []
        self.seconds = dict.fromkeys(("plan", "load", "loop", "store"), 0.0)
        self.moves: list[float] = []
        self.climbs: bool | None = None
        self.max_rounds = 0
        self.iterations = 0
        self.changed = 0
        self.run = f"paralagg {DataFrameBackend.name}-{next(_RUNS)}"
        self.started_at = time.perf_counter()

    def load(self) -> None:
        """Aggregate base and initial rows. ``agg(C + F) = agg(agg(C) + F)``, so rounds read the smaller aggregate."""
        from pyspark_paralagg.lowering.aggregate import aggregate  # noqa: PLC0415 - pyspark is optional

        start = time.perf_counter()
        self.publish_state("running")
        for seed in self.job.seeds:
            name = seed.relation.name
            start_rows = seed.base if seed.initial is None else seed.initial
            self.state[name] = self._checkpoint(aggregate(start_rows, seed.relation))
            # Rounds need the base's witnesses, which their count does not identify.
            is_counted = any(d.supplied for d in seed.relation.dependents)
            if is_counted or seed.initial is not None:
                rows = seed.base if is_counted else aggregate(seed.base, seed.relation)
                self.bases[name] = self._checkpoint(rows)
            else:
                self.bases[name] = self.state[name]
            self.totals[name] = 0
        self.seconds["load"] = time.perf_counter() - start

    def iterate(self) -> None:
        """Apply the step until nothing changes, the tolerance is met, or the limit is reached."""
        start = time.perf_counter()
        delta = 0
        with _description(self.job.session) as describe:
            for iteration in count(1):
                describe(f"paralagg {self.job.name}: iteration {iteration:,}, last delta {delta:,} rows")
                changes = self._round(iteration)
                self.iterations = iteration
                delta = sum(c.delta for c in changes.values())
                self.changed += delta
                self.publish_state("running")
                if self._is_finished(changes):
                    break
                if iteration == self.job.max_iterations:
                    if self.job.on_limit == "error":
                        raise self._limit_reached(delta)
                    break
                self._check_climb(changes)
        self.seconds["loop"] = time.perf_counter() - start - self.seconds["plan"]

    def trace(self, search: PathSearch) -> None:
        """Add hops and parents to the rows of a relation."""
        start, name = time.perf_counter(), search.relation.name
        previous = list(self.live)
        self.state[name] = self.checkpoints[name] = search.run(self.state[name], self._checkpoint)
        used = (*self.checkpoints.values(), *self.state.values(), *previous)
        self.free([df for df in self.live if all(df is not other for other in used)])
        self.seconds["store"] += time.perf_counter() - start

    def store(self, reason: str) -> dict[str, DataFrame]:
        """Return the result as DataFrames over the last checkpoints; free all other checkpoints."""
        report = RunReport(
            backend=DataFrameBackend.name,
            reason=reason,
            iterations=self.iterations,
            tuples=sum(self.totals.values()),
            seconds=self.seconds,
            rounds=tuple(self.rows),
        )
        self.free([df for df in self.live if all(df is not used for used in self.checkpoints.values())])
        for seed in self.job.seeds:
            keep(self.state[seed.relation.name], Record(report, program=_show_job(self.job)))
        return self.state

    def abandon(self, problem: BaseException) -> None:
        """Drop the blocks of all checkpoints, also of one whose making ``problem`` interrupted."""
        if is_connect(self.job.session):
            self.free(self.live)
        else:
            drop_checkpoints(self.job.session, self.run, problem)

    def free(self, checkpoints: list[DataFrame]) -> None:
        """Drop the blocks of checkpoints that nothing reads any more."""
        for df in checkpoints:
            self.live = [other for other in self.live if other is not df]
            if not is_connect(df):  # over Connect the server drops it with the client's object
                drop_checkpoint(df)

    def publish_state(self, state: State) -> None:
        """Publish the progress of the run to listeners."""
        last = self.rows[-len(self.job.seeds) :]
        publish(
            RunProgress(
                self.run,
                self.job.name,
                DataFrameBackend.name,
                state,
                self.iterations,
                delta=sum(row["delta"] for row in last),
                total=sum(row["total"] for row in last),
                changed=self.changed,
                seconds=time.perf_counter() - self.started_at,
                limit=self.job.max_iterations,
            )
        )

    def _round(self, iteration: int) -> dict[str, Change]:
        from pyspark_paralagg.backends.rounds import change_of, next_round, state_of  # noqa: PLC0415 - as above

        start = time.perf_counter()
        derived = self.job.apply(self.state)
        self.seconds["plan"] += time.perf_counter() - start
        previous = list(self.live)
        self.checkpoints: dict[str, DataFrame] = {}
        changes: dict[str, Change] = {}
        next_state: dict[str, DataFrame] = {}
        for seed in self.job.seeds:
            name = seed.relation.name
            supplied = [quoted(c.name) for c in seed.relation.supplied]
            rows = self.bases[name].union(derived[name].select(supplied))  # without columns that only a path shows
            self.checkpoints[name] = self._checkpoint(next_round(rows, self.state[name], seed.relation))
            changes[name] = change_of(self.checkpoints[name])
            next_state[name] = state_of(self.checkpoints[name], changes[name], seed.relation)
        self.state = next_state
        self.free([df for df in previous if all(df is not base for base in self.bases.values())])
        for name, change in changes.items():
            self.totals[name] = change.total
            self.rows.append(
                {
                    "iteration": iteration,
                    "relation": name,
                    "delta": change.delta,
                    "total": change.total,
                    "seconds": time.perf_counter() - start,
                    "bytes": None,
                    "balance": None,
                    "work": None,
                    "work_balance": None,
                }
            )
        return changes

    def _checkpoint(self, df: DataFrame) -> DataFrame:
        with _call_site(self.job.session, self.run):
            checkpoint = _bounded(df.localCheckpoint())
        self.live.append(checkpoint)
        return checkpoint

    def _is_finished(self, changes: dict[str, Change]) -> bool:
        if self.job.max_rows is not None and sum(c.total for c in changes.values()) >= self.job.max_rows:
            return True
        if self.job.tolerance is None:
            return all(c.delta == 0 for c in changes.values())
        moved = sum(changes[s.relation.name].moved for s in self.job.seeds if s.accumulating)
        is_unchanged = all(changes[s.relation.name].delta == 0 for s in self.job.seeds if not s.accumulating)
        return moved < self.job.tolerance and is_unchanged

    def _limit_reached(self, delta: int) -> FixpointError:
        return FixpointError(
            "PARALAGG_LIMIT_REACHED",
            f"{delta:,} rows still change after {self.job.max_iterations} iterations",
            value=self.job.max_iterations,
            place=self.job.name,
            hint='raise max_iterations, or get the current rows with on_limit="return"',
        )

    def _check_climb(self, changes: dict[str, Change]) -> None:
        """Raise an error if values still change after more rounds than there are keys, and cannot converge.

        Without new keys, a value that improves after that many rounds came around a cycle. If the step only shifts
        values, that never ends. Otherwise values may converge late, and ``spark.paralagg.climb.maxIterations`` ends
        the run. A sum of doubles climbs only if its changes do not shrink. With ``max_iterations`` or ``tolerance``
        nothing is checked.
        """
        self.moves.append(sum(c.moved for c in changes.values()))
        is_watched = self.job.max_iterations is None and self.job.tolerance is None
        if not is_watched or self.iterations <= max(sum(self.totals.values()) + 1, _MIN_ROUNDS):
            return
        if self.climbs is None:
            self.climbs = any(s.accumulating for s in self.job.seeds) or only_translates(self.job)
            self.max_rounds = conf.read(self.job.session, conf.CLIMB_MAX_ITERATIONS)
            if not self.climbs:
                logger.warning(
                    "%s: values still change after %s iterations, more than there are keys; the run goes on to %s "
                    "iterations (spark.paralagg.climb.maxIterations)", self.job.name, self.iterations, self.max_rounds,
                )  # fmt: skip
        if not self.climbs and self.iterations < self.max_rounds:
            return
        for seed in self.job.seeds:
            if changes[seed.relation.name].delta and not self._is_converging(seed):
                raise self._no_fixpoint(seed)

    def _is_converging(self, seed: Seed) -> bool:
        floating = any(d.column.type == "double" for d in seed.relation.dependents)
        return bool(seed.accumulating) and floating and self.moves[-1] < self.moves[len(self.moves) // 2]

    def _no_fixpoint(self, seed: Seed) -> FixpointError:
        from pyspark_paralagg.backends.rounds import changed_rows  # noqa: PLC0415 - pyspark is optional

        rows = changed_rows(self.checkpoints[seed.relation.name], seed.relation, _SHOWN_KEYS)
        keys = [tuple(row[k.name] for k in seed.relation.keys) for row in rows]
        shown = ", ".join(str(k[0]) if len(k) == 1 else str(k) for k in keys)
        return FixpointError(
            "PARALAGG_NO_FIXPOINT",
            f"values still change after {self.iterations} iterations over {self.totals[seed.relation.name]:,} keys, so "
            f"they follow a cycle, for example at {shown}",
            value=keys,
            place=seed.relation.name,
            hint="break the cycle, bound the values in the step, or set max_iterations or tolerance; if the values "
            "converge later, raise spark.paralagg.climb.maxIterations",
        )


def _bounded(checkpoint: DataFrame) -> DataFrame:
    """Return ``checkpoint``, without Spark's size estimate if that exceeds 63 bits.

    A checkpoint keeps the estimate of its plan, and a join's estimate is the product of both sides. If a step reads the
    relation twice, the estimate is squared every round: after twenty it has a million digits, and planning never ends.
    """
    if is_connect(checkpoint):
        return checkpoint
    java = checkpoint._jdf  # noqa: SLF001 - no public way to a plan's statistics
    if java.queryExecution().optimizedPlan().stats().sizeInBytes().bit_length() < _SIZE_BITS:
        return checkpoint
    session = checkpoint.sparkSession
    rows = java.queryExecution().analyzed().rdd()
    fresh = session._jsparkSession.internalCreateDataFrame(rows, java.schema(), False)  # noqa: SLF001, FBT003 - likewise
    return type(checkpoint)(fresh, session)


def _show_job(job: Job) -> str:
    lines = []
    for seed in job.seeds:
        r = seed.relation
        by = {d.column.name: d.aggregator + (f"({d.order})" if d.order else "") for d in r.dependents}
        columns = [f"{c.name}: {c.type}" for c in r.keys] + [
            f"{d.column.name}: {by[d.column.name]} {d.column.type}" for d in r.dependents
        ]
        lines.append(f"{r.name}({', '.join(columns)})")
    return "\n".join(lines)


@contextmanager
def _description(session: SparkSession) -> Iterator[Any]:
    """Yield a function that sets the Spark job description; restore the previous description at the end."""
    if is_connect(session):
        yield lambda _: None
        return
    with _restored(session, "spark.job.description"):
        yield session.sparkContext.setJobDescription


@contextmanager
def _call_site(session: SparkSession, name: str) -> Iterator[None]:
    """Name the RDDs that are made, so that ``drop_checkpoints`` finds them. PySpark's ``collect`` drops such a name."""
    if is_connect(session):
        yield
        return
    with _restored(session, "callSite.short"):
        session.sparkContext.setLocalProperty("callSite.short", name)
        yield


@contextmanager
def _restored(session: SparkSession, key: str) -> Iterator[None]:
    """Restore a local property of Spark at the end."""
    before = session.sparkContext.getLocalProperty(key)
    try:
        yield
    finally:
        restore = partial(session.sparkContext.setLocalProperty, key, before)  # type: ignore[arg-type]  # None removes it
        after_interrupt(restore)
