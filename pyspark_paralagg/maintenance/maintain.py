"""Define ``maintain``: bring a stored result up to date with changed sources, given as DataFrames."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from pyspark_paralagg.api.dataframe import explain_as, recursive
from pyspark_paralagg.api.relations import columns_of
from pyspark_paralagg.errors import UnsupportedError, UsageError
from pyspark_paralagg.lowering.joins import differing, without
from pyspark_paralagg.maintenance.continuation import NotMaintainableError, continue_fixpoint
from pyspark_paralagg.maintenance.net import net_changes as net
from pyspark_paralagg.maintenance.net import unsupported_columns
from pyspark_paralagg.maintenance.program import Program, continuing_backend
from pyspark_paralagg.maintenance.recursion import Recursion, references
from pyspark_paralagg.maintenance.rows import materialize
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.report.engine_report import report

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from pyspark_paralagg.api.relations import Aggregations, Keys
    from pyspark_paralagg.maintenance.continuation import Continuation
    from pyspark_paralagg.maintenance.recursion import Frames, Sources
    from pyspark_paralagg.maintenance.rows import MaterializedRows
    from pyspark_paralagg.report.run_report import RunReport


@dataclass(frozen=True)
class Maintained:
    """The result of ``ra.maintain``.

    ``rows`` is the new result. ``upserts`` are its rows that are new or have another value than before, and ``removed``
    the old rows whose keys left. ``kind`` is ``"incremental"``, ``"full"`` (computed again) or ``"none"`` (no row of a
    source changed), and ``reason`` is the first reason for it. ``fallen`` counts the old rows that may have lost their
    support and were derived again or removed; None if none were searched. ``run`` is the report of the fixpoint; None
    if none ran.

    More than 100,000 computed rows stay in the executors until ``free`` is called or the session ends. ``free`` ends
    the use of all three DataFrames: write them before.
    """

    rows: DataFrame
    upserts: DataFrame
    removed: DataFrame
    kind: Literal["incremental", "full", "none"]
    reason: str
    fallen: int | None = None
    run: RunReport | None = None
    _computed: tuple[MaterializedRows, ...] = field(default=(), repr=False)

    def free(self) -> None:
        """Free the computed rows; a second call does nothing.

        >>> new.rows.write.format("delta").mode("overwrite").save("lake/dist")            # doctest: +SKIP
        >>> new.free()                                                                    # doctest: +SKIP
        """
        for rows in self._computed:
            rows.free()


def maintain(  # noqa: PLR0913 - the arguments of the API, as the documentation has them
    old: DataFrame,
    *,
    keys: Keys,
    aggs: Aggregations = None,
    sources: Mapping[str, DataFrame],
    base: Callable[[Sources], DataFrame],
    step: Callable[[DataFrame, Sources], DataFrame],
    inserted: Mapping[str, DataFrame] | None = None,
    deleted: Mapping[str, DataFrame] | None = None,
    name: str = "r",
    **options: Any,  # noqa: ANN401 - those of recursive_agg
) -> Maintained:
    """Bring ``old``, the stored result of a recursion, up to date with changed sources; runs at the call.

    >>> new = ra.maintain(                                                                # doctest: +SKIP
    ...     old, keys="node", aggs={"dist": "min"},
    ...     sources={"edges": edges, "starts": starts}, deleted={"edges": closed_roads},
    ...     base=lambda t: t["starts"],
    ...     step=lambda d, t: d.join(t["edges"], d.node == t["edges"].src)
    ...         .select(t["edges"].dst.alias("node"), (d.dist + t["edges"].weight).alias("dist")))
    >>> new.rows                                                                          # doctest: +SKIP

    old
        The rows of the result before the change. They must be the fixpoint over the sources before the change: this is
        not checked. They are read several times, so pass stored or cached rows.
    keys, aggs, base, step, name, options
        As in ``ra.delta.RecursiveTable``: ``base`` and ``step`` read the sources as ``t["edges"]``.
    sources
        All rows of each source **after** the change.
    inserted, deleted
        The rows that came and went, by source. An updated row is deleted with its old values and inserted with its new
        ones. For two snapshots: ``inserted={"edges": after.exceptAll(before)}``,
        ``deleted={"edges": before.exceptAll(after)}``. Spark's ``exceptAll`` calls 0.0 and -0.0 equal, and strings of a
        collation such as UTF8_LCASE. For columns of such types pass both snapshots, ``inserted={"edges": after}``,
        ``deleted={"edges": before}``: rows that are identical in both cancel out.

    The result always equals that of a full run over ``sources``. It is continued from ``old`` if the recursion is a
    lattice (``min``, ``max``, sets, ``min_by``, ...) or has only sums and counts, and computed again otherwise, for the
    reason in ``reason``: an aggregate or an outer join over a changed source, ``max_iterations``, or more than a fifth
    of the old rows that may have lost their support. Sums of doubles may have other last
    digits; where more digits would be lost, all is computed again.

    ``ra.why(new.rows, node=7)`` explains a row over ``sources``.

    Raises ``UsageError`` ``PARALAGG_MAINTAIN_ROWS`` if rows do not match the source or the result, the codes of
    ``RecursiveTable`` for base and step, and the errors of :func:`recursive_agg`.
    """
    inspect.signature(recursive).bind({}, step, name=name, **options)  # raises TypeError for an unknown option
    _frames("old", {"old": old})
    frames, new, gone = (
        _frames(argument, rows)
        for argument, rows in (("sources", sources), ("inserted", inserted or {}), ("deleted", deleted or {}))
    )
    session = old.sparkSession
    for argument, changed in (("inserted", new), ("deleted", gone)):
        _check_changed(argument, changed, frames)
    program = Program(
        session,
        Recursion.single(name, keys, aggs, base, step, options),
        references(session, {n: f.schema for n, f in frames.items()}),
    )
    stored = _stored(old, program)
    if not new and not gone:
        result = Maintained(stored, stored.limit(0), stored.limit(0), "none", "no row was inserted or deleted")
    else:
        result = _maintained(program, stored, frames, new, gone, options.get("backend"))
    explain_as(result.rows, lambda: program.whole(frames)[name])
    return result


def _maintained(  # noqa: PLR0913, PLR0917 - the sources before and after, and the stored rows
    program: Program, stored: DataFrame, frames: Frames, new: Frames, gone: Frames, requested: str | None
) -> Maintained:
    [(name, whole)] = program.whole(frames).items()
    changed = {*new, *gone}
    compared = {*gone, *(n for n in new if program.rejects({n}))}
    backend = continuing_backend(stored.sparkSession, requested)
    reason = (
        program.obstacle
        or program.unstable
        or (None if backend else "plain DataFrames recompute all rows in each iteration")
        or program.obstacle_after(whole)
        or program.obstacle_for(changed)
        or next(filter(None, (unsupported_columns(n, frames[n].schema) for n in sorted(compared))), None)
    )
    if reason is not None:
        return _full(program, stored, whole, reason)
    try:
        inserted, deleted = _net(new, gone, repeats=program.adds_only)
        continued = continue_fixpoint(
            program, {name: stored}, frames, inserted, deleted, whole={name: whole}, backend=backend
        )[name]
        reason = f"the changes of {', '.join(sorted(changed))} can be maintained{program.exactness}"
        return _continued(continued, reason)
    except NotMaintainableError as too_many:
        return _full(program, stored, whole, str(too_many))
    except UnsupportedError as problem:
        return _full(program, stored, whole, f"the engine cannot continue: {problem.message}")


def _continued(continued: Continuation, reason: str) -> Maintained:
    """Run the continued fixpoint."""
    stored, fallen = continued.stored, continued.fallen
    try:
        changed = None if continued.changed is None else continued.materialized()
    except BaseException:
        continued.free()
        raise
    rows = stored.limit(0) if changed is None else changed.df
    key_columns = [k.name for k in continued.relation.keys]
    kept = stored if fallen is None else without(stored, fallen.df, key_columns)
    return Maintained(
        without(kept, rows, key_columns).unionAll(rows),
        continued.upserts(rows),
        continued.removed(rows),
        "incremental",
        reason,
        None if fallen is None else fallen.count,
        None if continued.fixpoint is None else report(continued.fixpoint),
        tuple(computed for computed in (changed, fallen, *continued.held) if computed is not None),
    )


def _full(program: Program, stored: DataFrame, whole: DataFrame, reason: str) -> Maintained:
    """Run the whole fixpoint once; all three DataFrames read its rows."""
    computed = materialize(whole)
    rows, columns = computed.df, [c.name for c in program.relation.columns]
    removed = without(stored, rows, [k.name for k in program.relation.keys])
    upserts = differing(rows, stored, columns)
    return Maintained(rows, upserts, removed, "full", reason, run=report(whole), _computed=(computed,))


def _net(new: Frames, gone: Frames, *, repeats: bool) -> tuple[dict[str, DataFrame], dict[str, DataFrame]]:
    """Return the inserted and the deleted rows of each source, without those that are both."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

    inserted, deleted = {n: rows for n, rows in new.items() if n not in gone}, {}
    for name, rows in gone.items():
        signed = rows.withColumn("paralagg change", F.lit(-1))
        if name in new:
            signed = signed.unionByName(new[name].withColumn("paralagg change", F.lit(1)))
        plus, deleted[name] = net(signed, F.col(quoted("paralagg change")), rows.columns, repeats=repeats)
        if name in new:
            inserted[name] = plus
    return inserted, deleted


def _frames(argument: str, frames: object) -> dict[str, DataFrame]:
    from pyspark.sql import DataFrame as AnyDataFrame  # noqa: PLC0415 - pyspark is optional

    if not isinstance(frames, Mapping):
        raise _bad_rows(
            argument, f"{argument} is a {type(frames).__name__}, not a mapping of names to DataFrames", frames
        )
    for name, rows in frames.items():
        if not isinstance(name, str):
            raise _bad_rows(argument, f"{argument} has the name {name!r}, which is not a text", name)
        if not isinstance(rows, AnyDataFrame):
            raise _bad_rows(argument, f"{argument}[{name!r}] is a {type(rows).__name__}, not a DataFrame", rows)
    return dict(frames)


def _check_changed(argument: str, changed: Frames, frames: Frames) -> None:
    for name, rows in changed.items():
        if name not in frames:
            raise _bad_rows(argument, f"{argument} has rows of {name!r}, which is not one of sources", name)
        if sorted(columns_of(rows)) != sorted(columns_of(frames[name])):
            text = ", ".join(f"{n} {t}" for n, t in columns_of(rows))
            raise _bad_rows(argument, f"{argument}[{name!r}] has other columns than the source: {text}", text)


def _stored(old: DataFrame, program: Program) -> DataFrame:
    if dict(columns_of(old)) != program.columns:
        text = ", ".join(f"{n} {t}" for n, t in columns_of(old))
        expected = ", ".join(f"{n} {t}" for n, t in program.columns.items())
        raise _bad_rows("old", f"old has the columns {text}, but the result has {expected}", text)
    return old.select(*map(quoted, program.columns))


def _bad_rows(place: str, message: str, value: object) -> UsageError:
    hint = 'pass DataFrames by the names that base and step use: sources={"edges": edges}, deleted={"edges": rows}'
    return UsageError("PARALAGG_MAINTAIN_ROWS", message, value=value, place=place, hint=hint)
