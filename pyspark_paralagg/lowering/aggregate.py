"""Aggregate rows by key with DataFrame expressions: ``agg_K(rows)``.

Used for relations without recursion and for each round of the DataFrame executor. Nulls, NaN, decimals and overflow
behave as in Spark's own aggregates.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name
from pyspark.sql.window import Window

from pyspark_paralagg.lowering.reduced import custom_value, gcd_value
from pyspark_paralagg.program.aggregators import BY_ORDER
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pyspark_paralagg.program.program import Dependent, Relation

_ROWS = "__paralagg_rows"
_BEST = "__paralagg_best_"
_SHARE = "__paralagg_share_"
_TOTAL = "__paralagg_total_"


def aggregate(rows: DataFrame, relation: Relation) -> DataFrame:
    """Return ``agg_K(rows)`` with the relation's columns. Empty input gives no row, even without keys."""
    rows = prepared(rows, relation)
    groups = rows.groupBy(*keys_of(relation))
    return groups.agg(F.count(F.lit(1)).alias(_ROWS), *values_of(relation)).select(*columns_of(relation))


def keys_of(relation: Relation) -> list[Column]:
    """Return the grouping columns.

    Without keys it is a constant: empty input then has no group, while a global aggregate has one.
    """
    return [F.col(quoted(k.name)) for k in relation.keys] or [F.lit(col=True)]


def columns_of(relation: Relation) -> list[Column]:
    """Return the relation's columns."""
    return [F.col(quoted(c.name)) for c in relation.columns]


def prepared(rows: DataFrame, relation: Relation) -> DataFrame:
    """Return ``rows`` with the window columns that some aggregates need.

    For ``min_by`` and ``max_by``: the best order of the row's key. For ``msum`` and ``h_index``: the row's share, which
    is the best value of its witness in one of that witness' rows, else null. For ``h_index`` the total, too.
    """
    window = Window.partitionBy(*keys_of(relation))
    for d in relation.dependents:
        if d.definition.shares:
            columns = [F.col(quoted(c.name)) for c in d.supplied]
            value, witnesses = columns[d.definition.shares - 1], columns[d.definition.shares :]
            falls = d.definition.witness_aggregator == "min"
            best_first = value.asc_nulls_last() if falls else value.desc_nulls_last()
            witness_window = Window.partitionBy(*keys_of(relation), *witnesses).orderBy(best_first)
            counts = reduce(and_, (w.isNotNull() for w in witnesses), F.row_number().over(witness_window) == 1)
            share = F.when(counts, value) if falls else F.when(counts & (value > 0), value)
            rows = rows.withColumn(_SHARE + d.column.name, share)
            if falls:
                rows = rows.withColumn(_TOTAL + d.column.name, F.coalesce(columns[0], F.lit(0)).cast("bigint"))
        if d.order is not None and _BEST + d.order not in rows.columns:
            best = getattr(F, BY_ORDER[d.aggregator].order_aggregator)
            rows = rows.withColumn(_BEST + d.order, best(quoted(d.order)).over(window))
    return rows


def values_of(relation: Relation) -> list[Column]:
    """Return the aggregated columns, over ``prepared`` rows."""
    return [_value(d, relation).cast(d.column.type).alias(d.column.name) for d in relation.dependents]


def _value(d: Dependent, relation: Relation) -> Column:
    column = F.col(quoted(d.column.name))
    if d.custom is not None:
        return custom_value(d, d.custom, relation)
    if d.definition.moves == "divides":
        return gcd_value(column, d.column.type)
    if d.definition.is_counted:
        return _counted(d)
    spark = d.definition.spark
    if spark is not None:
        value: Column = getattr(F, spark)(column)
        return value
    if d.order is None:
        raise AssertionError(d)
    # By contract a null order never wins, and min skips a null carried value.
    return F.min(F.when(F.col(quoted(d.order)) == F.col(quoted(_BEST + d.order)), column))


def _counted(d: Dependent) -> Column:
    if not d.definition.shares:
        return F.count_distinct(*(F.col(quoted(c.name)) for c in d.supplied))
    share = F.col(quoted(_SHARE + d.column.name))
    if d.definition.moves == "down":
        return _h_index(F.min(quoted(_TOTAL + d.column.name)), F.collect_list(share.cast("bigint")))
    return F.coalesce(F.sum(share), F.lit(0))


def _h_index(total: Column, values: Column) -> Column:
    """Return the h-index of ``total`` witnesses, some of which have these values, and the others any.

    If n values are below h, n of the witnesses do not hold it. So it is at most ``total - n``, and at most the next
    value.
    """
    limits = F.transform(F.array_sort(values), lambda v, n: F.least(v, total - n))
    return F.greatest(F.array_max(F.concat(limits, F.array(total - F.size(values)))), F.lit(0).cast("bigint"))
