"""Run one refresh: read the target, decide, compute, write.

``view`` calls it, and it calls ``decide``, ``program`` and ``commit`` in this order:

    target and its record -> decide -> full: whole fixpoint -> overwrite
                                    -> incremental: candidates -> continued fixpoint -> merge of the changed rows
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.delta.commit import Writer, create_empty
from pyspark_paralagg.delta.decide import Decision, decide
from pyspark_paralagg.delta.program import Program
from pyspark_paralagg.delta.record import APPLICATION, Consumed, Record, last_refresh
from pyspark_paralagg.delta.report import RefreshReport, SourceVersions
from pyspark_paralagg.delta.rows import materialize
from pyspark_paralagg.delta.tables import CHANGE_COLUMNS
from pyspark_paralagg.errors import UnsupportedError, UsageError
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.report.engine_report import report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.delta.decide import Changes
    from pyspark_paralagg.delta.record import LastRefresh
    from pyspark_paralagg.delta.rows import MaterializedRows
    from pyspark_paralagg.delta.tables import Commit, Snapshot, Table
    from pyspark_paralagg.delta.text import WholeText
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

    def decide(self, backend: str | None, *, with_rows: bool = True) -> Decision:
        """Return the kind of this refresh; ``with_rows`` is false if it will not run."""
        if not self._is_maintained:
            return Decision("full", "it is the first refresh")
        return decide(self._spark, self._program, self._last, self._sources, backend, with_rows=with_rows)

    @property
    def _is_maintained(self) -> bool:
        """Return whether a refresh has written the target before."""
        return self._snapshot is not None and APPLICATION in self._snapshot.transactions

    def run(self, backend: str | None, *, full: bool) -> RefreshReport:
        """Run the refresh; ``full`` computes all rows again."""
        decision = Decision("full", "full=True is set") if full else self.decide(backend)
        self._record_time("changes")
        try:
            if decision.kind == "none":
                return self._report(decision, None, None, 0, 0)
            if decision.kind == "incremental" and isinstance(self._program, Program) and self._snapshot is not None:
                try:
                    return self._incremental(self._program, decision, self._snapshot)
                except UnsupportedError as problem:
                    decision = replace(decision, kind="full", reason=f"the engine cannot continue: {problem.message}")
            return self._full(decision)
        finally:
            decision.changes.free()

    def _frames(self) -> dict[str, DataFrame]:
        """Return all rows of each source at its version."""
        return {name: table.read(snapshot.version).alias(name) for name, (table, snapshot) in self._sources.items()}

    def _full(self, decision: Decision) -> RefreshReport:
        frames = self._frames()
        whole = self._program.whole(frames)
        if self._snapshot is None and not self._target.is_path:
            create_empty(self._target, whole)
            self._snapshot = self._target.snapshot()
        self._record_time("fixpoint")
        writer = self._writer(decision, self._program.obstacle_after(whole))
        commit = writer.create(whole) if self._snapshot is None else writer.overwrite(whole)
        self._record_time("write")
        return self._report(decision, commit, report(whole), int(commit.metrics.get("numOutputRows", 0)), 0)

    def _incremental(self, program: Program, decision: Decision, snapshot: Snapshot) -> RefreshReport:
        frames = self._frames()
        stored = self._target.read(snapshot.version).select(*map(quoted, program.columns))
        candidates = program.candidates(_inserted(decision.changes), frames, stored)
        writer = self._writer(decision, None)
        if candidates is None:
            return self._report(decision, writer.append(stored.limit(0)), None, 0, 0)
        fixpoint = program.changes(candidates, frames, stored)
        changed = materialize(fixpoint)
        self._record_time("fixpoint")
        try:
            inserted, updated, commit = self._write(program, writer, changed)
        finally:
            changed.free()
        self._record_time("write")
        return self._report(decision, commit, report(fixpoint), inserted, updated)

    def _write(self, program: Program, writer: Writer, changed: MaterializedRows) -> tuple[int, int, Commit]:
        """Write the changed rows; return the number of inserted and updated rows and the commit.

        Without changed rows, the commit has only the record with the consumed versions.
        """
        dependents = [d.column.name for d in program.relation.dependents]
        if not dependents or changed.count == 0:
            return changed.count, 0, writer.append(changed.df)  # a changed row of a set is always new
        commit = writer.merge(changed.df, [k.name for k in program.relation.keys], dependents)
        inserted, updated = (int(commit.metrics.get(f"numTargetRows{kind}", 0)) for kind in ("Inserted", "Updated"))
        return inserted, updated, commit

    def _writer(self, decision: Decision, obstacle: str | None) -> Writer:
        snapshot = self._snapshot
        number = 0 if snapshot is None else snapshot.transactions.get(APPLICATION, -1) + 1
        record = Record(
            kind=decision.kind,
            reason=decision.reason,
            fingerprint=self._program.fingerprint,
            obstacle=obstacle,
            read=-1 if snapshot is None else snapshot.version,
            sources={name: Consumed(s.id, s.version, s.columns) for name, (_, s) in self._sources.items()},
        )
        return Writer(self._target, number, record)

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
        self, decision: Decision, commit: Commit | None, run: RunReport | None, inserted: int, updated: int
    ) -> RefreshReport:
        return RefreshReport(
            target=self._target.place,
            kind=decision.kind,
            reason=decision.reason,
            sources=self.versions,
            inserted=inserted,
            updated=updated,
            seconds=dict(self._seconds),
            version=None if commit is None else commit.version,
            run=run,
        )


def _inserted(changes: Changes) -> dict[str, DataFrame]:
    """Return the new rows of each source, without the feed's own columns."""
    return {name: rows.df.drop(*CHANGE_COLUMNS) for name, rows in changes.rows.items()}
