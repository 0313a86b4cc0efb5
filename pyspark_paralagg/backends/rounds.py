"""Compute one round of the DataFrame executor: aggregate, and compare with the previous round.

Both need one shuffle: the derived rows and the rows of the previous round, marked as old, are grouped by key together.
Nulls, NaN, decimals and overflow behave as in Spark's own aggregates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from pyspark_paralagg.lowering.aggregate import columns_of, keys_of, prepared, values_of
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from pyspark_paralagg.program.program import Relation

_OLD = "__paralagg_old"
_NEW = "__paralagg_new"
_CHANGED = "__paralagg_changed"
_MOVED = "__paralagg_moved"


@dataclass(frozen=True)
class Change:
    """The changes of a round.

    The number of rows, of changed rows, of vanished rows, and the sum of |Δ| over accumulating columns.
    """

    total: int
    delta: int
    vanished: int
    moved: float


def next_round(derived: DataFrame, previous: DataFrame, relation: Relation) -> DataFrame:
    """Return ``agg_K(derived)`` with the rows of ``previous``, to be checkpointed for ``change_of``, ``state_of``."""
    names = [d.column.name for d in relation.dependents]
    old = previous.select(
        *(F.col(quoted(k.name)) for k in relation.keys),
        F.struct(F.lit(col=True).alias(_OLD), *(F.col(quoted(n)) for n in names)).alias(_OLD),
    )
    new = prepared(derived, relation).withColumn(_NEW, F.lit(col=True))
    combined = new.unionByName(old, allowMissingColumns=True)  # aggregates skip old rows: null dependent columns
    grouped = combined.groupBy(*keys_of(relation)).agg(
        F.bool_or(quoted(_NEW)).alias(_NEW), F.first(quoted(_OLD), ignorenulls=True).alias(_OLD), *values_of(relation)
    )
    is_changed = F.col(_NEW).isNull() | F.col(_OLD).isNull()
    moved = F.lit(0.0)
    for d in relation.dependents:
        new_value, old_value = F.col(quoted(d.column.name)), F.col(_OLD)[d.column.name]
        is_changed = is_changed | ~new_value.eqNullSafe(old_value)
        if d.definition.is_sum:
            zero = F.lit(0.0)
            moved = moved + F.abs(
                F.coalesce(new_value.cast("double"), zero) - F.coalesce(old_value.cast("double"), zero)
            )
    return grouped.select(
        *columns_of(relation),
        F.col(_NEW).isNotNull().alias(_NEW),
        is_changed.alias(_CHANGED),
        moved.alias(_MOVED),
    )


def change_of(round_: DataFrame) -> Change:
    """Count the changes of a checkpointed round, with one small job."""
    row = round_.agg(
        F.count_if(F.col(_NEW)),
        F.count_if(F.col(_CHANGED)),
        F.count_if(~F.col(_NEW)),
        F.coalesce(F.sum(_MOVED), F.lit(0.0)),
    ).first()
    if row is None:  # an aggregate without keys always has one row
        raise AssertionError
    return Change(*row)


def state_of(round_: DataFrame, change: Change, relation: Relation) -> DataFrame:
    """Return the rows of the relation after a round."""
    kept = round_.filter(F.col(_NEW)) if change.vanished else round_
    return kept.select(*columns_of(relation))


def changed_rows(round_: DataFrame, relation: Relation, limit: int) -> list[dict[str, object]]:
    """Return up to ``limit`` rows that the round changed, for messages."""
    return [row.asDict() for row in round_.filter(F.col(_CHANGED)).select(*columns_of(relation)).limit(limit).collect()]
