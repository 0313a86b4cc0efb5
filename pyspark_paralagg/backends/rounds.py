"""One round of the DataFrame executor as DataFrame expressions: aggregate, and compare with the round before.

Both happen in one shuffle: the rows of the step and the rows of the round before meet in one group by the keys, the
latter marked as old. Whatever Spark's aggregates do with nulls, NaN, decimals and overflow is so what this executor
does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from pyspark.sql.window import Window

from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.relations import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pyspark_paralagg.program.program import Dependent, Relation

_OLD = "__paralagg_old"
_NEW = "__paralagg_new"
_CHANGED = "__paralagg_changed"
_MOVED = "__paralagg_moved"
_BEST = "__paralagg_best_"

_PLAIN = {
    "min": F.min,
    "max": F.max,
    "sum": F.sum,
    "count": F.sum,  # `conform` has made each row the number that it adds
    "any": F.bool_or,
    "all": F.bool_and,
    "bit_or": F.bit_or,
    "bit_and": F.bit_and,
}


@dataclass(frozen=True)
class Change:
    """What a round changed.

    Rows there are, rows that changed, rows that vanished, and the sum of |Δ| over the columns that accumulate.
    """

    total: int
    delta: int
    vanished: int
    moved: float


def aggregate(rows: DataFrame, relation: Relation) -> DataFrame:
    """``agg_K(rows)``: the relation's columns. No rows give no rows, also where there is no key."""
    rows = _with_best(rows, relation)
    groups = rows.groupBy(*_keys(relation))
    return groups.agg(F.count(F.lit(1)).alias(_NEW), *_values(relation)).select(*_columns(relation))


def next_round(derived: DataFrame, previous: DataFrame, relation: Relation) -> DataFrame:
    """``agg_K(derived)`` beside the rows of ``previous``: to be checkpointed, then read by the two functions below."""
    names = [d.column.name for d in relation.dependents]
    old = previous.select(
        *(F.col(quoted(k.name)) for k in relation.keys),
        F.struct(F.lit(col=True).alias(_OLD), *(F.col(quoted(n)) for n in names)).alias(_OLD),
    )
    new = _with_best(derived, relation).withColumn(_NEW, F.lit(col=True))
    both = new.unionByName(old, allowMissingColumns=True)  # an old row is null in every dependent column: skipped
    grouped = both.groupBy(*_keys(relation)).agg(
        F.bool_or(quoted(_NEW)).alias(_NEW), F.first(quoted(_OLD), ignorenulls=True).alias(_OLD), *_values(relation)
    )
    is_changed = F.col(_NEW).isNull() | F.col(_OLD).isNull()
    moved = F.lit(0.0)
    for d in relation.dependents:
        new_value, old_value = F.col(quoted(d.column.name)), F.col(_OLD)[d.column.name]
        is_changed = is_changed | ~new_value.eqNullSafe(old_value)
        if not AGGREGATORS[d.aggregator].is_idempotent:
            zero = F.lit(0.0)
            moved = moved + F.abs(
                F.coalesce(new_value.cast("double"), zero) - F.coalesce(old_value.cast("double"), zero)
            )
    return grouped.select(
        *_columns(relation),
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
    return kept.select(*_columns(relation))


def changed_rows(round_: DataFrame, relation: Relation, limit: int) -> list[dict[str, object]]:
    """Some rows that the round changed, for messages."""
    return [row.asDict() for row in round_.filter(F.col(_CHANGED)).select(*_columns(relation)).limit(limit).collect()]


def _keys(relation: Relation) -> list[Column]:
    # Without keys: a group by a constant, which has no group where there are no rows (a global aggregate has one).
    return [F.col(quoted(k.name)) for k in relation.keys] or [F.lit(col=True)]


def _columns(relation: Relation) -> list[Column]:
    return [F.col(quoted(c.name)) for c in relation.columns]


def _with_best(rows: DataFrame, relation: Relation) -> DataFrame:
    """For ``min_by`` and ``max_by``: beside each row, the best order of its key."""
    window = Window.partitionBy(*_keys(relation))
    for d in relation.dependents:
        if d.order is not None and _BEST + d.order not in rows.columns:
            best = F.min if d.aggregator == "min_by" else F.max
            rows = rows.withColumn(_BEST + d.order, best(quoted(d.order)).over(window))
    return rows


def _values(relation: Relation) -> list[Column]:
    return [_value(d).cast(d.column.type).alias(d.column.name) for d in relation.dependents]


def _value(d: Dependent) -> Column:
    column = F.col(quoted(d.column.name))
    if d.order is None:
        return _PLAIN[d.aggregator](column)
    # A null order equals nothing, a null carried value is skipped by min: both as the contract has it.
    return F.min(F.when(F.col(quoted(d.order)) == F.col(quoted(_BEST + d.order)), column))
