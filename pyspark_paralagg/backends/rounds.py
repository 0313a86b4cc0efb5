"""One round of the DataFrame executor as DataFrame expressions: aggregates, compared with the round before.

Both happen in one shuffle: the rows of the step and the rows of the round before meet in one group by the keys, the
latter marked as old. Whatever Spark's aggregates do with nulls, NaN, decimals and overflow is so what this executor
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it

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
    """What a round changed.

    Rows there are, rows that changed, rows that vanished, and the sum of |Δ| over the columns that accumulate.
    """

    total: int
    delta: int
    vanished: int
    moved: float


def next_round(derived: DataFrame, previous: DataFrame, relation: Relation) -> DataFrame:
    """``agg_K(derived)`` beside the rows of ``previous``: to be checkpointed, then read by the two functions below."""
    names = [d.column.name for d in relation.dependents]
    old = previous.select(
        *(F.col(quoted(k.name)) for k in relation.keys),
        F.struct(F.lit(col=True).alias(_OLD), *(F.col(quoted(n)) for n in names)).alias(_OLD),
    )
    new = prepared(derived, relation).withColumn(_NEW, F.lit(col=True))
    both = new.unionByName(old, allowMissingColumns=True)  # an old row is null in every dependent column: skipped
    grouped = both.groupBy(*keys_of(relation)).agg(
        F.bool_or(quoted(_NEW)).alias(_NEW), F.first(quoted(_OLD), ignorenulls=True).alias(_OLD), *values_of(relation)
    )
    is_changed = F.col(_NEW).isNull() | F.col(_OLD).isNull()
    moved = F.lit(0.0)
    for d in relation.dependents:
        new_value, old_value = F.col(quoted(d.column.name)), F.col(_OLD)[d.column.name]
        is_changed = is_changed | ~new_value.eqNullSafe(old_value)
        if d.aggregator in ("sum", "count"):
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
    """Runs one small job over a checkpointed round."""
    row = round_.agg(
        F.count_if(F.col(_NEW)),
        F.count_if(F.col(_CHANGED)),
        F.count_if(~F.col(_NEW)),
        F.coalesce(F.sum(_MOVED), F.lit(0.0)),
    ).first()
    if row is None:  # an aggregate without keys has one row
        raise AssertionError
    return Change(*row)


def state_of(round_: DataFrame, change: Change, relation: Relation) -> DataFrame:
    """The rows of the relation after a round."""
    kept = round_.filter(F.col(_NEW)) if change.vanished else round_
    return kept.select(*columns_of(relation))


def changed_rows(round_: DataFrame, relation: Relation, limit: int) -> list[dict[str, object]]:
    """Some rows that the round changed, for messages."""
    return [row.asDict() for row in round_.filter(F.col(_CHANGED)).select(*columns_of(relation)).limit(limit).collect()]
