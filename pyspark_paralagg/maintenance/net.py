"""Reduce inserted and deleted rows of a source to their difference: a row may come and go several times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField, StructType

_SIGN, _ZERO = "paralagg sign", "paralagg -0.0"


def net_changes(
    rows: DataFrame,
    sign: Column,
    columns: Sequence[str],
    *,
    repeats: bool,
    evaluated: Callable[[DataFrame], DataFrame] = lambda rows: rows,
) -> tuple[DataFrame, DataFrame]:
    """Return the rows that were inserted more often than deleted, and those deleted more often.

    ``sign`` is 1 for an inserted row and -1 for a deleted one. Duplicates do not matter to a lattice, so one row stands
    for all. ``repeats`` returns a row as often as the numbers differ, for sums. A deleted row may still have a
    duplicate in the source. ``evaluated`` gets the rows that differ once, for both results.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

    # Spark groups -0.0 with 0.0, which a program may tell apart.
    zeros = {f"{_ZERO} {f.name}": f.name for f in rows.select(*map(quoted, columns)).schema if _has_signed_zero(f)}
    are_negative = (F.col(quoted(c)).cast("string").eqNullSafe("-0.0").alias(zero) for zero, c in zeros.items())
    counted = rows.select(*map(quoted, columns), *are_negative, sign.alias(_SIGN))
    sign_sum = F.col(quoted(_SIGN))
    groups = counted.groupBy(*map(quoted, (*columns, *zeros)))
    sums = groups.agg(F.sum(quoted(_SIGN)).alias(_SIGN)).where(sign_sum != 0)
    for zero, c in zeros.items():
        restored = F.when(F.col(quoted(zero)), -F.abs(F.col(quoted(c)))).otherwise(F.col(quoted(c)))
        sums = sums.withColumn(c, restored).drop(zero)
    sums = evaluated(sums)
    if repeats:
        sums = sums.withColumn(_SIGN, F.explode(F.array_repeat(F.signum(sign_sum), F.abs(sign_sum).cast("int"))))
    plus, minus = (sums.where(condition).select(*map(quoted, columns)) for condition in (sign_sum > 0, sign_sum < 0))
    return plus, minus


def _has_signed_zero(field: StructField) -> bool:
    return field.dataType.simpleString() in {"double", "float"}


def unsupported_columns(name: str, schema: StructType) -> str | None:
    """Return why deleted rows of the source ``name`` cannot be compared; None if they can."""
    for field in schema.fields:
        if "map<" in field.dataType.simpleString() or "variant" in field.dataType.simpleString():
            return f"rows of {name} were deleted, and its column {field.name} has a type that cannot be compared"
    return None
