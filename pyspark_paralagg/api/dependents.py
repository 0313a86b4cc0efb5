"""The right sides of ``aggs``, checked and typed: words, ``min_by``, ``mcount``, and the user's own aggregators.

Beside ``relations``, which checks everything else about a relation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from pyspark_paralagg.api.arguments import not_a_name, type_name
from pyspark_paralagg.api.user_aggregator import UserAggregator
from pyspark_paralagg.errors import UsageError, VerificationError
from pyspark_paralagg.program.aggregators import AGGREGATORS, MEAN_OF_MEANS, MaxBy, MCount, MinBy, MSum
from pyspark_paralagg.program.program import Column, Dependent
from pyspark_paralagg.program.schema import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import SparkSession

Aggregation = str | MinBy | MaxBy | MCount | MSum | UserAggregator
"""What stands on the right in ``aggs``."""

_WRITTEN = {"order": "the column that decides", "witnesses": "the column that is a witness"}


def typed_dependents(
    aggs: Mapping[str | tuple[str, ...], Aggregation],
    keys: Sequence[str],
    types: Mapping[str, str],
    place: str,
    session: SparkSession | None,
) -> tuple[Dependent, ...]:
    """The dependents that ``aggs`` declares over a base with columns of these ``types``.

    ``session`` analyses users' own aggregators; without one there may be none.

    Raises ``UsageError`` with one of ``PARALAGG_UNKNOWN_AGGREGATE``, ``PARALAGG_AGG_COLUMN_MISSING``,
    ``PARALAGG_AGG_TYPE``, ``PARALAGG_MIN_BY_ORDER``, ``PARALAGG_WITNESS``, ``PARALAGG_AGGREGATOR_COLUMNS``, and what
    ``laws.typed`` raises.
    """
    found: list[Dependent] = []
    for name, how in aggs.items():
        if isinstance(how, UserAggregator):
            found += _own((name,) if isinstance(name, str) else name, how, types, place, session)
        elif not isinstance(name, str):
            raise UsageError(
                "PARALAGG_AGGREGATOR_COLUMNS",
                f"{how!r} aggregates one column, not {len(name)} together",
                value=name,
                place=place,
                hint="name each column by itself; only ra.aggregator(..., columns=(...)) takes several",
            )
        elif isinstance(how, MCount | MSum):
            _check_names(how.aggregator, (how.value, *how.witnesses), place)
            found.append(_witnessed(name, how, keys, types, place))
        else:
            found.append(_plain(name, how, types, place))
    names = [d.column.name for d in found]
    for n, d in enumerate(found):
        _check_order(d, found, place)
        if d.column.name in names[:n]:
            raise UsageError(
                "PARALAGG_COLUMN_TWICE",
                f"aggs names the column {d.column.name!r} twice",
                value=d.column.name,
                place=place,
                hint="once is enough",
            )
    _check_supplied(found, place)
    return tuple(found)


def _plain(column: str, how: str | MinBy | MaxBy, types: Mapping[str, str], place: str) -> Dependent:
    by_order = isinstance(how, MinBy | MaxBy)
    if not by_order and not isinstance(how, str):  # a Column may not be compared with words
        raise _unknown(column, how, place)
    if isinstance(how, MinBy | MaxBy):
        _check_names(how.aggregator, (how.order,), place)
    name = how.aggregator if isinstance(how, MinBy | MaxBy) else how
    known = AGGREGATORS.get(name)
    if how in ("mean", "avg"):
        raise VerificationError(
            "PARALAGG_NOT_LINEAR",
            f"{how!r} for the column {column!r}, and a mean of means is no mean: {MEAN_OF_MEANS}",
            value=how,
            place=place,
            hint="aggregate a sum and a count, and divide them after the recursion",
        )
    if known is None:
        raise _unknown(column, how, place)
    if (known.parameters == "order") != by_order or known.parameters == "witnesses":
        hint = f'write ra.{known.name}("{_WRITTEN[known.parameters]}")'
        raise _no_aggregate(column, how, place, hint)
    if column not in types and known.counts_rows:
        return Dependent(Column(column, "bigint"), name)
    _check_type(column, name, types, place)
    order = how.order if isinstance(how, MinBy | MaxBy) else None
    return Dependent(Column(column, known.result(types[column])), name, order)


def _unknown(column: str, how: object, place: str) -> UsageError:
    words = [a.name for a in AGGREGATORS.values() if not a.parameters]
    calls = [a.name for a in AGGREGATORS.values() if a.parameters]
    if type_name(how).endswith(".Column"):
        return _no_aggregate(column, how, place, f'name the aggregate: {{{column!r}: "min"}}, not F.min({column!r})')
    return _no_aggregate(column, how, place, did_you_mean(str(getattr(how, "__name__", how)), [*words, *calls]))


def _no_aggregate(column: str, how: object, place: str, hint: str | None) -> UsageError:
    message = f"{how!r} is no aggregate for the column {column!r}"
    return UsageError("PARALAGG_UNKNOWN_AGGREGATE", message, value=how, place=place, hint=hint)


def _check_names(aggregator: str, columns: Sequence[object], place: str) -> None:
    for column in columns:
        if column is not None and not isinstance(column, str):
            raise not_a_name(f"ra.{aggregator}", column, place, "PARALAGG_UNKNOWN_AGGREGATE")


def _witnessed(column: str, how: MCount | MSum, keys: Sequence[str], types: Mapping[str, str], place: str) -> Dependent:
    what, value = how.aggregator, how.value
    if not how.witnesses:
        raise UsageError(
            "PARALAGG_WITNESS",
            f"{how!r} names no witness for the column {column!r}",
            value=how,
            place=place,
            hint='ra.mcount("who") counts who, ra.msum("share", "who") adds up the greatest share of each',
        )
    if column in types and column != value and column not in how.witnesses:
        raise UsageError(
            "PARALAGG_WITNESS",
            f"the base has a column {column!r}, which {how!r} makes",
            value=column,
            place=place,
            hint=f"drop it: base and step supply {', '.join(c for c in (value, *how.witnesses) if c)}",
        )
    for witness in how.witnesses:
        if witness in keys:
            raise UsageError(
                "PARALAGG_WITNESS",
                f"the witness {witness!r} of {column!r} is a key, so there is one for each row",
                value=witness,
                place=place,
                hint="take it out of keys: witnesses are counted for each key",
            )
        _check_type(witness, MCount.aggregator, types, place)
    witnesses = tuple(Column(w, types[w]) for w in how.witnesses)
    if value is None:
        return Dependent(Column(column, "bigint", nullable=False), what, supplied=witnesses)
    _check_type(value, what, types, place)
    if value in keys or value in how.witnesses:
        raise UsageError(
            "PARALAGG_WITNESS",
            f"the contribution {value!r} of {column!r} is a {'key' if value in keys else 'witness'} too",
            value=value,
            place=place,
            hint="give it a column of its own",
        )
    shown = Column(column, AGGREGATORS[what].result(types[value]), nullable=False)
    return Dependent(shown, what, supplied=(Column(value, types[value]), *witnesses))


def _own(
    columns: tuple[str, ...], how: UserAggregator, types: Mapping[str, str], place: str, session: SparkSession | None
) -> list[Dependent]:
    if len(columns) != len(how.columns):
        raise UsageError(
            "PARALAGG_AGGREGATOR_COLUMNS",
            f"{how!r} aggregates {len(how.columns)} columns together, and is given {', '.join(columns)}",
            value=columns,
            place=place,
            hint="aggs={(" + ", ".join(repr(c) for c in how.columns) + f"): {how.name}}}",
        )
    for column in columns:
        _check_present(column, types, place)
    from pyspark_paralagg.api.laws import typed  # noqa: PLC0415 - pyspark is optional

    custom = typed(how, cast("SparkSession", session), tuple(types[c] for c in columns))
    return [Dependent(Column(c, types[c]), how.name, custom=custom, part=part) for part, c in enumerate(columns)]


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
            f"{name} over the column {column!r}, which is {types[column]}",
            value=types[column],
            place=place,
            hint=f"{name} takes {aggregator.takes}; cast the column in the base and in the step",
        )


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


def _check_supplied(dependents: Sequence[Dependent], place: str) -> None:
    """What one aggregate is supplied with is not another's own column, whose type may differ."""
    for d in dependents:
        for other in dependents:
            if other is not d and other.column.name in [c.name for c in d.supplied]:
                raise UsageError(
                    "PARALAGG_WITNESS",
                    f"{other.column.name!r} supplies {d.column.name!r} and is aggregated itself",
                    value=other.column.name,
                    place=place,
                    hint="give one of them a column of its own",
                )
