"""Write what a continued fixpoint changes in one table: append new rows, or merge them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.delta.commit import tasks_of_merge
from pyspark_paralagg.maintenance.continuation import REMOVED
from pyspark_paralagg.report.engine_report import report

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.delta.kept_table import KeptTable
    from pyspark_paralagg.delta.record import Record
    from pyspark_paralagg.delta.tables import Commit
    from pyspark_paralagg.maintenance.continuation import Continuation
    from pyspark_paralagg.maintenance.rows import MaterializedRows
    from pyspark_paralagg.report.run_report import RunReport


@dataclass(frozen=True)
class Counts:
    """The numbers of rows that a commit wrote."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class Written:
    """A commit, the numbers of its rows, and the report of the recursion that computed them.

    ``changes`` are the rows that came and those that went, if they were asked for; their reader frees them.
    """

    commit: Commit
    counts: Counts = Counts()
    run: RunReport | None = None
    changes: tuple[MaterializedRows, ...] = ()


def write_changes(
    continued: Continuation,
    table: KeptTable,
    record: Record,
    record_time: Callable[[str], None],
    *,
    returns_changes: bool = False,
) -> Written:
    """Run the continued fixpoint and write the rows of ``table`` that differ; ``record_time`` gets each phase's end.

    Without changed rows, the commit has only the record with the consumed versions.
    """
    if continued.changed is None and not continued.has_fallen:
        return Written(table.writer(record).append(continued.stored.limit(0)))
    changed = continued.materialized()
    try:
        difference, has_flag = continued.difference(changed)
        record_time("fixpoint")
        try:
            counts, commit = _write(continued, table, record, difference, has_flag=has_flag)
            changes = continued.changes(difference.df, has_flag=has_flag) if returns_changes else ()
        finally:
            difference.free()
    finally:
        changed.free()
    record_time("write")
    run = None if continued.fixpoint is None else report(continued.fixpoint)
    return Written(commit, counts, run, changes)


def _write(
    continued: Continuation, table: KeptTable, record: Record, difference: MaterializedRows, *, has_flag: bool
) -> tuple[Counts, Commit]:
    """Return the number of rows of each kind and the commit."""
    relation, writer = continued.relation, table.writer(record)
    dependents = [d.column.name for d in relation.dependents]
    if difference.count == 0 or continued.has_only_new or not (dependents or has_flag):
        rows = difference.df.drop(REMOVED) if has_flag else difference.df
        return Counts(difference.count), writer.append(rows)  # all are new: a set has no other changes
    keys = [k.name for k in relation.keys]
    tasks = tasks_of_merge(None if table.snapshot is None else table.snapshot.bytes, difference.count)
    removed, adds = (REMOVED if has_flag else None), continued.new_keys != 0
    commit = writer.merge(difference.df, keys, dependents, tasks=tasks, removed=removed, adds=adds)
    kinds = ("Inserted", "Updated", "Deleted")
    counts = (int(commit.metrics.get(f"numTargetRows{kind}", 0)) for kind in kinds)
    return Counts(*counts), commit
