"""From the words of a call to typed relations: the checks of keys, aggregators, columns and types.

Second link of ``dataframe`` -> ``relations`` -> ``backends``. Everything that can be known before the step is called is
found here; each error has its code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.aggregators import AGGREGATORS, Aggregation, MaxBy, MinBy
from pyspark_paralagg.program.program import Column, Dependent, Relation
from pyspark_paralagg.program.schema import check_step_columns, did_you_mean

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Keys = str | Sequence[str] | None
Aggregations = Mapping[str, Aggregation] | None


def typed_relation(name: str, base: DataFrame, keys: Keys, aggs: Aggregations, input_id: int) -> Relation:
    """The relation that the arguments describe; its rows will be input ``input_id``.

    Raises ``UsageError`` with one of ``PARALAGG_KEY_TWICE``, ``PARALAGG_KEY_MISSING``, ``PARALAGG_KEY_AGGREGATED``,
    ``PARALAGG_KEY_TYPE``, ``PARALAGG_UNKNOWN_AGGREGATE``, ``PARALAGG_AGG_COLUMN_MISSING``, ``PARALAGG_AGG_TYPE``,
    ``PARALAGG_MIN_BY_ORDER``, ``PARALAGG_COLUMN_UNDECLARED``, ``PARALAGG_COLUMN_TWICE``.
    """
    place = f"relation {name}"
    found = columns_of(base)
    types = dict(found)
    key_names = _key_names(keys, place)
    aggregations = dict(aggs or {})
    for position, (column, _) in enumerate(found):
        if column in [c for c, _ in found[:position]]:
            raise UsageError(
                "PARALAGG_COLUMN_TWICE",
                f"the base has two columns {column!r}",
                value=column,
                place=place,
                hint="rename or drop one of them",
            )
    for position, key in enumerate(key_names):
        _check_key(key, types, place, is_twice=key in key_names[:position], is_aggregated=key in aggregations)
    dependents = tuple(_dependent(column, how, types, place) for column, how in aggregations.items())
    for d in dependents:
        _check_order(d, dependents, place)
    for column in types:
        if column not in key_names and column not in aggregations:
            raise UsageError(
                "PARALAGG_COLUMN_UNDECLARED",
                f"the base's column {column!r} is neither a key nor aggregated",
                value=column,
                place=place,
                hint="add it to keys or aggs, or drop it from the base",
            )
    return Relation(name, tuple(Column(k, types[k]) for k in key_names), dependents, input_id)


def conform(df: DataFrame, relation: Relation, place: str | None = None) -> DataFrame:
    """``df`` with the relation's columns, in its order and types; raises as ``check_step_columns``.

    A ``count`` column becomes what it adds: 1 where the row has no value.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that everyone gives it; pyspark is optional

    found = columns_of(df)
    check_step_columns(relation, found, place)
    types = dict(found)
    counted = {f.name for f in df.schema.fields if f.dataType.simpleString() == "bigint" and not f.nullable}
    uncounted = {d.column.name for d in relation.dependents if d.aggregator == "count"} - counted
    if not uncounted and found == [(c.name, c.type) for c in relation.columns]:
        return df  # a select is one more analysis of the whole plan
    chosen = []
    for column in relation.columns:
        if column.name in uncounted:
            value = F.coalesce(F.col(quoted(column.name)), F.lit(1)) if column.name in types else F.lit(1)
            chosen.append(value.cast("bigint").alias(column.name))
        elif types[column.name] != column.type:
            chosen.append(F.col(quoted(column.name)).cast(column.type).alias(column.name))
        else:
            chosen.append(F.col(quoted(column.name)))
    return df.select(*chosen)


def columns_of(df: DataFrame) -> list[tuple[str, str]]:
    """Name and Spark type of each column."""
    return [(field.name, field.dataType.simpleString()) for field in df.schema.fields]


def quoted(name: str) -> str:
    """A column's name as Spark's parser wants it, whatever stands in it."""
    return "`" + name.replace("`", "``") + "`"


def _key_names(keys: Keys, place: str) -> tuple[str, ...]:
    names = (keys,) if isinstance(keys, str) else tuple(keys or ())
    for name in names:
        if not isinstance(name, str):
            raise UsageError(
                "PARALAGG_KEY_MISSING",
                f"keys are names of columns, not {type(name).__name__}",
                value=name,
                place=place,
                hint='keys="node" or keys=["src", "dst"]',
            )
    return names


def _check_key(key: str, types: Mapping[str, str], place: str, *, is_twice: bool, is_aggregated: bool) -> None:
    if is_twice:
        raise UsageError(
            "PARALAGG_KEY_TWICE", f"the key {key!r} is named twice", value=key, place=place, hint="name it once"
        )
    if key not in types:
        raise UsageError(
            "PARALAGG_KEY_MISSING",
            f"the base has no column {key!r}, which keys names",
            value=key,
            place=place,
            hint=did_you_mean(key, types),
        )
    if is_aggregated:
        raise UsageError(
            "PARALAGG_KEY_AGGREGATED",
            f"the column {key!r} is a key and aggregated too",
            value=key,
            place=place,
            hint="take it out of keys or out of aggs",
        )
    if "map<" in types[key] or "variant" in types[key]:
        raise UsageError(
            "PARALAGG_KEY_TYPE",
            f"the key {key!r} is {types[key]}, which Spark cannot group by",
            value=types[key],
            place=place,
            hint="use columns of other types as keys",
        )


def _dependent(column: str, how: Aggregation, types: Mapping[str, str], place: str) -> Dependent:
    by_order = isinstance(how, MinBy | MaxBy)
    name = how.aggregator if isinstance(how, MinBy | MaxBy) else how
    if not isinstance(name, str) or name not in AGGREGATORS or AGGREGATORS[name].has_order != by_order:
        plain = [a.name for a in AGGREGATORS.values() if not a.has_order]
        needs_order = isinstance(name, str) and name in AGGREGATORS
        raise UsageError(
            "PARALAGG_UNKNOWN_AGGREGATE",
            f"{how!r} is no aggregate for the column {column!r}",
            value=how,
            place=place,
            hint=f'write ra.{name}("the column that decides")'
            if needs_order
            else did_you_mean(str(getattr(how, "__name__", how)), [*plain, "min_by", "max_by"]),
        )
    aggregator = AGGREGATORS[name]
    if column not in types:
        if name == "count":
            return Dependent(Column(column, "bigint"), name)
        raise UsageError(
            "PARALAGG_AGG_COLUMN_MISSING",
            f"the base has no column {column!r}, which aggs names",
            value=column,
            place=place,
            hint=did_you_mean(column, types),
        )
    if not aggregator.accepts(types[column]):
        raise UsageError(
            "PARALAGG_AGG_TYPE",
            f"{name} over the column {column!r}, which is {types[column]}",
            value=types[column],
            place=place,
            hint=f"{name} takes {aggregator.takes}; cast the column in the base and in the step",
        )
    order = how.order if isinstance(how, MinBy | MaxBy) else None
    return Dependent(Column(column, aggregator.result(types[column])), name, order)


def _check_order(d: Dependent, dependents: Sequence[Dependent], place: str) -> None:
    if d.order is None:
        return
    wanted = d.aggregator.removesuffix("_by")
    if any(o.column.name == d.order and o.aggregator == wanted for o in dependents):
        return
    raise UsageError(
        "PARALAGG_MIN_BY_ORDER",
        f"{d.column.name!r} follows {d.order!r}, which this relation does not aggregate with {wanted!r}",
        value=d.order,
        place=place,
        hint=f"aggs={{{d.order!r}: {wanted!r}, {d.column.name!r}: ra.{d.aggregator}({d.order!r})}}",
    )
