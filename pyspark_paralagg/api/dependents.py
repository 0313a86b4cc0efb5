"""Check and type the values of ``aggs``: names, ``min_by``, ``mcount``, and user-defined aggregators.

``relations`` calls it, and checks everything else of a relation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pyspark_paralagg.api.user_aggregator import UserAggregator
from pyspark_paralagg.errors import UsageError, VerificationError
from pyspark_paralagg.program.aggregators import AGGREGATORS, MEAN_OF_MEANS, MaxBy, MCount, MinBy, Witnessed
from pyspark_paralagg.program.program import Column, Dependent
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.session.arguments import not_a_name, type_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

Aggregation = str | MinBy | MaxBy | Witnessed | UserAggregator
"""A value of ``aggs``."""

_WRITTEN = {"order": "the column that decides", "witnesses": "the column that is a witness"}


def typed_dependents(
    aggs: Mapping[str | tuple[str, ...], Aggregation],
    keys: Sequence[str],
    types: Mapping[str, str],
    place: str,
    session: SparkSession | None,
) -> tuple[Dependent, ...]:
    """Return the dependents that ``aggs`` declares over a base with columns of these ``types``.

    ``session`` analyses user-defined aggregators; without a session, ``aggs`` must have none.

    Raises ``UsageError`` with one of ``PARALAGG_UNKNOWN_AGGREGATE``, ``PARALAGG_AGG_COLUMN_MISSING``,
    ``PARALAGG_AGG_TYPE``, ``PARALAGG_MIN_BY_ORDER``, ``PARALAGG_WITNESS``, ``PARALAGG_AGGREGATOR_COLUMNS``, and the
    errors of ``laws.check_laws``.
    """
    dependents: list[Dependent] = []
    for name, agg in aggs.items():
        if isinstance(agg, UserAggregator):
            dependents += _user_defined((name,) if isinstance(name, str) else name, agg, types, place, session)
        elif not isinstance(name, str):
            raise UsageError(
                "PARALAGG_AGGREGATOR_COLUMNS",
                f"{agg!r} aggregates one column, but gets {len(name)}",
                value=name,
                place=place,
                hint="name each column separately; only ra.aggregator(..., columns=(...)) takes several",
            )
        elif isinstance(agg, Witnessed):
            _check_names(agg.aggregator, (*agg.shares, *agg.witnesses), place)
            dependents.append(_witnessed(name, agg, keys, types, place))
        else:
            dependents.append(_plain(name, agg, types, place))
    names = [d.column.name for d in dependents]
    for n, d in enumerate(dependents):
        _check_order(d, dependents, place)
        if d.column.name in names[:n]:
            raise UsageError(
                "PARALAGG_COLUMN_TWICE",
                f"aggs names the column {d.column.name!r} twice",
                value=d.column.name,
                place=place,
                hint="name it once",
            )
    _check_supplied(dependents, place)
    return tuple(dependents)


def _plain(column: str, agg: str | MinBy | MaxBy, types: Mapping[str, str], place: str) -> Dependent:
    has_order = isinstance(agg, MinBy | MaxBy)
    if not has_order and not isinstance(agg, str):  # == of a Column gives a Column
        raise _unknown(column, agg, place)
    if isinstance(agg, MinBy | MaxBy):
        _check_names(agg.aggregator, (agg.order,), place)
    name = agg.aggregator if isinstance(agg, MinBy | MaxBy) else agg
    definition = AGGREGATORS.get(name)
    if agg in ("mean", "avg"):
        raise VerificationError(
            "PARALAGG_NOT_LINEAR",
            f"{agg!r} cannot recurse for the column {column!r}, because a mean of means is not a mean: {MEAN_OF_MEANS}",
            value=agg,
            place=place,
            hint="aggregate a sum and a count, and divide them after the recursion",
        )
    if definition is None:
        raise _unknown(column, agg, place)
    if (definition.parameters == "order") != has_order or definition.parameters == "witnesses":
        hint = f'write ra.{definition.name}("{_WRITTEN[definition.parameters]}")'
        raise _no_aggregate(column, agg, place, hint)
    if column not in types and definition.counts_rows:
        return Dependent(Column(column, "bigint"), name)
    _check_type(column, name, types, place)
    order = agg.order if isinstance(agg, MinBy | MaxBy) else None
    return Dependent(Column(column, definition.result(types[column])), name, order)


def _unknown(column: str, agg: object, place: str) -> UsageError:
    name = str(getattr(agg, "__name__", agg))
    if name == "collect_set":
        return _no_aggregate(column, agg, place, "write ra.collect_set(limit=…)")
    words = [a.name for a in AGGREGATORS.values() if not a.parameters]
    calls = [a.name for a in AGGREGATORS.values() if a.parameters]
    if type_name(agg).endswith(".Column"):
        return _no_aggregate(column, agg, place, f'name the aggregate: {{{column!r}: "min"}}, not F.min({column!r})')
    return _no_aggregate(column, agg, place, did_you_mean(name, [*words, *calls]))


def _no_aggregate(column: str, agg: object, place: str, hint: str | None) -> UsageError:
    message = f"{agg!r} is not an aggregate for the column {column!r}"
    return UsageError("PARALAGG_UNKNOWN_AGGREGATE", message, value=agg, place=place, hint=hint)


def _check_names(aggregator: str, columns: Sequence[object], place: str) -> None:
    for column in columns:
        if not isinstance(column, str):
            raise not_a_name(f"ra.{aggregator}", column, place, "PARALAGG_UNKNOWN_AGGREGATE")


def _witnessed(column: str, agg: Witnessed, keys: Sequence[str], types: Mapping[str, str], place: str) -> Dependent:
    name, shares = agg.aggregator, agg.shares
    if not agg.witnesses:
        raise UsageError(
            "PARALAGG_WITNESS",
            f"{agg!r} names no witness for the column {column!r}",
            value=agg,
            place=place,
            hint='name a witness last: ra.mcount("who") counts who, ra.msum("share", "who") sums the greatest share of '
            'each, ra.h_index("total", "value", "who") compares the least value of each',
        )
    if column in types and column not in shares and column not in agg.witnesses:
        raise UsageError(
            "PARALAGG_WITNESS",
            f"the base has a column {column!r}, which {agg!r} computes",
            value=column,
            place=place,
            hint=f"drop it; base and step supply {', '.join((*shares, *agg.witnesses))}",
        )
    for witness in agg.witnesses:
        if witness in keys:
            raise UsageError(
                "PARALAGG_WITNESS",
                f"the witness {witness!r} of {column!r} is a key, so each row has only one",
                value=witness,
                place=place,
                hint="remove it from keys; witnesses are counted for each key",
            )
        _check_type(witness, MCount.aggregator, types, place)
    for n, share in enumerate(shares):
        _check_type(share, name, types, place)
        others = {"key": keys, "witness": agg.witnesses, "contribution": shares[:n]}
        for kind in (k for k, names in others.items() if share in names):
            raise UsageError(
                "PARALAGG_WITNESS",
                f"the contribution {share!r} of {column!r} is also a {kind}",
                value=share,
                place=place,
                hint="use a separate column for it",
            )
    type_ = AGGREGATORS[name].result(types[shares[-1]]) if shares else "bigint"
    supplied = tuple(Column(c, types[c]) for c in (*shares, *agg.witnesses))
    return Dependent(Column(column, type_, nullable=False), name, supplied=supplied)


def _user_defined(
    columns: tuple[str, ...], agg: UserAggregator, types: Mapping[str, str], place: str, session: SparkSession | None
) -> list[Dependent]:
    if len(columns) != len(agg.columns):
        raise UsageError(
            "PARALAGG_AGGREGATOR_COLUMNS",
            f"{agg!r} aggregates {len(agg.columns)} columns together, but gets {', '.join(columns)}",
            value=columns,
            place=place,
            hint="pass aggs={(" + ", ".join(repr(c) for c in agg.columns) + f"): {agg.name}}}",
        )
    for column in columns:
        _check_present(column, types, place)
    results = tuple(agg.result_type(types[c]) for c in columns)
    custom = agg.lawful(results)
    if custom is None:
        from pyspark_paralagg.api.laws import check_laws  # noqa: PLC0415 - pyspark is optional

        custom = check_laws(agg, cast("SparkSession", session), results)
    typed = (Column(c, t) for c, t in zip(columns, results, strict=True))
    return [Dependent(column, agg.name, custom=custom, part=part) for part, column in enumerate(typed)]


def _check_present(column: str, types: Mapping[str, str], place: str) -> None:
    if column not in types:
        raise UsageError(
            "PARALAGG_AGG_COLUMN_MISSING",
            f"the base has no column {column!r}, which aggs names",
            value=column,
            place=place,
            hint=did_you_mean(column, types),
        )


def _check_type(column: str, name: str, types: Mapping[str, str], place: str) -> None:
    _check_present(column, types, place)
    aggregator = AGGREGATORS[name]
    if not aggregator.accepts(types[column]):
        raise UsageError(
            "PARALAGG_AGG_TYPE",
            f"{name} does not support the column {column!r} of type {types[column]}",
            value=types[column],
            place=place,
            hint=f"cast the column in the base and in the step; {name} takes {aggregator.takes}",
        )


def _check_order(d: Dependent, dependents: Sequence[Dependent], place: str) -> None:
    if d.order is None:
        return
    aggregator = d.aggregator.removesuffix("_by")
    if any(o.column.name == d.order and o.aggregator == aggregator for o in dependents):
        return
    raise UsageError(
        "PARALAGG_MIN_BY_ORDER",
        f"{d.column.name!r} follows {d.order!r}, which this relation does not aggregate with {aggregator!r}",
        value=d.order,
        place=place,
        hint=f"pass aggs={{{d.order!r}: {aggregator!r}, {d.column.name!r}: ra.{d.aggregator}({d.order!r})}}",
    )


def _check_supplied(dependents: Sequence[Dependent], place: str) -> None:
    """Check that no column which supplies one aggregate is aggregated by another, because its type may differ."""
    for d in dependents:
        for other in dependents:
            if other is not d and other.column.name in [c.name for c in d.supplied]:
                raise UsageError(
                    "PARALAGG_WITNESS",
                    f"{other.column.name!r} supplies {d.column.name!r} and is also aggregated",
                    value=other.column.name,
                    place=place,
                    hint="use separate columns for them",
                )
