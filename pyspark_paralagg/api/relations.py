"""Check the arguments of a call (keys, aggregators, columns, types) and turn them into typed relations.

Second step of ``dataframe`` -> ``relations`` -> ``backends``. It raises every error that can be detected before the
step is called, each with its code.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.collected import as_sets
from pyspark_paralagg.api.dependents import Aggregation, typed_dependents
from pyspark_paralagg.api.fitting import NarrowBaseError, is_case_sensitive, is_wider, renamed, widened
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.aggregators import MaxBy, MinBy, Witnessed
from pyspark_paralagg.program.program import Column, Relation
from pyspark_paralagg.program.schema import check_step_columns, did_you_mean
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.program.trace import Hops, Path, Trace
from pyspark_paralagg.program.traced import check_traces
from pyspark_paralagg.session.arguments import check_aggs, not_a_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.program.schema import Owner

Keys = str | Sequence[str] | None
Aggregations = (
    Mapping[str, Aggregation | Hops | Path]
    | Mapping[tuple[str, ...], Aggregation]
    | Mapping[str | tuple[str, ...], Aggregation | Hops | Path]
    | None
)
"""The type of ``aggs``: aggregates by column, or by several columns that belong together."""


def typed_relation(name: str, base: DataFrame, keys: Keys, aggs: Aggregations, input_id: int) -> Relation:
    """Return the relation that the arguments describe; its rows are input ``input_id``. Raises as ``make_relation``."""
    columns = columns_of(renamed(base, _names(keys, aggs)))
    return make_relation(name, columns, keys, aggs, input_id, base.sparkSession)


def _in_case(aggs: Aggregations, columns: Sequence[str]) -> dict[Any, Any]:
    """Return ``aggs`` with the columns that its values name, such as an order, written as ``columns`` has them."""
    times = Counter(c.lower() for c in dict.fromkeys(columns))
    names = {c.lower(): c for c in columns if times[c.lower()] == 1}

    def own(name: Any) -> Any:  # noqa: ANN401 - checked later
        return names.get(name.lower(), name) if isinstance(name, str) else name

    def in_case(agg: Any) -> Any:  # noqa: ANN401 - likewise
        match agg:
            case Path():
                return Path(own(agg.order), columns=tuple(map(own, agg.columns)), limit=agg.limit)
            case Hops() | MinBy() | MaxBy():
                return replace(agg, order=own(agg.order))
            case Witnessed():
                return type(agg)(*map(own, (*agg.shares, *agg.witnesses)))
        return agg

    return {column: in_case(agg) for column, agg in (aggs or {}).items()}


def make_relation(  # noqa: PLR0913, PLR0917 - all parts of a relation
    name: str,
    columns: Sequence[tuple[str, str]],
    keys: Keys,
    aggs: Aggregations,
    input_id: int,
    session: SparkSession | None = None,
) -> Relation:
    """Return the relation over a base with these ``columns`` (name, Spark type).

    ``session`` analyses user-defined aggregators; without a session, ``aggs`` must have none. Raises ``UsageError``
    with one of ``PARALAGG_KEY_TWICE``, ``PARALAGG_KEY_MISSING``, ``PARALAGG_KEY_AGGREGATED``, ``PARALAGG_KEY_TYPE``,
    ``PARALAGG_COLUMN_UNDECLARED``, ``PARALAGG_COLUMN_TWICE``, or an error of ``typed_dependents``.
    """
    place = f"relation {name}"
    types = dict(columns)
    key_names = _key_names(keys, place)
    check_aggs(aggs, place)
    if session is not None and not is_case_sensitive(session):
        aggs = _in_case(aggs, [*types, *_names(None, aggs)])
    aggregations: dict[str | tuple[str, ...], Aggregation] = {}
    kinds: dict[str, Hops | Path] = {}
    for column, agg in (aggs or {}).items():
        if isinstance(agg, Hops | Path):
            kinds[str(column)] = agg
        else:
            aggregations[column] = agg
    aggregated = {c for name in (*aggregations, *kinds) for c in ((name,) if isinstance(name, str) else name)}
    traces = _traces(kinds, types, place)
    for position, (column, _) in enumerate(columns):
        if column in [c for c, _ in columns[:position]]:
            raise UsageError(
                "PARALAGG_COLUMN_TWICE",
                f"the base has two columns {column!r}",
                value=column,
                place=place,
                hint="rename or drop one of them",
            )
    for position, key in enumerate(key_names):
        _check_key(key, types, place, is_twice=key in key_names[:position], is_aggregated=key in aggregated)
    dependents = typed_dependents(aggregations, key_names, types, place, session)
    relation = Relation(name, tuple(Column(k, types[k]) for k in key_names), dependents, input_id, traces=traces)
    if traces:
        check_traces(relation, place)
    supplied = [c.name for c in relation.supplied]
    for column in types:
        if column not in supplied:
            raise UsageError(
                "PARALAGG_COLUMN_UNDECLARED",
                f"the base's column {column!r} is neither a key nor aggregated",
                value=column,
                place=place,
                hint="add it to keys or aggs, or drop it from the base",
            )
    return relation


def _traces(kinds: Mapping[str, Hops | Path], types: Mapping[str, str], place: str) -> tuple[Trace, ...]:
    """Return the columns of hops and paths, which no base has."""
    traces = tuple(Trace(name, kind) for name, kind in kinds.items())
    for trace in traces:
        if trace.name in types:
            raise UsageError(
                "PARALAGG_PATH",
                f"the base has a column {trace.name!r}, which {trace.kind!r} computes",
                value=trace.name,
                place=place,
                hint="drop it from the base and from the step, or name the other column otherwise",
            )
    return traces


def conform(  # noqa: PLR0913 - the place of errors
    df: DataFrame,
    relation: Relation,
    place: str | None = None,
    owner: Owner = "the step",
    shown: Sequence[str] = (),
    *,
    is_base: bool = False,
) -> DataFrame:
    """Return ``df`` with the relation's supplied columns, in its order and types. Raises as ``check_step_columns``.

    A ``count`` column becomes the number that the row adds: 1 if the row has no value. Raises ``NarrowBaseError`` if
    the relation would need wider types. ``shown`` are further columns, which paths show. ``is_base``: these are rows of
    a base, or initial ones.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that everyone gives it; pyspark is optional

    expected = {c.name: c.type for c in relation.supplied}
    df = as_sets(renamed(widened(df, expected), [*expected, *shown]), relation, is_base=is_base)
    columns = [(c, t) for c, t in columns_of(df) if c not in shown]
    types = dict(columns)
    counts = {d.column.name for d in relation.dependents if d.definition.counts_rows}
    wider = {c: types[c] for c, t in expected.items() if c in types and c not in counts and is_wider(types[c], t)}
    if wider:
        raise NarrowBaseError(relation.name, wider)
    check_step_columns(relation, columns, place, owner)
    counted = {f.name for f in df.schema.fields if f.dataType.simpleString() == "bigint" and not f.nullable}
    uncounted = counts - counted
    if not uncounted and not shown and columns == [(c.name, c.type) for c in relation.supplied]:
        return df  # a select would analyse the whole plan once more
    exprs = []
    for column in relation.supplied:
        if column.name in uncounted:
            value = F.coalesce(F.col(quoted(column.name)), F.lit(1)) if column.name in types else F.lit(1)
            exprs.append(value.cast("bigint").alias(column.name))
        elif types[column.name] != column.type:
            exprs.append(F.col(quoted(column.name)).cast(column.type).alias(column.name))
        else:
            exprs.append(F.col(quoted(column.name)))
    return df.select(*exprs, *(F.col(quoted(c)) for c in shown))


def columns_of(df: DataFrame) -> list[tuple[str, str]]:
    """Return name and Spark type of each column."""
    return [(field.name, field.dataType.simpleString()) for field in df.schema.fields]


def _names(keys: Keys, aggs: Aggregations) -> Iterator[str]:
    """Yield the columns that the arguments name, as far as they are names."""
    named: list[object] = [keys] if isinstance(keys, str) else list(keys) if isinstance(keys, Collection) else []
    for column, agg in (aggs or {}).items() if isinstance(aggs, Mapping) else ():
        named += [column] if isinstance(column, str) else column
        if isinstance(agg, Witnessed):
            named += [*agg.shares, *agg.witnesses]
    yield from (n for n in named if isinstance(n, str))


def _key_names(keys: Keys, place: str) -> tuple[str, ...]:
    if keys is None or isinstance(keys, str):
        return (keys,) if keys else ()
    if not isinstance(keys, Collection):  # such as a Column
        raise not_a_name("keys", keys, place, "PARALAGG_KEY_MISSING")
    for name in keys:
        if not isinstance(name, str):
            raise not_a_name("keys", name, place, "PARALAGG_KEY_MISSING")
    return tuple(keys)


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
            f"the column {key!r} is both a key and aggregated",
            value=key,
            place=place,
            hint="remove it from keys or from aggs",
        )
    if "map<" in types[key] or "variant" in types[key]:
        raise UsageError(
            "PARALAGG_KEY_TYPE",
            f"the key {key!r} is {types[key]}, which Spark cannot group by",
            value=types[key],
            place=place,
            hint="use columns of other types as keys",
        )
