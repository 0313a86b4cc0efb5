"""Join rows with rows of the same columns, by some of them, nulls included: keys of stored rows may be null."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark_paralagg.lowering.identity import identity
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


def other(column: str) -> str:
    """Return the name of a column on the other side of a join with rows of the same columns."""
    return f"paralagg other {column}"


def without(rows: DataFrame, others: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the rows whose ``columns``, keys, equal those of no row of ``others``; nulls are equal."""
    return rows.join(renamed(others, columns), same(columns), "left_anti")


def differing(rows: DataFrame, others: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the rows whose ``columns`` are identical to those of no row of ``others``, which have the same types."""
    kinds = rows.select(*map(quoted, columns)).schema
    return rows.join(renamed(others, columns), same(columns, kinds), "left_anti")


def within(rows: DataFrame, others: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return the rows whose ``columns``, keys, equal those of a row of ``others``; nulls are equal."""
    return rows.join(renamed(others, columns), same(columns), "left_semi")


def same(columns: Sequence[str], identities: StructType | None = None) -> Column:
    """Return the condition that rows have the same ``columns`` as those of the other side; nulls are equal.

    Columns are equal by Spark's equality; with their types as ``identities``, they must be identical.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

    pairs = [(F.col(quoted(c)), F.col(quoted(other(c)))) for c in columns]
    if identities is not None:
        kinds = [f.dataType for f in identities.fields]
        pairs = [(identity(a, kind), identity(b, kind)) for (a, b), kind in zip(pairs, kinds, strict=True)]
    equal = [a.eqNullSafe(b) for a, b in pairs]
    return reduce(lambda a, b: a & b, equal) if equal else F.lit(col=True)


def renamed(rows: DataFrame, columns: Sequence[str]) -> DataFrame:
    """Return ``columns`` of the rows, named as those of the other side."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

    return rows.select(*(F.col(quoted(c)).alias(other(c)) for c in columns))
