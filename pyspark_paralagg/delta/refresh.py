"""Run one refresh: read the target, decide, compute, write.

``view`` calls it, and it calls ``decide``, ``layers``, ``continuation`` and ``commit`` in this order:

    target and its record -> decide -> full: whole fixpoint -> overwrite
                                    -> incremental: continued fixpoint -> merge of the rows that differ

Of several layers, each is written before the next one begins, and the target last.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.backends.kept import StateLostError
from pyspark_paralagg.delta.commit import tasks_of_merge
from pyspark_paralagg.delta.decide import Decision, decide
from pyspark_paralagg.delta.kept_table import KeptTable
from pyspark_paralagg.delta.layers import Layers, source_of
from pyspark_paralagg.delta.record import Consumed, Costs, Record
from pyspark_paralagg.delta.report import RefreshReport, SourceVersions
from pyspark_paralagg.delta.states import forget, keeping_of, keeping_of_whole, remember, state_of
from pyspark_paralagg.delta.tables import CHANGE_COLUMNS, Table, companion_place
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.maintenance.continuation import (
    REMOVED,
    Continuation,
    NotMaintainableError,
    continue_fixpoint,
    grow_fixpoint,
)
from pyspark_paralagg.maintenance.net import net_changes
from pyspark_paralagg.maintenance.program import continuing_backend
from pyspark_paralagg.maintenance.rows import MaterializedRows, materialize, one_run
from pyspark_paralagg.report.engine_report import report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.kept import Keeping
    from pyspark_paralagg.delta.commit import Writer
    from pyspark_paralagg.delta.decide import Changes
    from pyspark_paralagg.delta.tables import Commit, Snapshot
    from pyspark_paralagg.delta.text import WholeText
    from pyspark_paralagg.maintenance.program import Program
    from pyspark_paralagg.maintenance.recursion import Frames
    from pyspark_paralagg.report.run_report import RunReport


class Refresh:
    """One refresh: a program, its sources at fixed versions, and the target at the version that it had before."""

    def __init__(
        self,
        spark: SparkSession,
        target: Table,
        program: Layers | WholeText,
        sources: Mapping[str, tuple[Table, Snapshot]],
        began: float,
    ) -> None:
        self._began = began
        self._since_1970 = time.time() - (time.perf_counter() - began)
        self._wasted = 0.0
        self._loaded = ""
        self._is_from_state = False
        self._spark = spark
        self._program = program
        self._sources = sources
        self._seconds = dict.fromkeys(("changes", "fixpoint", "write"), 0.0)
        self._target = KeptTable(target, program.columns)
        self._last = self._target.last
        self._tables: dict[str, KeptTable] = {}
        if isinstance(program, Layers):
            for name, relation in program.relations.items():
                columns = {c.name: c.type for c in relation.columns}
                place = Table(spark, companion_place(target.place, name))
                self._tables[name] = self._target if name == program.target else KeptTable(place, columns)

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
        if not self._target.is_maintained:
            return Decision("full", "it is the first refresh")
        companions = [table for table in self._tables.values() if table is not self._target]
        inputs = (self._spark, self._program, self._last, self._sources, backend)
        return decide(*inputs, companions=companions, with_rows=with_rows, by_cost=by_cost)

    def run(self, backend: str | None, *, full: bool | None) -> RefreshReport:
        """Run the refresh; ``full`` computes all rows again, and ``False`` does not look at the costs."""
        decision = Decision("full", "full=True is set") if full else self.decide(backend, by_cost=full is None)
        self._record_time("changes")
        try:
            if decision.kind == "none":
                return self._report(decision, None, None, _Counts())
            if decision.kind == "incremental" and isinstance(self._program, Layers):
                try:
                    return self._incremental(self._program, decision, backend)
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

    # --- full ---

    def _full(self, decision: Decision) -> RefreshReport:
        frames, program = self._frames(), self._program
        if isinstance(program, Layers) and program.single is None:
            return self._full_layers(program, decision, frames)
        whole = program.whole(frames)
        obstacle, keeping = program.obstacle, None
        if isinstance(program, Layers) and program.single is not None:
            obstacle = program.single.obstacle_after(whole)
            keeping = keeping_of_whole(self._spark, program.single, whole)
            whole = whole if keeping is None else program.single.whole(frames, keeping)[program.target]
        self._record_time("fixpoint")
        record = self._record(decision, obstacle)
        try:
            commit = self._target.write_all(whole, record)
            self._record_time("write")
            if self._last is not None:
                forget(self._spark, self._last.record.id)
            run = report(whole)
            self._remember(record, keeping, run)
        finally:
            if keeping is not None:
                keeping.free()
        return self._report(decision, commit, run, _Counts(int(commit.metrics.get("numOutputRows", 0))))

    def _full_layers(self, layers: Layers, decision: Decision, frames: dict[str, DataFrame]) -> RefreshReport:
        record, obstacle = self._record(decision, None), None
        for table in self._tables.values():
            table.reload()  # an incremental refresh may have written it before it gave up
        for program in layers.programs:
            whole = program.whole(frames)
            obstacle = obstacle or program.obstacle_after(next(iter(whole.values())))
            with one_run(whole):
                self._record_time("fixpoint")
                for name in _target_last(whole, layers.target):
                    table = self._tables[name]
                    commit = table.write_all(whole[name], replace(record, obstacle=obstacle))
                    frames[source_of(name)] = table.table.read(commit.version)
                self._record_time("write")
        counts = _Counts(int(commit.metrics.get("numOutputRows", 0)))
        return self._report(decision, commit, report(whole[layers.target]), counts)

    # --- incremental ---

    def _incremental(self, layers: Layers, decision: Decision, backend: str | None) -> RefreshReport:
        frames, (inserted, deleted) = self._frames(), _net(decision.changes)
        engine, single = continuing_backend(self._spark, backend), layers.single
        if single is None:
            return self._incremental_layers(layers, decision, frames, (inserted, deleted), engine)
        stored = self._target.read()
        can_keep = engine == "spark"
        continued = self._grown(single, stored, frames, inserted, deleted) if can_keep else None
        if continued is None:
            keeping = keeping_of(self._spark, single) if can_keep else None
            rows = {layers.target: stored}
            run = continue_fixpoint(single, rows, frames, inserted, deleted, backend=engine, keeping=keeping)
            continued = run[layers.target]
        record = self._record(decision, None)
        try:
            written = self._write(continued, self._target, record)
            self._remember(record, continued.keeping, written.run)
            return self._report(decision, written.commit, written.run, written.counts)
        finally:
            continued.free()

    def _incremental_layers(
        self,
        layers: Layers,
        decision: Decision,
        frames: dict[str, DataFrame],
        changes: tuple[dict[str, DataFrame], dict[str, DataFrame]],
        engine: str | None,
    ) -> RefreshReport:
        (inserted, deleted), record = changes, self._record(decision, None)
        done: list[Continuation | MaterializedRows] = []
        try:
            for program in layers.programs:
                stored = {r.name: self._tables[r.name].read() for r in program.relations}
                if program.reads_some({*inserted, *deleted}):
                    continued = continue_fixpoint(program, stored, frames, inserted, deleted, backend=engine)
                else:
                    continued = {r.name: Continuation(r, stored[r.name], None) for r in program.relations}
                done += continued.values()
                for name in _target_last(continued, layers.target):
                    table = self._tables[name]
                    written = self._write(continued[name], table, record, returns_changes=name != layers.target)
                    source = source_of(name)
                    frames[source] = table.table.read(written.commit.version)
                    done += written.changes
                    for changed, rows in zip((inserted, deleted), written.changes, strict=False):
                        changed.update({source: rows.df} if rows.count else {})
            return self._report(decision, written.commit, written.run, written.counts)
        finally:
            for part in done:
                part.free()

    def _grown(
        self, program: Program, stored: DataFrame, frames: Frames, inserted: Frames, deleted: Frames
    ) -> Continuation | None:
        """Continue from the state that the last refresh has left; None if it left none, or it cannot be used."""
        last = None if self._last is None else self._last.record.id
        try:
            state = state_of(self._spark, program, last, {*inserted, *deleted})
            self._is_from_state = True
            grown = grow_fixpoint(program, stored, frames, inserted, deleted, state)
        except StateLostError as why:
            self._is_from_state = False
            self._loaded = f"all rows: {why}"
            return None
        also = ", and all base rows, since none are kept" if deleted and not state.has_base else ""
        self._loaded = f"only changed rows{also}: the last refresh has kept its state"
        return grown

    def _remember(self, record: Record, keeping: Keeping | None, run: RunReport | None) -> None:
        if keeping is not None and run is not None:
            remember(self._spark, record.id, keeping, run.tuples)

    def _write(
        self, continued: Continuation, table: KeptTable, record: Record, *, returns_changes: bool = False
    ) -> _Written:
        """Run the continued fixpoint and write the rows of ``table`` that differ.

        Without changed rows, the commit has only the record with the consumed versions. ``returns_changes``: the result
        has the rows that came and those that went, for its reader to free.
        """
        writer = table.writer(record)
        if continued.changed is None and not continued.has_fallen:
            return _Written(writer.append(continued.stored.limit(0)))
        changed = continued.materialized()
        try:
            difference, has_flag = continued.difference(changed)
            self._record_time("fixpoint")
            try:
                counts, commit = self._write_difference(continued, table, writer, difference, has_flag=has_flag)
                changes = continued.changes(difference.df, has_flag=has_flag) if returns_changes else ()
            finally:
                difference.free()
        finally:
            changed.free()
        self._record_time("write")
        run = None if continued.fixpoint is None else report(continued.fixpoint)
        return _Written(commit, counts, run, changes)

    @staticmethod
    def _write_difference(
        continued: Continuation, table: KeptTable, writer: Writer, difference: MaterializedRows, *, has_flag: bool
    ) -> tuple[_Counts, Commit]:
        """Write the changed rows; return the number of rows of each kind and the commit."""
        relation = continued.relation
        dependents = [d.column.name for d in relation.dependents]
        if difference.count == 0 or continued.has_only_new or not (dependents or has_flag):
            rows = difference.df.drop(REMOVED) if has_flag else difference.df
            return _Counts(difference.count), writer.append(rows)  # all are new: a set has no other changes
        keys = [k.name for k in relation.keys]
        tasks = tasks_of_merge(None if table.snapshot is None else table.snapshot.bytes, difference.count)
        commit = writer.merge(difference.df, keys, dependents, tasks=tasks, removed=REMOVED if has_flag else None)
        kinds = ("Inserted", "Updated", "Deleted")
        counts = (int(commit.metrics.get(f"numTargetRows{kind}", 0)) for kind in kinds)
        return _Counts(*counts), commit

    def _record(self, decision: Decision, obstacle: str | None) -> Record:
        return Record(
            kind=decision.kind,
            reason=decision.reason,
            fingerprint=self._program.fingerprint,
            obstacle=obstacle,
            read=self._target.version,
            sources={name: Consumed(s.id, s.version, s.identities) for name, (_, s) in self._sources.items()},
            began=self._since_1970,
            wasted=self._wasted,
            has_deletes=decision.changes.has_deletes,
            from_state=self._is_from_state,
            costs=self._costs(),
        )

    def _costs(self) -> Costs:
        """Return what earlier refreshes of this program cost."""
        if self._last is None or self._last.record.fingerprint != self._program.fingerprint:
            return Costs()
        return self._last.costs

    def _record_time(self, phase: str) -> None:
        now = time.perf_counter()
        self._seconds[phase] += now - self._began
        self._began = now

    def _report(
        self, decision: Decision, commit: Commit | None, run: RunReport | None, counts: _Counts
    ) -> RefreshReport:
        return RefreshReport(
            target=self._target.table.place,
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


@dataclass(frozen=True)
class _Written:
    """A commit, the numbers of its rows, and the report of the recursion that computed them."""

    commit: Commit
    counts: _Counts = _Counts()
    run: RunReport | None = None
    changes: tuple[MaterializedRows, ...] = ()


def _target_last(relations: Iterable[str], target: str) -> list[str]:
    """Return the names, companions first: a target whose companions are older would not be noticed."""
    return sorted(relations, key=target.__eq__)


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
