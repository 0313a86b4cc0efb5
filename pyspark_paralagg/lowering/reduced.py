"""Aggregate without a Spark function: collect a group's values and reduce them."""

from __future__ import annotations

from functools import reduce
from operator import and_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from pyspark_paralagg.program.sql import quoted

if TYPE_CHECKING:
    from pyspark.sql import Column

    from pyspark_paralagg.program.custom import Custom
    from pyspark_paralagg.program.program import Dependent, Relation

_EUCLID = {"tinyint": 12, "smallint": 23, "int": 46, "bigint": 92}
"""The most divisions for the greatest common divisor of two numbers of a type (Fibonacci numbers)."""


def gcd_value(column: Column, type_: str) -> Column:
    """Return the greatest common divisor of a group; null if it has no value."""
    values = F.collect_set(column)
    steps = F.sequence(F.lit(1), F.lit(_EUCLID[type_]))

    def pair(a: Column, b: Column) -> Column:
        return F.struct(a.cast(type_).alias("a"), b.cast(type_).alias("b"))

    def step(p: Column, _: Column) -> Column:
        return F.when(p["b"] == 0, p).otherwise(pair(p["b"], F.when(p["b"] != 0, p["a"] % p["b"])))

    def gcd(a: Column, b: Column) -> Column:
        return F.abs(F.reduce(steps, pair(a, b), step, lambda p: p["a"]))

    return F.when(F.size(values) > 0, F.reduce(values, F.lit(0).cast(type_), gcd))


def custom_value(d: Dependent, custom: Custom, relation: Relation) -> Column:
    """Return the column of a user-defined aggregator; rows with a null in one of its columns are skipped."""
    position = relation.dependents.index(d) - d.part
    together = relation.dependents[position : position + len(custom.columns)]
    fields = [f"c{n}" for n in range(len(together))]
    columns = [F.col(quoted(o.column.name)) for o in together]
    is_complete = reduce(and_, (c.isNotNull() for c in columns))
    rows = F.collect_list(F.when(is_complete, F.struct(*(c.alias(f) for c, f in zip(columns, fields, strict=True)))))

    def combined(old: Column, new: Column) -> Column:
        values = custom.source.combined([old[f] for f in fields], [new[f] for f in fields])
        fields_combined = [_not_null(v, o, custom).alias(f) for v, o, f in zip(values, together, fields, strict=True)]
        return F.struct(*fields_combined)

    first = F.get(rows, F.lit(0))
    typed = F.struct(*(first[f].cast(o.column.type).alias(f) for f, o in zip(fields, together, strict=True)))
    return F.when(F.size(rows) > 0, F.reduce(F.slice(rows, 2, F.size(rows)), typed, combined)[fields[d.part]])


def _not_null(value: Column, d: Dependent, custom: Custom) -> Column:
    message = f"[PARALAGG_AGGREGATOR_NULL] combine of the aggregator {custom.name} returns null for {d.column.name}"
    return F.coalesce(value, F.raise_error(F.lit(message)).cast(d.column.type)).cast(d.column.type)
