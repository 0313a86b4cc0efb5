"""Decide whether the next refresh is full, incremental or none, with the first reason for it.

``refresh`` calls it with the state of ``tables`` and ``record``. The checks are ordered by cost: the record, the
sources' versions, their change feeds, then the program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_paralagg.delta.changes import KIND, Changes
from pyspark_paralagg.delta.layers import Layers
from pyspark_paralagg.delta.states import has_state
from pyspark_paralagg.maintenance.net import unsupported_columns
from pyspark_paralagg.maintenance.program import continuing_backend
from pyspark_paralagg.maintenance.rows import count_values, materialize
from pyspark_paralagg.session.condition import condition_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

    from pyspark_paralagg.delta.kept_table import KeptTable
    from pyspark_paralagg.delta.record import Consumed, LastRefresh
    from pyspark_paralagg.delta.report import Kind
    from pyspark_paralagg.delta.tables import Snapshot, Table
    from pyspark_paralagg.delta.text import WholeText


@dataclass(frozen=True)
class Decision:
    """The kind of the next refresh, its reason, and the changes that were read."""

    kind: Kind
    reason: str
    changes: Changes = field(default_factory=Changes)


class _FullRefresh(Exception):  # noqa: N818 - the reason for a full refresh, not an error
    """The reason why a refresh has to be full."""


def decide(  # noqa: PLR0913 - all inputs of a decision
    spark: SparkSession,
    program: Layers | WholeText,
    last: LastRefresh | None,
    sources: Mapping[str, tuple[Table, Snapshot]],
    backend: str | None,
    *,
    companions: Sequence[KeptTable] = (),
    with_rows: bool = True,
    by_cost: bool = True,
) -> Decision:
    """Decide on a refresh of ``sources`` after the refresh ``last``. Reads no rows except those of change feeds.

    ``companions`` are the tables of relations that are kept beside the target.
    ``with_rows`` materializes the new rows if the refresh can be incremental; otherwise they are only counted.
    ``by_cost``: deletes, and changes of several recursions, are not maintained if that took much longer than a full
    refresh.
    """
    changes = Changes()
    try:
        last = _require_record(last)
        _check_record(program, last, {name: snapshot for name, (_, snapshot) in sources.items()})
        _check_companions(last, companions)
        obstacle = _obstacle(spark, program, last, backend)
        newer = {n: (t, s) for n, (t, s) in sources.items() if s.version > last.record.sources[n].version}
        for name, (table, snapshot) in newer.items():
            is_needed = with_rows and obstacle is None
            _read_feed(name, table, last.record.sources[name], snapshot, changes, with_rows=is_needed)
        if not any(changes.counts.values()):
            reason = "no source has new rows" if newer else "no source has a new version"
            return Decision("none", reason, changes)
        _check_program(program, obstacle, changes)
        single = program.single if isinstance(program, Layers) else None
        if by_cost and (changes.has_deletes or single is None):
            from_state = isinstance(program, Layers) and all(
                has_state(spark, part, last.record.id, changed) for part, changed in program.reading(changes.sources)
            )
            _check_costs(last.costs.full, last.costs.from_state if from_state else last.costs.deletes)
        _check_types(program, changes, {name: snapshot for name, (_, snapshot) in sources.items()})
    except _FullRefresh as reason:
        return Decision("full", str(reason), changes)
    except BaseException:
        changes.free()
        raise
    exactness = program.exactness if isinstance(program, Layers) else ""
    return Decision("incremental", _summary(changes) + exactness, changes)


def other_rows(program: Layers | WholeText, last: LastRefresh | None, sources: Mapping[str, Snapshot]) -> str | None:
    """Return why the table may have other rows than ``program`` over the versions that ``last`` has read."""
    try:
        _check_record(program, _require_record(last), sources)
    except _FullRefresh as reason:
        return str(reason)
    return None


def _require_record(last: LastRefresh | None) -> LastRefresh:
    if last is None:
        raise _FullRefresh("the table's log has no record of its last refresh")
    return last


def _check_record(program: Layers | WholeText, last: LastRefresh, sources: Mapping[str, Snapshot]) -> None:
    for name, snapshot in sources.items():
        consumed = last.record.sources.get(name)
        if consumed is None:
            break  # another program
        if consumed.id != snapshot.id:
            raise _FullRefresh(f"the source {name} was replaced by another table since the last refresh")
        if consumed.version > snapshot.version:
            raise _FullRefresh(f"the source {name} was restored from version {consumed.version} to {snapshot.version}")
        if consumed.columns != snapshot.identities:
            raise _FullRefresh(f"the source {name} has other columns than at version {consumed.version}")
    if last.record.fingerprint != program.fingerprint or last.record.sources.keys() != sources.keys():
        raise _FullRefresh("the program has changed since the last refresh")
    if last.foreign is not None:
        writer = f"{last.foreign.operation} in version {last.foreign.version}"
        raise _FullRefresh(f"another writer changed the table: {writer}")
    if program.unstable is not None:
        raise _FullRefresh(program.unstable)


def _check_companions(last: LastRefresh, companions: Sequence[KeptTable]) -> None:
    for table in companions:
        theirs = table.last
        if theirs is None or theirs.record.id != last.record.id:
            raise _FullRefresh(f"the companion table {table.table.place} is not that of the last refresh")
        if theirs.foreign is not None:
            writer = f"{theirs.foreign.operation} in version {theirs.foreign.version}"
            raise _FullRefresh(f"another writer changed the companion table {table.table.place}: {writer}")


def _read_feed(  # noqa: PLR0913 - the source, its versions, and the output
    name: str, table: Table, consumed: Consumed, snapshot: Snapshot, changes: Changes, *, with_rows: bool
) -> None:
    """Read the change feed of a source into ``changes``."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - pyspark is optional
    from pyspark.errors import PySparkException  # noqa: PLC0415 - likewise

    first = consumed.version + 1
    if not snapshot.has_change_feed:
        raise _FullRefresh(f"the source {name} has no change feed (delta.enableChangeDataFeed)")
    try:
        feed = table.changes(first, snapshot.version)
        if with_rows:
            changes.rows[name] = rows = materialize(feed, is_cheap=True)
            changes.counts[name] = rows.counts(KIND) if rows.count else {}
            if not rows.count:
                changes.rows.pop(name).free()
        else:
            changes.counts[name] = count_values(feed, KIND)
    except (PySparkException, Py4JJavaError) as problem:
        condition = condition_of(problem)
        if not condition.startswith(_UNREADABLE):
            raise
        versions = f"version {first}" if first == snapshot.version else f"versions {first} to {snapshot.version}"
        raise _FullRefresh(f"the change feed of {name} cannot be read for {versions}: {condition}") from problem


def _summary(changes: Changes) -> str:
    """Return the numbers of changed rows by source, as the reason for an incremental refresh."""
    changed = {name: counts for name, counts in changes.counts.items() if counts}
    if all(counts.keys() == {"insert"} for counts in changed.values()):
        inserts = ", ".join(f"{counts['insert']:,} into {name}" for name, counts in changed.items())
        return f"the sources had only inserts: {inserts}"
    rows = (
        f"{', '.join(f'{n:,} {_WORDS[kind]}' for kind, n in sorted(counts.items()) if kind in _WORDS)} in {name}"
        for name, counts in changed.items()
    )
    return f"the changes can be maintained: {'; '.join(rows)}"


def _check_types(program: Layers | WholeText, changes: Changes, snapshots: Mapping[str, Snapshot]) -> None:
    for name, counts in changes.counts.items():
        is_negated = bool(counts) and isinstance(program, Layers) and program.rejects({name})
        is_compared = is_negated or counts.keys() - {"insert"}
        reason = unsupported_columns(name, snapshots[name].schema) if is_compared else None
        if reason is not None:
            raise _FullRefresh(reason)


_FACTOR, _SLACK = 1.2, 2.0
"""Times of small tables on a busy machine differ less than that."""


def costs_more(deletes: float | None, full: float | None) -> bool:
    """Return whether ``deletes`` took ``_FACTOR`` times as long as a ``full`` refresh, and ``_SLACK`` s more."""
    return full is not None and deletes is not None and deletes > _FACTOR * full + _SLACK


def _check_costs(full: float | None, deletes: float | None) -> None:
    if costs_more(deletes, full):
        times = f"{full:.1f} s for all rows, {deletes:.1f} s for the changes of an earlier one"
        raise _FullRefresh(f"a full refresh costs less: {times} (full=False maintains them anyway)")


_UNREADABLE = ("DELTA_", "FAILED_READ_FILE", "_LEGACY_ERROR_TEMP_2055")
"""Prefixes of conditions for a feed that is missing, vacuumed, or has another schema; the last is Spark 3.5's."""


_WORDS = {"delete": "deleted", "insert": "inserted", "update_postimage": "updated"}


def _obstacle(spark: SparkSession, program: Layers | WholeText, last: LastRefresh, backend: str | None) -> str | None:
    """Return why no refresh can be incremental, whatever the changes; None if it depends on them."""
    if program.obstacle is not None:
        return program.obstacle
    if continuing_backend(spark, backend) is None:
        return "plain DataFrames are requested, and they recompute all rows in each iteration"
    return last.record.obstacle


def _check_program(program: Layers | WholeText, obstacle: str | None, changes: Changes) -> None:
    reason = obstacle or (program.obstacle_for(changes.sources) if isinstance(program, Layers) else None)
    if reason is not None:
        raise _FullRefresh(reason)
