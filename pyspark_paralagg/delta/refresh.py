"""Run one refresh: read the target, decide, compute, write.

``view`` calls it, and it calls ``decide``, ``layers``, ``continuation`` and ``commit`` in this order:

    target and its record -> decide -> full: whole fixpoint -> overwrite
                                    -> incremental: continued fixpoint -> merge of the rows that differ

Of several layers, each is written before the next one begins, and the target last.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.delta.decide import Decision, decide
from pyspark_paralagg.delta.kept_table import KeptTable
from pyspark_paralagg.delta.layers import Layers, source_of
from pyspark_paralagg.delta.record import Consumed, Costs, Record
from pyspark_paralagg.delta.report import RefreshReport, SourceVersions
from pyspark_paralagg.delta.runs import Runs
from pyspark_paralagg.delta.tables import Table, companion_places
from pyspark_paralagg.delta.write import Counts, write_changes
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.maintenance.continuation import NotMaintainableError
from pyspark_paralagg.maintenance.program import continuing_backend
from pyspark_paralagg.maintenance.rows import MaterializedRows, one_run
from pyspark_paralagg.report.engine_report import report

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.delta.tables import Commit, Snapshot
    from pyspark_paralagg.delta.text import WholeText
    from pyspark_paralagg.maintenance.continuation import Continuation
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
        self._spark = spark
        self._program = program
        self._sources = sources
        self._seconds = dict.fromkeys(("changes", "fixpoint", "write"), 0.0)
        self._target = KeptTable(target, program.columns)
        self._last = self._target.last
        self._runs = Runs(spark, None if self._last is None else self._last.record.id)
        self._tables: dict[str, KeptTable] = {}
        if isinstance(program, Layers):
            relations = {name: r for name, r in program.relations.items() if name != program.target}
            for name, place in companion_places(target.place, relations).items():
                columns = {c.name: c.type for c in relations[name].columns}
                self._tables[name] = KeptTable(Table(spark, place), columns, companion_of=name)
            self._tables[program.target] = self._target

    @property
    def _companions(self) -> list[KeptTable]:
        return [table for table in self._tables.values() if table is not self._target]

    @property
    def versions(self) -> dict[str, SourceVersions]:
        """Return the consumed and the newest version of each source."""
        consumed = {} if self._last is None else self._last.record.sources
        return {
            name: SourceVersions(consumed[name].version if name in consumed else None, snapshot.version)
            for name, (_, snapshot) in self._sources.items()
        }

    @property
    def _has_news(self) -> bool:
        return any(v.consumed not in {None, v.newest} for v in self.versions.values())

    def decide(self, backend: str | None, *, with_rows: bool = True, by_cost: bool = True) -> Decision:
        """Return the kind of this refresh; ``with_rows`` is false if it will not run."""
        if not self._target.is_maintained:
            return Decision("full", "it is the first refresh")
        inputs = (self._spark, self._program, self._last, self._sources, backend)
        return decide(*inputs, companions=self._companions, with_rows=with_rows, by_cost=by_cost)

    def run(self, backend: str | None, *, full: bool | None) -> RefreshReport:
        """Run the refresh; ``full`` computes all rows again, and ``False`` does not look at the costs."""
        if full or not self._has_news:
            return self._run(backend, full=full)
        with self._target.loading():
            return self._run(backend, full=full)

    def _run(self, backend: str | None, *, full: bool | None) -> RefreshReport:
        decision = Decision("full", "full=True is set") if full else self.decide(backend, by_cost=full is None)
        self._record_time("changes")
        try:
            if decision.kind == "none":
                return self._report(decision, None, None, Counts())
            if decision.kind == "incremental" and isinstance(self._program, Layers):
                try:
                    return self._incremental(self._program, decision, backend)
                except NotMaintainableError as too_many:
                    decision = replace(decision, kind="full", reason=str(too_many))
                    self._wasted = time.time() - self._since_1970
                except UnsupportedError as problem:
                    decision = replace(decision, kind="full", reason=f"the engine cannot continue: {problem.message}")
                for table in self._companions:
                    table.reload()  # it may have written some before it gave up
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
        if isinstance(program, Layers):
            return self._full_layers(program, decision, frames)
        whole = program.whole(frames)
        self._record_time("fixpoint")
        commit = self._target.write_all(whole, self._record(decision, program.obstacle))
        self._record_time("write")
        return self._report(decision, commit, report(whole), Counts(_rows_of(commit)))

    def _full_layers(self, layers: Layers, decision: Decision, frames: dict[str, DataFrame]) -> RefreshReport:
        record, obstacle = self._record(decision, None), None
        try:
            for program in layers.programs:
                whole = self._runs.whole(program, frames)
                obstacle = obstacle or program.obstacle_after(next(iter(whole.values())))
                with one_run(whole):
                    self._record_time("fixpoint")
                    for name in _target_last(whole, layers.target):
                        table = self._tables[name]
                        commit = table.write_all(whole[name], replace(record, obstacle=obstacle))
                        frames[source_of(name)] = table.table.read(commit.version)
                    self._record_time("write")
            self._runs.remember(record.id)
        finally:
            self._runs.free()
        return self._report(decision, commit, report(whole[layers.target]), Counts(_rows_of(commit)))

    # --- incremental ---

    def _incremental(self, layers: Layers, decision: Decision, backend: str | None) -> RefreshReport:
        frames, changes = self._frames(), decision.changes.net_rows()
        engine, record = continuing_backend(self._spark, backend), self._record(decision, None)
        done: list[Continuation | MaterializedRows] = []
        try:
            for program in layers.programs:
                stored = {r.name: self._tables[r.name].read() for r in program.relations}
                continued = self._runs.continued(program, stored, frames, changes, engine)
                done += continued.values()
                record = replace(record, from_state=self._runs.are_from_state)
                for name in _target_last(continued, layers.target):
                    table, source = self._tables[name], source_of(name)
                    is_read = any(later.reads_some({source}) for later in layers.programs)
                    written = write_changes(continued[name], table, record, self._record_time, returns_changes=is_read)
                    frames[source] = table.table.read(written.commit.version)
                    done += written.changes
                    for changed, rows in zip(changes, written.changes, strict=False):
                        changed.update({source: rows.df} if rows.count else {})
            self._runs.remember(record.id)
            return self._report(decision, written.commit, written.run, written.counts)
        finally:
            for part in done:
                part.free()
            self._runs.free()

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
            has_deletes=decision.changes.has_deletes or bool(self._companions),
            from_state=self._runs.are_from_state,
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
        self, decision: Decision, commit: Commit | None, run: RunReport | None, counts: Counts
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
            loaded=self._runs.loaded if decision.kind == "incremental" else "",
        )


def _target_last(relations: Iterable[str], target: str) -> list[str]:
    """Return the names, companions first: a target whose companions are older would not be noticed."""
    return sorted(relations, key=target.__eq__)


def _rows_of(commit: Commit) -> int:
    return int(commit.metrics.get("numOutputRows", 0))
