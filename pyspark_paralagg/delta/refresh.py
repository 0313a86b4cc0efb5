"""Run one refresh: read the target, decide, compute, write.

``view`` calls it, and it calls ``decide``, ``program`` and ``commit`` in this order:

    target and its record -> decide -> full: whole fixpoint -> overwrite
                                    -> incremental: continued fixpoint -> merge of the rows that differ
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.backends.kept import StateLostError
from pyspark_paralagg.delta.commit import Writer, create_empty, tasks_of_merge
from pyspark_paralagg.delta.decide import Decision, decide
from pyspark_paralagg.delta.record import APPLICATION, Consumed, Costs, Record, last_refresh
from pyspark_paralagg.delta.report import RefreshReport, SourceVersions
from pyspark_paralagg.delta.states import forget, keeping_of, keeping_of_whole, remember, state_of
from pyspark_paralagg.delta.tables import CHANGE_COLUMNS
from pyspark_paralagg.errors import UnsupportedError, UsageError
from pyspark_paralagg.maintenance.continuation import (
    REMOVED,
    NotMaintainableError,
    continue_fixpoint,
    grow_fixpoint,
)
from pyspark_paralagg.maintenance.net import net_changes
from pyspark_paralagg.maintenance.program import Program, continuing_backend
from pyspark_paralagg.maintenance.rows import materialize
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.report.engine_report import report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.kept import Keeping
    from pyspark_paralagg.delta.decide import Changes
    from pyspark_paralagg.delta.record import LastRefresh
    from pyspark_paralagg.delta.tables import Commit, Snapshot, Table
    from pyspark_paralagg.delta.text import WholeText
    from pyspark_paralagg.maintenance.continuation import Continuation
    from pyspark_paralagg.maintenance.program import Frames
    from pyspark_paralagg.maintenance.rows import MaterializedRows
    from pyspark_paralagg.report.run_report import RunReport


class Refresh:
    """One refresh: a program, its sources at fixed versions, and the target at the version that it had before."""

    def __init__(
        self,
        spark: SparkSession,
        target: Table,
        program: Program | WholeText,
        sources: Mapping[str, tuple[Table, Snapshot]],
        began: float,
    ) -> None:
        self._began = began
        self._since_1970 = time.time() - (time.perf_counter() - began)
        self._wasted = 0.0
        self._loaded = ""
        self._is_from_state = False
        self._spark = spark
        self._target = target
        self._program = program
        self._sources = sources
        self._snapshot = target.snapshot()
        self._last: LastRefresh | None = None
        self._seconds = dict.fromkeys(("changes", "fixpoint", "write"), 0.0)
        if self._snapshot is not None and self._is_maintained:
            self._last = last_refresh(target, self._snapshot.version)
        self._check_target()

    @property
    def versions(self) -> dict[str, SourceVersions]:
        """Return the consumed and the newest version of each source."""
        consumed = {} if self._last is None else self._last.record.sources
        return {
            name: SourceVersions(consumed[name].version if name in consumed else None, snapshot.version)
            for name, (_, snapshot) in self._sources.items()
        }

    def decide(self, backend: str | None, *, with_rows: bool = True, by_cost: bool = True) -> Decision:
        """Return the kind of this refresh; ``with_rows`` is false if it will not run."""
        if not self._is_maintained:
            return Decision("full", "it is the first refresh")
        inputs = (self._spark, self._program, self._last, self._sources, backend)
        return decide(*inputs, with_rows=with_rows, by_cost=by_cost)

    @property
    def _is_maintained(self) -> bool:
        """Return whether a refresh has written the target before."""
        return self._snapshot is not None and APPLICATION in self._snapshot.transactions

    def run(self, backend: str | None, *, full: bool | None) -> RefreshReport:
        """Run the refresh; ``full`` computes all rows again, and ``False`` does not look at the costs."""
        decision = Decision("full", "full=True is set") if full else self.decide(backend, by_cost=full is None)
        self._record_time("changes")
        try:
            if decision.kind == "none":
                return self._report(decision, None, None, _Counts())
            if decision.kind == "incremental" and isinstance(self._program, Program) and self._snapshot is not None:
                try:
                    return self._incremental(self._program, decision, self._snapshot, backend)
                except NotMaintainableError as too_many:
                    decision = replace(decision, kind="full", reason=str(too_many))
                    self._wasted = time.time() - self._since_1970
                except UnsupportedError as problem:
                    decision = replace(decision, kind="full", reason=f"the engine cannot continue: {problem.message}")
                self._record_time("changes")
            return self._full(decision)
        finally:
            decision.changes.free()

    def _frames(self) -> dict[str, DataFrame]:
        """Return all rows of each source at its version."""
        return {name: table.read(snapshot.version).alias(name) for name, (table, snapshot) in self._sources.items()}

    def _full(self, decision: Decision) -> RefreshReport:
        frames, program = self._frames(), self._program
        whole = program.whole(frames)
        if self._snapshot is None and not self._target.is_path:
            create_empty(self._target, whole)
            self._snapshot = self._target.snapshot()
        self._record_time("fixpoint")
        writer = self._writer(decision, program.obstacle_after(whole))
        keeping = None
        if isinstance(program, Program):
            keeping = keeping_of_whole(self._spark, program, whole)
            whole = whole if keeping is None else program.whole(frames, keeping)
        try:
            commit = writer.create(whole) if self._snapshot is None else writer.overwrite(whole)
            self._record_time("write")
            if self._last is not None:
                forget(self._spark, self._last.record.id)
            run = report(whole)
            self._remember(writer.record, keeping, run)
        finally:
            if keeping is not None:
                keeping.free()
        return self._report(decision, commit, run, _Counts(int(commit.metrics.get("numOutputRows", 0))))

    def _remember(self, record: Record, keeping: Keeping | None, run: RunReport | None) -> None:
        if keeping is not None and run is not None:
            remember(self._spark, record.id, keeping, run.tuples)

    def _incremental(
        self, program: Program, decision: Decision, snapshot: Snapshot, backend: str | None
    ) -> RefreshReport:
        frames = self._frames()
        stored = self._target.read(snapshot.version).select(*map(quoted, program.columns))
        inserted, deleted = _net(decision.changes)
        engine = continuing_backend(self._spark, backend)
        can_keep = engine == "spark"
        continued = self._grown(program, stored, frames, inserted, deleted) if can_keep else None
        if continued is None:
            keeping = keeping_of(self._spark, program) if can_keep else None
            continued = continue_fixpoint(program, stored, frames, inserted, deleted, backend=engine, keeping=keeping)
        try:
            return self._commit(continued, decision)
        finally:
            continued.free()

    def _grown(
        self, program: Program, stored: DataFrame, frames: Frames, inserted: Frames, deleted: Frames
    ) -> Continuation | None:
        """Continue from the state that the last refresh has left; None if it left none, or it cannot be used."""
        last = None if self._last is None else self._last.record.id
        try:
            state = state_of(self._spark, program, last)
            self._is_from_state = True
            grown = grow_fixpoint(program, stored, frames, inserted, deleted, state)
        except StateLostError as why:
            self._is_from_state = False
            self._loaded = f"all rows: {why}"
            return None
        also = ", and all base rows, since none are kept" if deleted and not state.has_base else ""
        self._loaded = f"only changed rows{also}: the last refresh has kept its state"
        return grown

    def _commit(self, continued: Continuation, decision: Decision) -> RefreshReport:
        """Run the continued fixpoint and write the rows that differ from the stored ones."""
        writer = self._writer(decision, None)
        if continued.changed is None and not continued.has_fallen:
            return self._report(decision, writer.append(continued.stored.limit(0)), None, _Counts())
        changed = continued.materialized()
        try:
            difference, has_flag = continued.difference(changed)
            self._record_time("fixpoint")
            try:
                counts, commit = self._write(continued, writer, difference, has_flag=has_flag)
            finally:
                difference.free()
        finally:
            changed.free()
        self._record_time("write")
        run = None if continued.fixpoint is None else report(continued.fixpoint)
        self._remember(writer.record, continued.keeping, run)
        return self._report(decision, commit, run, counts)

    def _write(
        self, continued: Continuation, writer: Writer, difference: MaterializedRows, *, has_flag: bool
    ) -> tuple[_Counts, Commit]:
        """Write the changed rows; return the number of rows of each kind and the commit.

        Without changed rows, the commit has only the record with the consumed versions.
        """
        relation = continued.program.relation
        dependents = [d.column.name for d in relation.dependents]
        if difference.count == 0 or continued.has_only_new or not (dependents or has_flag):
            rows = difference.df.drop(REMOVED) if has_flag else difference.df
            return _Counts(difference.count), writer.append(rows)  # all are new: a set has no other changes
        keys = [k.name for k in relation.keys]
        tasks = tasks_of_merge(None if self._snapshot is None else self._snapshot.bytes, difference.count)
        commit = writer.merge(difference.df, keys, dependents, tasks=tasks, removed=REMOVED if has_flag else None)
        kinds = ("Inserted", "Updated", "Deleted")
        counts = (int(commit.metrics.get(f"numTargetRows{kind}", 0)) for kind in kinds)
        return _Counts(*counts), commit

    def _writer(self, decision: Decision, obstacle: str | None) -> Writer:
        snapshot = self._snapshot
        number = 0 if snapshot is None else snapshot.transactions.get(APPLICATION, -1) + 1
        record = Record(
            kind=decision.kind,
            reason=decision.reason,
            fingerprint=self._program.fingerprint,
            obstacle=obstacle,
            read=-1 if snapshot is None else snapshot.version,
            sources={name: Consumed(s.id, s.version, s.identities) for name, (_, s) in self._sources.items()},
            began=self._since_1970,
            wasted=self._wasted,
            has_deletes=decision.changes.has_deletes,
            from_state=self._is_from_state,
            costs=self._costs(),
        )
        return Writer(self._target, number, record)

    def _costs(self) -> Costs:
        """Return what earlier refreshes of this program cost."""
        if self._last is None or self._last.record.fingerprint != self._program.fingerprint:
            return Costs()
        return self._last.costs

    def _check_target(self) -> None:
        snapshot, columns = self._snapshot, self._program.columns
        if snapshot is None:
            if self._target.exists_as_something_else():
                raise self._bad_target("is not a Delta table", None)
            return
        if snapshot.columns != columns:
            expected = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            raise UsageError(
                "PARALAGG_DELTA_SCHEMA",
                f"the target has the columns {', '.join(f'{n} {t}' for n, t in snapshot.columns.items())}",
                value=snapshot.columns,
                place=f"target {self._target.place}",
                hint=f"use another target, or drop this one; the result has {expected}",
            )
        if not self._is_maintained and not self._target.read(snapshot.version).isEmpty():
            raise self._bad_target("has rows that no refresh wrote", snapshot.version)

    def _bad_target(self, problem: str, value: object) -> UsageError:
        return UsageError(
            "PARALAGG_DELTA_TARGET",
            f"the target {problem}, and a refresh would overwrite it",
            value=value,
            place=f"target {self._target.place}",
            hint="use another target, or drop or empty this one if its rows are not needed",
        )

    def _record_time(self, phase: str) -> None:
        now = time.perf_counter()
        self._seconds[phase] += now - self._began
        self._began = now

    def _report(
        self, decision: Decision, commit: Commit | None, run: RunReport | None, counts: _Counts
    ) -> RefreshReport:
        return RefreshReport(
            target=self._target.place,
            kind=decision.kind,
            reason=decision.reason,
            sources=self.versions,
            inserted=counts.inserted,
            updated=counts.updated,
            deleted=counts.deleted,
            seconds=dict(self._seconds),
            version=None if commit is None else commit.version,
            run=run,
            loaded=self._loaded if decision.kind == "incremental" else "",
        )


@dataclass(frozen=True)
class _Counts:
    """The numbers of rows that a commit wrote."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


def _net(changes: Changes) -> tuple[dict[str, DataFrame], dict[str, DataFrame]]:
    """Return inserted and deleted rows of each source, without the feed's own columns and without what cancels out.

    Duplicates count, for sums and for kept states. The rows are computed once, and freed with ``changes``.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

    def evaluated(rows: DataFrame) -> DataFrame:
        changes.net.append(materialize(rows, is_cheap=True))
        return changes.net[-1].df

    inserted, deleted = {}, {}
    for name, rows in changes.rows.items():
        plain = rows.df.drop(*CHANGE_COLUMNS)
        if changes.counts[name].keys() == {"insert"}:
            inserted[name] = plain
            continue
        kind = F.col(CHANGE_COLUMNS[0])
        sign = F.when(kind.isin("insert", "update_postimage"), F.lit(1)).otherwise(F.lit(-1))
        inserted[name], deleted[name] = net_changes(rows.df, sign, plain.columns, repeats=True, evaluated=evaluated)
    return inserted, deleted
