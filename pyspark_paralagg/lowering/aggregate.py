"""``agg_K(rows)`` as DataFrame expressions, for what Spark itself aggregates.

Relations without recursion are grouped so, and so is each round of the DataFrame executor. Whatever Spark's aggregates
do with nulls, NaN, decimals and overflow is what happens here.
"""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from pyspark.sql.window import Window

from pyspark_paralagg.lowering.reduced import custom_value, gcd_value
from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from pyspark_paralagg.program.program import Dependent, Relation

_ROWS = "__paralagg_rows"
_BEST = "__paralagg_best_"
_SHARE = "__paralagg_share_"


def aggregate(rows: DataFrame, relation: Relation) -> DataFrame:
    """``agg_K(rows)``: the relation's columns. No rows give no rows, also where there is no key."""
    rows = prepared(rows, relation)
    groups = rows.groupBy(*keys_of(relation))
    return groups.agg(F.count(F.lit(1)).alias(_ROWS), *values_of(relation)).select(*columns_of(relation))


def keys_of(relation: Relation) -> list[Column]:
    """What to group by.

    Without keys a constant, which has no group where there are no rows (a global aggregate has one).
    """
    return [F.col(quoted(k.name)) for k in relation.keys] or [F.lit(col=True)]


def columns_of(relation: Relation) -> list[Column]:
    """The relation's columns."""
    return [F.col(quoted(c.name)) for c in relation.columns]


def prepared(rows: DataFrame, relation: Relation) -> DataFrame:
    """``rows`` with what an aggregate of single rows does not see.

    For ``min_by`` and ``max_by``: beside each row, the best order of its key. For ``msum``: what the row adds, which is
    the greatest contribution of its witness in one of that witness' rows and nothing in the others.
    """
    window = Window.partitionBy(*keys_of(relation))
    for d in relation.dependents:
        if d.aggregator == "msum":
            value, *witnesses = (F.col(quoted(c.name)) for c in d.supplied)
            of_one = Window.partitionBy(*keys_of(relation), *witnesses).orderBy(value.desc_nulls_last())
            counts = reduce(and_, (w.isNotNull() for w in witnesses), F.row_number().over(of_one) == 1)
            share = F.when(counts & (value > 0), value)
            rows = rows.withColumn(_SHARE + d.column.name, share)
        if d.order is not None and _BEST + d.order not in rows.columns:
            best = F.min if d.aggregator == "min_by" else F.max
            rows = rows.withColumn(_BEST + d.order, best(quoted(d.order)).over(window))
    return rows


def values_of(relation: Relation) -> list[Column]:
    """The aggregated columns, over ``prepared`` rows."""
    return [_value(d, relation).cast(d.column.type).alias(d.column.name) for d in relation.dependents]


def _value(d: Dependent, relation: Relation) -> Column:
    column = F.col(quoted(d.column.name))
    if d.custom is not None:
        return custom_value(d, d.custom, relation)
    if d.aggregator == "gcd":
        return gcd_value(column, d.column.type)
    if d.aggregator == "mcount":
        return F.count_distinct(*(F.col(quoted(c.name)) for c in d.supplied))
    if d.aggregator == "msum":
        return F.coalesce(F.sum(quoted(_SHARE + d.column.name)), F.lit(0))
    spark = d.definition.spark
    if spark is not None:
        found: Column = getattr(F, spark)(column)
        return found
    if d.order is None:
        raise AssertionError(d)
    # A null order equals nothing, a null carried value is skipped by min: both as the contract has it.
    return F.min(F.when(F.col(quoted(d.order)) == F.col(quoted(_BEST + d.order)), column))
