"""Reduce inserted and deleted rows of a source to their difference: a row may come and go several times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.lowering.identity import has_identity, identity, is_own_identity
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType

_SIGN, _IDENTITY = "paralagg sign", "paralagg identity"


def net_changes(
    rows: DataFrame,
    sign: Column,
    columns: Sequence[str],
    *,
    repeats: bool,
    evaluated: Callable[[DataFrame], DataFrame] = lambda rows: rows,
) -> tuple[DataFrame, DataFrame]:
    """Return the rows that were inserted more often than deleted, and those deleted more often.

    Rows are the same if they are identical: an update of 0.0 to -0.0 is a deletion and an insertion. ``sign`` is 1 for
    an inserted row and -1 for a deleted one. Duplicates do not matter to a lattice, so one row stands for all.
    ``repeats`` returns a row as often as the numbers differ, for sums. A deleted row may still have a duplicate in the
    source. ``evaluated`` gets the rows that differ once, for both results.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

    plain = rows.select(*map(quoted, columns)).schema.fields
    mapped = {f.name: f"{_IDENTITY} {f.name}" for f in plain if not is_own_identity(f.dataType)}
    identities = (identity(F.col(quoted(f.name)), f.dataType).alias(mapped[f.name]) for f in plain if f.name in mapped)
    counted = rows.select(*map(quoted, columns), *identities, sign.alias(_SIGN))
    sign_sum = F.col(quoted(_SIGN))
    groups = counted.groupBy(*(quoted(mapped.get(c, c)) for c in columns))
    originals = (F.first(quoted(c)).alias(c) for c in mapped)  # the values of a group are identical
    sums = groups.agg(F.sum(quoted(_SIGN)).alias(_SIGN), *originals).where(sign_sum != 0)
    sums = evaluated(sums.select(*map(quoted, columns), quoted(_SIGN)))
    if repeats:
        sums = sums.withColumn(_SIGN, F.explode(F.array_repeat(F.signum(sign_sum), F.abs(sign_sum).cast("int"))))
    plus, minus = (sums.where(condition).select(*map(quoted, columns)) for condition in (sign_sum > 0, sign_sum < 0))
    return plus, minus


def unsupported_columns(name: str, schema: StructType) -> str | None:
    """Return why deleted rows of the source ``name`` cannot be compared; None if they can."""
    for field in schema.fields:
        if not has_identity(field.dataType):
            return f"rows of {name} were deleted, and its column {field.name} has a type that cannot be compared"
    return None
