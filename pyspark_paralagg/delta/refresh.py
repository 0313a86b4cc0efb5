"""One refresh: the target as it is found, what is to be done, and doing it.

Between ``view``, which calls it, and ``decide``, ``program`` and ``commit``, which it calls in this order:

    target and its record -> decide -> full: whole fixpoint -> overwrite
                                    -> incremental: candidates -> continued fixpoint -> merge of what changed
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
from pyspark_paralagg.delta.rows import keep
from pyspark_paralagg.delta.tables import CHANGE_COLUMNS
from pyspark_paralagg.errors import UnsupportedError, UsageError
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.report.engine_report import report

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.delta.decide import Changes
    from pyspark_paralagg.delta.record import Last
    from pyspark_paralagg.delta.rows import Kept
    from pyspark_paralagg.delta.tables import Commit, Snapshot, Table
    from pyspark_paralagg.delta.text import WholeText
    from pyspark_paralagg.report.run_report import RunReport


class Refresh:
    """One refresh: a program, its sources at one moment, and the target as it was found."""

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
        self._found = target.snapshot()
        self._last: Last | None = None
        self._seconds = dict.fromkeys(("changes", "fixpoint", "write"), 0.0)
        if self._found is not None and self._is_ours:
            self._last = last_refresh(target, self._found.version)
        self._check_target()

    @property
    def versions(self) -> dict[str, SourceVersions]:
        """Of each source, what is consumed and what is there."""
        known = {} if self._last is None else self._last.record.sources
        return {
            name: SourceVersions(known[name].version if name in known else None, snapshot.version)
            for name, (_, snapshot) in self._sources.items()
        }

    def decide(self, backend: str | None, *, keeps: bool = True) -> Decision:
        """What to do; without ``keeps`` to be told only, not to be done."""
        if not self._is_ours:
            return Decision("full", "it is the first refresh")
        return decide(self._spark, self._program, self._last, self._sources, backend, keeps=keeps)

    @property
    def _is_ours(self) -> bool:
        """Whether a refresh has written the target before."""
        return self._found is not None and APPLICATION in self._found.transactions

    def run(self, backend: str | None, *, full: bool) -> RefreshReport:
        """Does it, or all anew."""
        decision = Decision("full", "it was asked for") if full else self.decide(backend)
        self._took("changes")
        try:
            if decision.kind == "none":
                return self._reported(decision, None, None, 0, 0)
            if decision.kind == "incremental" and isinstance(self._program, Program) and self._found is not None:
                try:
                    return self._incremental(self._program, decision, self._found)
                except UnsupportedError as problem:
                    decision = replace(decision, kind="full", reason=f"the engine cannot go on: {problem.message}")
            return self._full(decision)
        finally:
            decision.changes.free()

    def _frames(self) -> dict[str, DataFrame]:
        """All rows of each source, as of this refresh."""
        return {name: table.read(snapshot.version).alias(name) for name, (table, snapshot) in self._sources.items()}

    def _full(self, decision: Decision) -> RefreshReport:
        frames = self._frames()
        whole = self._program.whole(frames)
        if self._found is None and not self._target.is_path:
            create_empty(self._target, whole)
            self._found = self._target.snapshot()
        self._took("fixpoint")
        writer = self._writer(decision, self._program.unfit(whole))
        commit = writer.create(whole) if self._found is None else writer.overwrite(whole)
        self._took("write")
        return self._reported(decision, commit, report(whole), int(commit.metrics.get("numOutputRows", 0)), 0)

    def _incremental(self, program: Program, decision: Decision, found: Snapshot) -> RefreshReport:
        frames = self._frames()
        stored = self._target.read(found.version).select(*map(quoted, program.columns))
        candidates = program.candidates(_inserted(decision.changes), frames, stored)
        writer = self._writer(decision, None)
        if candidates is None:
            return self._reported(decision, writer.append(stored.limit(0)), None, 0, 0)
        fixpoint = program.changes(candidates, frames, stored)
        changed = keep(fixpoint)
        self._took("fixpoint")
        try:
            inserted, updated, commit = self._written(program, writer, changed)
        finally:
            changed.free()
        self._took("write")
        return self._reported(decision, commit, report(fixpoint), inserted, updated)

    def _written(self, program: Program, writer: Writer, changed: Kept) -> tuple[int, int, Commit]:
        """Inserted, updated, and the commit; without a changed row it has the consumed versions alone."""
        dependents = [d.column.name for d in program.relation.dependents]
        if not dependents or changed.count == 0:
            return changed.count, 0, writer.append(changed.df)  # rows of a set are new, if they are there at all
        commit = writer.merge(changed.df, [k.name for k in program.relation.keys], dependents)
        told = [int(commit.metrics.get(f"numTargetRows{what}", 0)) for what in ("Inserted", "Updated")]
        return told[0], told[1], commit

    def _writer(self, decision: Decision, obstacle: str | None) -> Writer:
        found = self._found
        number = 0 if found is None else found.transactions.get(APPLICATION, -1) + 1
        record = Record(
            kind=decision.kind,
            reason=decision.reason,
            fingerprint=self._program.fingerprint,
            obstacle=obstacle,
            read=-1 if found is None else found.version,
            sources={name: Consumed(s.id, s.version, s.columns) for name, (_, s) in self._sources.items()},
        )
        return Writer(self._target, number, record)

    def _check_target(self) -> None:
        found, columns = self._found, self._program.columns
        if found is None:
            if self._target.exists_as_something_else():
                raise self._bad_target("is no Delta table", None)
            return
        if found.columns != columns:
            wanted = ", ".join(f"{name} {kind}" for name, kind in columns.items())
            raise UsageError(
                "PARALAGG_DELTA_SCHEMA",
                f"the target has the columns {', '.join(f'{n} {t}' for n, t in found.columns.items())}",
                value=found.columns,
                place=f"target {self._target.place}",
                hint=f"the result has {wanted}: take another target, or drop this one",
            )
        if not self._is_ours and not self._target.read(found.version).isEmpty():
            raise self._bad_target("has rows that no refresh wrote", found.version)

    def _bad_target(self, what: str, value: object) -> UsageError:
        return UsageError(
            "PARALAGG_DELTA_TARGET",
            f"the target {what}, and would be overwritten",
            value=value,
            place=f"target {self._target.place}",
            hint="take another target, or drop or empty this one if its rows are not needed",
        )

    def _took(self, phase: str) -> None:
        now = time.perf_counter()
        self._seconds[phase] += now - self._began
        self._began = now

    def _reported(
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
    """The new rows of each source, without the feed's own columns."""
    return {name: rows.df.drop(*CHANGE_COLUMNS) for name, rows in changes.rows.items()}
