"""Continue a stored fixpoint of sums by differences, after inserts and deletes in its sources.

A step that is linear in its sums, C + F(X), and that has other sources afterwards, C' + F'(X'), gives

    X' - X  =  (C' - C) + (F' - F)(X)  +  F'(X' - X)

so the difference is a fixpoint of the same step over the new sources. Its base are the rows that base and step derive
from inserted source rows and the stored result, and those from deleted source rows, with the opposite sign.

    inserted, deleted -> contributions -> the recursion of the differences -> stored values + differences

Fractions lose digits where a difference cancels a large sum, and have none left after NaN or infinity. ``LOST`` tells
such rows, after which everything is computed again.

A sum of 0 does not say whether its key still has a derivation. After deletes, a second recursion therefore maintains
the keys: a lattice of them with a flag, 1 if all that adds to the sum is null. ``continuation`` continues it.

Linear rules may run on differences: Wang et al. 2020 (PowerLog), theorem 1. Rows with both signs are those of Gupta,
Mumick and Subrahmanian 1993, "Maintaining views incrementally", section 4 (counting).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark_paralagg.api.relations import conform
from pyspark_paralagg.lowering.joins import other, renamed, same, within, without
from pyspark_paralagg.maintenance.program import Program
from pyspark_paralagg.maintenance.recursion import Recursion, references
from pyspark_paralagg.maintenance.template import reading, united
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pyspark_paralagg.maintenance.recursion import Frames, Sources
    from pyspark_paralagg.program.program import Relation

LOST = "paralagg lost digits"
"""The column that is true for rows whose sums may have lost more than their last digits."""
_STORED = "paralagg is stored"
_KEPT = 2.0**-20
"""A sum that is smaller than this part of its difference has lost 20 of its 53 bits."""
_PARTS_OF_ONE, _MOST_EXACT = 2.0**20, 2.0**33
"""Multiples of 2^-20 below 2^33 have 53 bits, so their sums are exact, and may cancel."""


def differences(  # noqa: PLR0913, PLR0917 - as continue_fixpoint
    program: Program, stored: DataFrame, frames: Frames, inserted: Frames, deleted: Frames, backend: str | None
) -> DataFrame | None:
    """Return keys and the differences of their sums to the ``stored`` ones; lazy.

    ``inserted`` and ``deleted`` have a row as often as it came or went. None: no rule reads a changed source.
    """
    relation = program.relation
    rows = reading(frames, {relation.name: stored})
    negative = [f"-{quoted(d.column.name)} AS {quoted(d.column.name)}" for d in relation.dependents]
    minus = {
        name: conform(lost.selectExpr(*_keys(relation), *negative), relation)
        for name, lost in program.candidates(deleted, rows).items()
    }
    signed = united(program.candidates(inserted, rows), minus)
    return program.over(signed, frames, backend)[relation.name] if signed else None


def flags(program: Program, frames: Frames) -> Program:
    """Return the lattice of the keys: ``program`` with 1 in place of a sum to which only nulls add, else 0.

    A sum of nulls is null, and the multiple of null. Conditions of a linear step do not read the sums.
    """
    relation, recursion = program.relation, program.recursion
    name, declared = relation.name, program.recursion.relations[relation.name]

    def base(sources: Sources) -> DataFrame:
        return flags_of(relation, conform(declared.base(sources), relation, is_base=True))

    def step(rows: DataFrame, sources: Sources) -> DataFrame:
        values = (
            f"CASE WHEN {quoted(d.column.name)} <= 0 THEN cast(1 AS {d.column.type}) END AS {quoted(d.column.name)}"
            for d in relation.dependents
        )
        derived = recursion.step({name: rows.selectExpr(*_keys(relation), *values)}, sources)[name]
        return flags_of(relation, conform(derived, relation))

    aggs = {d.column.name: "min" for d in relation.dependents}
    lattice = Recursion.single(name, declared.keys, aggs, base, step, {"mode": "trust"})
    session = next(iter(frames.values())).sparkSession
    return Program(session, lattice, references(session, {n: rows.schema for n, rows in frames.items()}))


def flags_of(relation: Relation, rows: DataFrame) -> DataFrame:
    """Return the keys of ``rows`` with a flag in place of each sum: 1 if it is null, else 0."""
    sums = (quoted(d.column.name) for d in relation.dependents)
    return rows.selectExpr(*_keys(relation), *(f"CASE WHEN {c} IS NULL THEN 1 ELSE 0 END AS {c}" for c in sums))


def new_values(
    relation: Relation, stored: DataFrame, differing: DataFrame, changed_flags: DataFrame | None, gone: DataFrame | None
) -> DataFrame:
    """Return the rows of new keys, and those whose sums change, with the column ``LOST``; lazy.

    ``differing`` are ``differences``, ``changed_flags`` the rows of ``flags`` that changed, and ``gone`` the stored
    rows whose keys leave. The last two are None if no row was deleted.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

    keys, sums = [k.name for k in relation.keys], [d.column for d in relation.dependents]
    rows = differing.select(*map(quoted, (*keys, *(c.name for c in sums))))
    for c in sums:
        rows = rows.withColumn(_flag(c.name), F.lit(None).cast("int"))
    if changed_flags is not None:
        no_values = (f"cast(NULL AS {c.type}) AS {quoted(c.name)}" for c in sums)
        as_flags = (f"{quoted(c.name)} AS {quoted(_flag(c.name))}" for c in sums)
        rows = rows.unionAll(changed_flags.selectExpr(*_keys(relation), *no_values, *as_flags))
        both = (F.max(quoted(c)).alias(c) for c in rows.columns if c not in keys)
        rows = rows.groupBy(*map(quoted, keys)).agg(*both)
    if gone is not None:
        rows = without(rows, gone, keys)
    # Few rows are `rows`: a semi join broadcasts them, where a left join would sort all stored rows.
    old = within(stored, rows, keys)
    old = renamed(old, [*keys, *(c.name for c in sums)]).withColumn(_STORED, F.lit(col=True))
    joined = rows.join(old, same(keys), "left")

    def has_lost(name: str) -> Column:
        before, by = (F.coalesce(F.col(quoted(c)), F.lit(0)).cast("double") for c in (other(name), name))
        total, zero = before + by, F.lit(0.0)
        is_finite = (before * zero == zero) & (by * zero == zero) & (total * zero == zero)
        parts, parts_by = before * _PARTS_OF_ONE, by * _PARTS_OF_ONE
        largest = F.greatest(F.abs(before), F.abs(by))
        is_exact = (parts == F.rint(parts)) & (parts_by == F.rint(parts_by)) & (largest < _MOST_EXACT)
        return ~is_finite | (~is_exact & (F.abs(total) < F.abs(by) * _KEPT))

    def value(name: str, kind: str) -> Column:
        before, by, flag = (F.col(quoted(c)) for c in (other(name), name, _flag(name)))
        total = F.coalesce(before, F.lit(0)) + F.coalesce(by, F.lit(0))
        is_null = F.coalesce(flag == 1, before.isNull() & by.isNull())
        return F.when(~is_null, total).cast(kind).alias(name)

    fractions = [has_lost(c.name) for c in sums if c.type in {"double", "float"}]
    valued = joined.select(
        *map(quoted, keys),
        reduce(lambda a, b: a | b, fractions, F.lit(col=False)).alias(LOST),
        *(value(c.name, c.type) for c in sums),
        *(quoted(n) for c in sums for n in (other(c.name), _flag(c.name))),
        _STORED,
    )
    is_new = F.col(quoted(_STORED)).isNull()
    if changed_flags is not None:  # signs of a key that leaves cancel out: only keys with a flag are new
        is_new &= reduce(lambda a, b: a | b, (F.col(quoted(_flag(c.name))).isNotNull() for c in sums))
    is_as_before = reduce(
        lambda a, b: a & b, (F.col(quoted(c.name)).eqNullSafe(F.col(quoted(other(c.name)))) for c in sums)
    )
    is_changed = is_new | (F.col(quoted(_STORED)).isNotNull() & ~is_as_before) | F.col(quoted(LOST))
    return valued.where(is_changed).select(*map(quoted, (*keys, *(c.name for c in sums), LOST)))


def _keys(relation: Relation) -> list[str]:
    return [quoted(k.name) for k in relation.keys]


def _flag(column: str) -> str:
    return f"paralagg flag {column}"
