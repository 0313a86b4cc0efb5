"""Full, incremental or nothing: what the next refresh does, and the first reason for it.

Between what is there (``tables``, ``record``) and what is done about it (``view``). The questions are asked in the
order of their cost: the record, the sources' versions, their change feeds, then what the program allows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.delta.program import Program
from pyspark_paralagg.delta.rows import count_values, keep
from pyspark_paralagg.delta.tables import CHANGE_COLUMNS
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from pyspark_paralagg.delta.record import Consumed, Last
    from pyspark_paralagg.delta.report import Kind
    from pyspark_paralagg.delta.rows import Kept
    from pyspark_paralagg.delta.tables import Snapshot, Table
    from pyspark_paralagg.delta.text import WholeText

_ENGINES = ("auto", "spark")
_KIND = CHANGE_COLUMNS[0]


@dataclass(frozen=True)
class Changes:
    """What the feeds say: changed rows by source and kind, and the rows of each source whose rows are kept.

    Who has done with the rows calls ``free``.
    """

    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    rows: dict[str, Kept] = field(default_factory=dict)

    def free(self) -> None:
        """Drops the rows."""
        for rows in self.rows.values():
            rows.free()


@dataclass(frozen=True)
class Decision:
    """What to do, why, and what was found on the way."""

    kind: Kind
    reason: str
    changes: Changes = field(default_factory=Changes)


class _Refused(Exception):  # noqa: N818 - a reason for all rows anew, no error
    """Why a refresh cannot continue."""


def decide(  # noqa: PLR0913 - all that a decision rests on
    spark: SparkSession,
    program: Program | WholeText,
    last: Last | None,
    sources: Mapping[str, tuple[Table, Snapshot]],
    backend: str | None,
    *,
    keeps: bool = True,
) -> Decision:
    """What a refresh of ``sources`` after the refresh ``last`` does; of all rows it reads change feeds alone.

    New rows are kept for the refresh where it can go on from them; with ``keeps`` false they are only counted.
    """
    changes = Changes()
    try:
        last = _known(last)
        _check_record(program, last, {name: snapshot for name, (_, snapshot) in sources.items()})
        obstacle = _obstacle(spark, program, last, backend)
        newer = {n: (t, s) for n, (t, s) in sources.items() if s.version > last.record.sources[n].version}
        for name, (table, snapshot) in newer.items():
            _read(name, table, last.record.sources[name], snapshot, changes, keeps=keeps and obstacle is None)
        if not any(changes.counts.values()):
            what = "no source has rows that are new" if newer else "no source has a new version"
            return Decision("none", what, changes)
        _check_inserts(changes)
        _check_program(program, obstacle, changes)
    except _Refused as why:
        return Decision("full", str(why), changes)
    except BaseException:
        changes.free()
        raise
    count = ", ".join(f"{counts['insert']:,} into {name}" for name, counts in changes.counts.items() if counts)
    return Decision("incremental", f"rows came in and none went: {count}", changes)


def _known(last: Last | None) -> Last:
    if last is None:
        raise _Refused("the table's log no longer has a record of its last refresh")
    return last


def _check_record(program: Program | WholeText, last: Last, sources: Mapping[str, Snapshot]) -> None:
    for name, snapshot in sources.items():
        consumed = last.record.sources.get(name)
        if consumed is None:
            break  # another program
        if consumed.id != snapshot.id:
            raise _Refused(f"the source {name} is another table than the one that was consumed")
        if consumed.version > snapshot.version:
            raise _Refused(f"the source {name} went back, from version {consumed.version} to {snapshot.version}")
        if consumed.columns != snapshot.columns:
            raise _Refused(f"the source {name} has other columns than at version {consumed.version}")
    if last.record.fingerprint != program.fingerprint or last.record.sources.keys() != sources.keys():
        raise _Refused("the program has changed since the last refresh")
    if last.foreign is not None:
        by = f"{last.foreign.operation} in version {last.foreign.version}"
        raise _Refused(f"another writer changed the table: {by}")
    if program.unstable is not None:
        raise _Refused(program.unstable)


def _read(  # noqa: PLR0913 - what is read, where it goes, and how
    name: str, table: Table, consumed: Consumed, snapshot: Snapshot, into: Changes, *, keeps: bool
) -> None:
    """The feed of a source, into ``into``."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - pyspark is optional
    from pyspark.errors import PySparkException  # noqa: PLC0415 - likewise

    first = consumed.version + 1
    if not snapshot.has_change_feed:
        raise _Refused(f"the source {name} keeps no change feed (delta.enableChangeDataFeed)")
    try:
        feed = table.changes(first, snapshot.version)
        if keeps:
            into.rows[name] = rows = keep(feed)
            into.counts[name] = rows.counts(_KIND) if rows.count else {}
            if not rows.count:
                into.rows.pop(name).free()
        else:
            into.counts[name] = count_values(feed, _KIND)
    except (PySparkException, Py4JJavaError) as problem:
        condition = _condition(problem)
        if not condition.startswith(_UNREADABLE):
            raise
        versions = f"version {first}" if first == snapshot.version else f"versions {first} to {snapshot.version}"
        raise _Refused(f"the change feed of {name} cannot be read for {versions}: {condition}") from problem


def _check_inserts(changes: Changes) -> None:
    for name, counts in changes.counts.items():
        others = {kind: n for kind, n in sorted(counts.items()) if kind not in ("insert", "update_preimage")}
        if others:
            told = ", ".join(f"{n:,} {_WORDS.get(kind, kind)}" for kind, n in others.items())
            raise _Refused(f"rows of {name} were changed or taken away ({told})")


_UNREADABLE = ("DELTA_", "FAILED_READ_FILE")
"""Conditions of a feed that is not there (any more), vacuumed or of another schema."""


def _condition(problem: Any) -> str:  # noqa: ANN401 - what pyspark converted, or py4j passes on
    """The condition of Spark's own error; a failed job's comes unconverted."""
    from py4j.protocol import Py4JError  # noqa: PLC0415 - pyspark is optional

    java = getattr(problem, "java_exception", None)
    try:
        return str((problem if java is None else java).getCondition() or "")
    except Py4JError:  # an exception that is none of Spark's has no such method
        return ""


_WORDS = {"delete": "deleted", "update_postimage": "updated"}


def _obstacle(spark: SparkSession, program: Program | WholeText, last: Last, backend: str | None) -> str | None:
    """Why no new rows at all can be gone on from; None where it depends on them."""
    if program.obstacle is not None:
        return program.obstacle
    wanted = backend or conf.read(spark, conf.BACKEND)
    if wanted not in _ENGINES:
        return f"{wanted} is asked for, and only the Spark engine goes on from rows that it has"
    return last.record.obstacle


def _check_program(program: Program | WholeText, obstacle: str | None, changes: Changes) -> None:
    changed = {name for name, counts in changes.counts.items() if counts}
    blocked = obstacle or (program.blocked(changed) if isinstance(program, Program) else None)
    if blocked is not None:
        raise _Refused(blocked)
