"""Continue a stored fixpoint after inserts and deletes in its sources: delete, derive again, go on.

    lost rows     -> over_delete: the stored rows that fall -> the rows that stay
    what stays    -> candidates: all derivations of fallen keys, and those from gained rows
    candidates    -> Program.changes: the fixpoint goes on from the rows that stay -> the rows that change

Deleted rows are lost and inserted ones gained; on the right side of an anti join it is the other way around. A fixpoint
of sums continues by differences instead (``differences``).

Each part is a recursion or a query over the user's own step, so every engine runs it, and sees only DataFrames.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.backends.kept import Falls, Keeping, StateLostError, has_too_many_fallen, is_lost
from pyspark_paralagg.errors import VerificationError
from pyspark_paralagg.lowering.joins import differing, within, without
from pyspark_paralagg.maintenance.differences import LOST, differences, flags, flags_of, new_values
from pyspark_paralagg.maintenance.over_delete import compares_values, fallen_rows, support_of
from pyspark_paralagg.maintenance.rows import MaterializedRows, materialize, materialize_all
from pyspark_paralagg.maintenance.template import reading, reading_before, reading_most, united
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.report.engine_report import report
from pyspark_paralagg.session.condition import condition_of, message_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

    from pyspark_paralagg.backends.kept import BaseRows, KeptState
    from pyspark_paralagg.maintenance.program import Program
    from pyspark_paralagg.maintenance.recursion import Frames
    from pyspark_paralagg.program.program import Relation

REMOVED = "paralagg removed"
"""The column that is true for rows to remove."""
MAX_FALLEN = 0.2
"""The share of the stored rows that may fall. If more do, a full run is faster than deriving them again."""
_OVERFLOW = "ARITHMETIC_OVERFLOW"
_MIN_FALLEN = 1_000
"""So few rows may always fall."""


class NotMaintainableError(Exception):
    """The reason why the whole fixpoint has to be computed again; not an error of the user."""


@dataclass(frozen=True)
class Continuation:
    """A relation of a continued fixpoint.

    ``changed`` are the rows that are new or have another value, and those that fell and were derived again; lazy.
    None: no rule reads a changed source. ``fallen`` are the stored rows that fell; None if no row was deleted.
    ``rows`` are those of ``changed``, if they are computed. ``keeping`` has the state that the run leaves.
    ``new_keys`` is the number of changed rows whose keys were not stored; None if it is not known. ``is_flagged``:
    ``changed`` has the column ``REMOVED``, true for stored rows whose keys leave; then ``fallen`` is None.
    """

    relation: Relation
    stored: DataFrame
    changed: DataFrame | None
    fallen: MaterializedRows | None = None
    held: tuple[MaterializedRows, ...] = ()
    evaluated: DataFrame | None = None
    rows: MaterializedRows | None = None
    keeping: Keeping | None = None
    new_keys: int | None = None
    is_flagged: bool = False

    def materialized(self) -> MaterializedRows:
        """Run the fixpoint, if that is not done, and return the rows of ``changed``."""
        if self.rows is not None:
            return self.rows
        return materialize(self.stored.limit(0) if self.changed is None else self.changed)

    @property
    def fixpoint(self) -> DataFrame | None:
        """Return the rows whose plan has the recursion, for its report: ``changed`` may read them materialized."""
        return self.changed if self.evaluated is None else self.evaluated

    def upserts(self, changed: DataFrame) -> DataFrame:
        """Return the rows of ``changed``, the evaluated rows, that differ from the stored ones."""
        if self.is_flagged:
            return changed.where(f"NOT {quoted(REMOVED)}").drop(REMOVED)
        columns = [c.name for c in self.relation.columns]
        return changed if self.fallen is None or not self.has_fallen else differing(changed, self.fallen.df, columns)

    def removed(self, changed: DataFrame) -> DataFrame:
        """Return the stored rows whose keys leave the result."""
        if self.is_flagged:
            return changed.where(quoted(REMOVED)).drop(REMOVED)
        if self.fallen is None or not self.has_fallen:
            return self.stored.limit(0)
        return without(self.fallen.df, changed, [k.name for k in self.relation.keys])

    @property
    def has_only_new(self) -> bool:
        """Return whether it is known that no changed row was stored with another value."""
        return self.rows is not None and self.new_keys == self.rows.count

    @property
    def has_fallen(self) -> bool:
        """Return whether a stored row fell, so that rows may be removed."""
        return self.fallen is not None and self.fallen.count > 0

    def difference(self, changed: MaterializedRows) -> tuple[MaterializedRows, bool]:
        """Return the rows to write, and whether they have the column ``REMOVED``, which is true for those to remove."""
        from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

        if self.is_flagged or not self.has_fallen:
            return changed, self.is_flagged
        upserts = self.upserts(changed.df).withColumn(REMOVED, F.lit(col=False))
        removed = self.removed(changed.df).withColumn(REMOVED, F.lit(col=True))
        return materialize(upserts.unionAll(removed), is_cheap=True), True

    def changes(self, difference: DataFrame, *, has_flag: bool) -> tuple[MaterializedRows, MaterializedRows]:
        """Return the rows that came and those that went, for the next layer; ``difference`` as above, evaluated."""
        came = difference.where(f"NOT {quoted(REMOVED)}").drop(REMOVED) if has_flag else difference
        went = self.stored.limit(0)
        if has_flag or (self.relation.dependents and not self.has_only_new):
            went = within(self.stored, difference, [k.name for k in self.relation.keys])
        return materialize(came, is_cheap=True), materialize(went)

    def free(self) -> None:
        """Free the fallen rows, those that ``changed`` reads, and a kept state that nobody has taken over."""
        if self.keeping is not None:
            self.keeping.free()
        for rows in (*self.held, *([] if self.fallen is None else [self.fallen])):
            rows.free()


def continue_fixpoint(  # noqa: PLR0913 - the sources before and after, and the stored rows
    program: Program,
    stored: Frames,
    frames: Frames,
    inserted: Frames,
    deleted: Frames,
    *,
    whole: Frames | None = None,
    backend: str | None = "spark",
    keeping: Keeping | None = None,
) -> dict[str, Continuation]:
    """Continue the fixpoint ``stored`` over sources that now have the rows ``frames``; return that of each relation.

    ``inserted`` and ``deleted`` are the changed rows of some sources. It runs the recursion of the fallen rows, and all
    of it if there are several relations; else the rest is lazy. ``whole`` is the fixpoint over ``frames``, which is
    analysed and not run. ``keeping`` is for its run; sums are then all computed again.

    Raises ``NotMaintainableError`` if too many rows fall, ``UnsupportedError`` if the engine cannot continue.
    """
    if program.adds_only:
        [name] = stored
        if keeping is not None:
            return {name: _recomputed(program, stored[name], frames, keeping)}
        return {name: _add_differences(program, stored[name], frames, inserted, deleted, backend)}
    fallen = _fallen(program, stored, frames, inserted, deleted, whole, backend)
    try:
        return _continue(program, stored, frames, (inserted, deleted), fallen, backend, keeping)
    except BaseException:
        for rows in fallen.values():
            rows.free()
        raise


def _continue(  # noqa: PLR0913, PLR0917 - as continue_fixpoint
    program: Program,
    stored: Frames,
    frames: Frames,
    changed: tuple[Frames, Frames],
    fallen: Mapping[str, MaterializedRows],
    backend: str | None,
    keeping: Keeping | None,
) -> dict[str, Continuation]:
    keys = {r.name: [k.name for k in r.keys] for r in program.relations}
    are_some = {name for name, rows in fallen.items() if rows.count}
    kept = {n: without(rows, fallen[n].df, keys[n]) if n in are_some else rows for n, rows in stored.items()}
    rows = reading(frames, kept)
    inserted, deleted = changed
    most = reading_most(frames, deleted, kept)
    gained = united(program.candidates(inserted, rows), program.rejected(deleted, rows, most, now=True))
    if not gained and not are_some:
        return {r.name: Continuation(r, stored[r.name], None, fallen.get(r.name)) for r in program.relations}
    again = program.all_candidates(frames, kept) if are_some or program.has_witnesses else {}
    if program.has_witnesses:  # which are those of all derivations from the rows that stay
        run = program.over(again, frames, backend)
        columns = {r.name: [c.name for c in r.columns] for r in program.relations}
        changes = {name: differing(whole, kept[name], columns[name]) for name, whole in run.items()}
    else:
        lost = {name: within(again[name], fallen[name].df, keys[name]) for name in are_some}
        run = changes = program.changes(united(gained, lost), frames, kept, backend, keeping)
    if len(changes) == 1 and not program.has_witnesses:
        [(name, lazy)] = changes.items()
        return {name: Continuation(program.relation, stored[name], lazy, fallen.get(name), keeping=keeping)}
    done = materialize_all(changes, of=run)
    return {
        r.name: Continuation(
            r,
            stored[r.name],
            done[r.name].df,
            fallen.get(r.name),
            evaluated=run[r.name],
            rows=done[r.name],
            keeping=keeping,
        )
        for r in program.relations
    }


def grow_fixpoint(  # noqa: PLR0913, PLR0917 - as continue_fixpoint
    program: Program, stored: Frames, frames: Frames, inserted: Frames, deleted: Frames, state: KeptState
) -> dict[str, Continuation]:
    """Continue the fixpoint ``stored`` from the state that its run has kept; runs it.

    The state loses the rows ``deleted``, of which each copy is there, and the rows that fall by them. Raises
    ``StateLostError`` if the state cannot be used, and ``NotMaintainableError`` as ``continue_fixpoint`` does; then
    nothing of it is left.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - pyspark is optional
    from pyspark.errors import PySparkException  # noqa: PLC0415 - likewise

    stored_none = {name: rows.limit(0) for name, rows in stored.items()}
    needs_all = bool(deleted) and not state.has_base
    rows_now = reading(frames, stored_none)
    new = program.base_rows(frames) if needs_all else program.candidates(inserted, rows_now, base_only=True)
    before = reading_before(frames, inserted, deleted, stored_none)
    lost = program.candidates(deleted, before, base_only=True)
    falls = None
    if deleted:
        removed, support = program.step_over(_filled(frames, deleted)), support_of(state.compiled.program)
        falls = Falls(removed, *support, _most_fallen(sum(state.rows.values())), REMOVED)
    base: BaseRows = "changes" if state.has_base else "new"
    if needs_all:
        base = "whole" if program.has_rowwise_base else "all"
    keeping = Keeping(next(iter(stored.values())).sparkSession, state, falls, base)
    try:
        initial = {name: lost.get(name, none) for name, none in stored_none.items()}
        changed = program.changes(new, _filled(frames, inserted), initial, keeping=keeping)
        found = materialize_all(changed, is_cheap=True)  # a second run, for very many rows, finds no state
    except BaseException as problem:
        keeping.free()
        if isinstance(problem, PySparkException | Py4JJavaError):
            if has_too_many_fallen(problem):
                raise _too_many_fallen(sum(state.rows.values())) from problem
            if is_lost(problem):
                raise StateLostError(message_of(problem)) from problem
        raise
    run = report(next(iter(changed.values())))  # one for all relations
    totals = {} if run is None else run.totals
    grown: dict[str, Continuation] = {}
    for relation in program.relations:
        name = relation.name
        rows, leaving = (found[name], 0) if falls is None else _flagged(found[name])
        new_keys = keeping.new_keys(name, leaving, totals)
        grown[name] = Continuation(
            relation,
            stored[name],
            rows.df,
            evaluated=changed[name],
            rows=rows,
            keeping=keeping,
            new_keys=new_keys,
            is_flagged=leaving > 0,
        )
    return grown


def _filled(frames: Frames, rows: Frames) -> dict[str, DataFrame]:
    """Return ``rows`` of all sources, none of those that have no change, with the names that ``assume`` may use."""
    return {name: (rows[name] if name in rows else whole.limit(0)).alias(name) for name, whole in frames.items()}


def _flagged(rows: MaterializedRows) -> tuple[MaterializedRows, int]:
    """Return how many rows leave by the column ``REMOVED``, and the rows, without it if there are none."""
    leaving = rows.counts(REMOVED).get(True, 0)
    return (rows if leaving else replace(rows, df=rows.df.drop(REMOVED))), leaving


def _recomputed(program: Program, stored: DataFrame, frames: Frames, keeping: Keeping) -> Continuation:
    """Run all of a fixpoint of sums, which leaves its state, and compare its rows with the ``stored`` ones."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

    relation = program.relation
    [whole] = program.whole(frames, keeping).values()
    changed = differing(whole, stored, [c.name for c in relation.columns]).withColumn(REMOVED, F.lit(col=False))
    gone = without(stored, whole, [k.name for k in relation.keys]).withColumn(REMOVED, F.lit(col=True))
    try:
        rows = materialize(changed.unionAll(gone))  # one query, in which the fixpoint runs once
    except BaseException:
        keeping.free()
        raise
    rows, leaving = _flagged(rows)
    return Continuation(relation, stored, rows.df, evaluated=whole, rows=rows, keeping=keeping, is_flagged=leaving > 0)


def _add_differences(  # noqa: PLR0913, PLR0917 - as continue_fixpoint
    program: Program, stored: DataFrame, frames: Frames, inserted: Frames, deleted: Frames, backend: str | None
) -> Continuation:
    """Continue a fixpoint of sums; ``fallen`` are then the rows that leave, since no other row is derived again."""
    try:
        differing = differences(program, stored, frames, inserted, deleted, backend)
    except VerificationError as problem:  # stored rows and changed ones may have nulls that the base cannot have
        message = f"the differences of the sums are not proved to be linear: {problem.message}"
        raise NotMaintainableError(message) from problem
    if differing is None:
        return Continuation(program.relation, stored, None, None)
    keys, held = [k.name for k in program.relation.keys], list[MaterializedRows]()
    try:
        held.append(materialize(differing))
        flags_changed = gone = None
        if deleted:
            lattice = flags(program, frames)
            before, name = flags_of(program.relation, stored), program.relation.name
            continued = continue_fixpoint(lattice, {name: before}, frames, inserted, deleted, backend=backend)[name]
            held += [] if continued.fallen is None else [continued.fallen]
            held.append(materialize(before.limit(0) if continued.changed is None else continued.changed))
            flags_changed = continued.upserts(held[-1].df)
            gone = materialize(within(stored, continued.removed(held[-1].df), keys))
            held.append(gone)
        values = new_values(program.relation, stored, held[0].df, flags_changed, None if gone is None else gone.df)
        rows = materialize(values)
        held.append(rows)
        _check_digits(rows)
        rows = replace(rows, df=rows.df.drop(LOST))
    except BaseException as problem:
        for part in held:
            part.free()
        if condition_of(problem) == _OVERFLOW:
            message = "a difference of the sums overflows"
            raise NotMaintainableError(message) from problem
        raise
    used = tuple(part for part in held[:-1] if part is not gone)
    return Continuation(program.relation, stored, rows.df, gone, used, differing, rows)


def _check_digits(rows: MaterializedRows) -> None:
    if True in rows.counts(LOST):
        message = "a sum is not finite, or a difference cancels nearly all of it, so that digits are lost"
        raise NotMaintainableError(message)


def _fallen(  # noqa: PLR0913, PLR0917 - as continue_fixpoint
    program: Program,
    stored: Frames,
    frames: Frames,
    inserted: Frames,
    deleted: Frames,
    whole: Frames | None,
    backend: str | None,
) -> dict[str, MaterializedRows]:
    """Return the stored rows that fall; none if no relation can have any."""
    before = reading_before(frames, inserted, deleted, stored)
    most = reading_most(frames, deleted, stored)
    lost = united(program.candidates(deleted, before), program.rejected(inserted, before, most, now=False))
    if not lost:
        return {}
    analysed = next(iter((program.whole(frames) if whole is None else whole).values()))
    by_value = compares_values(analysed, program.relations)
    lazy = fallen_rows(program, lost, before, stored, by_value=by_value, options={"backend": backend})
    counts = {name: rows.count() for name, rows in stored.items()}
    if len(lazy) == 1:  # so the recursion ends where the answer is known (StopAtLimit)
        lazy = {name: rows.limit(_most_fallen(counts[name]) + 1) for name, rows in lazy.items()}
    fallen = materialize_all(lazy)
    for name, rows in fallen.items():
        if rows.count > _most_fallen(counts[name]):
            for other in fallen.values():
                other.free()
            raise _too_many_fallen(counts[name])
    return fallen


def _most_fallen(rows: int) -> int:
    """Return how many of so many stored rows may fall."""
    return max(_MIN_FALLEN, int(MAX_FALLEN * rows))


def _too_many_fallen(rows: int) -> NotMaintainableError:
    return NotMaintainableError(f"more than {_most_fallen(rows):,} of {rows:,} stored rows may have lost their support")
