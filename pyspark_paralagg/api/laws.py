"""The laws that a user's aggregator must obey, tried on small values: one Spark job for all laws and all triples.

    commutative    combine(a, b) = combine(b, a)            idempotent    combine(a, a) = a   (else it adds up)
    associative    combine(combine(a, b), c) = combine(a, combine(b, c))
    improves       improves(a, b) exactly where combine(a, b) is not a
    identity       combine(identity, a) = a                  inverse      inverse(combine(a, b), b) = a

Samples are no proof; they come in an order in which what breaks a law first is simple to read.
"""

from __future__ import annotations

import itertools
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it

from pyspark_paralagg.errors import UsageError, VerificationError
from pyspark_paralagg.program.custom import Custom

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession

    from pyspark_paralagg.api.user_aggregator import UserAggregator

Values = list["Column"]
_MOST = 27
"""Sample values, or tuples of them: their cube is the number of rows."""
_A_COLUMN = {1: 9, 2: 4, 3: 3}
# Sums and products of these are exact in doubles, and fit into a byte.
_WHOLE = (1, 2, 3, 0, -1, 5, 4, -2, 7)
_SAMPLES: dict[str, tuple[Any, ...]] = {
    "float": (1.0, 2.0, 0.5, 0.0, -1.0, 3.0, 4.0, -0.25, 8.0),
    "double": (1.0, 2.0, 0.5, 0.0, -1.0, 3.0, 4.0, -0.25, 8.0),
    "boolean": (False, True),
    "string": ("a", "b", "ab", "", "c"),
    "date": ("2024-01-01", "2024-01-02", "2023-12-31"),
    "timestamp": ("2024-01-01 00:00:00", "2024-01-01 00:00:01", "2023-12-31 12:00:00"),
    "timestamp_ntz": ("2024-01-01 00:00:00", "2024-01-01 00:00:01", "2023-12-31 12:00:00"),
}


def typed(of: UserAggregator, session: SparkSession, types: tuple[str, ...]) -> Custom:
    """Return the aggregator over columns of ``types``; its laws are checked once for these types.

    Raises ``UsageError`` ``PARALAGG_AGGREGATOR_RESULT`` where a lambda gives something else than values of these
    types, ``VerificationError`` ``PARALAGG_AGGREGATOR_LAW`` where a law does not hold.
    """
    if types not in of.checked:
        doubts = doubts_of(of, session, types)
        of.checked[types] = Custom(of.name, of.columns, of, doubts, of.has_inverse)
    return of.checked[types]


def doubts_of(of: UserAggregator, session: SparkSession, types: tuple[str, ...]) -> str | None:
    """The counterexample to idempotence, None where the samples have none.

    Raises ``UsageError`` ``PARALAGG_AGGREGATOR_TYPE`` where the lambdas make no sense for columns of ``types``,
    ``VerificationError`` ``PARALAGG_AGGREGATOR_LAW`` with the values that break another law.
    """
    _check_types(of, session, types)
    return _Trial(of, session, types).doubts()


def _check_types(of: UserAggregator, session: SparkSession, types: tuple[str, ...]) -> None:
    one = session.range(1)
    sides: list[Values] = [[F.lit(None).cast(t) for t in types] for _ in range(2)]
    wanted = [("combine", list(zip(of.columns, types, strict=True)), of.combined(*sides))]
    if of.has_improves:
        wanted.append(("improves", [("it", "boolean")], [of.improved(*sides)]))
    if of.has_inverse:
        wanted.append(("inverse", list(zip(of.columns, types, strict=True)), of.inverted(*sides)))
    for what, shape, values in wanted:
        try:
            found = [t for _, t in one.select(*(v.alias(f"c{n}") for n, v in enumerate(values))).dtypes]
        except PySparkException as problem:
            raise _type_error(of, f"{what} over {', '.join(types)}: {_first_line(problem)}", types) from problem
        for (column, type_), is_ in zip(shape, found, strict=True):
            if is_ != type_:
                name = "" if of.is_single or what == "improves" else f" for {column}"
                raise _type_error(of, f"{what} gives {is_}{name}, not {type_}", types)


def _type_error(of: UserAggregator, what: str, types: tuple[str, ...]) -> UsageError:
    return UsageError(
        "PARALAGG_AGGREGATOR_TYPE",
        what,
        value=types,
        place=f"aggregator {of.name}",
        hint="combine gives back what it gets (.cast(...) helps), improves true or false",
    )


class _Trial:
    """One aggregator over columns of some types, on rows of three samples each."""

    def __init__(self, of: UserAggregator, session: SparkSession, types: tuple[str, ...]) -> None:
        self._of, self._session, self._types = of, session, types
        self._samples = of.samples or _samples(types)
        n = len(self._samples)
        table = F.array(*(F.struct(*self._literals(s)) for s in self._samples))
        where = F.col("id")
        at = [F.floor(where / (n * n)), F.floor(where / n) % n, where % n]
        picked = [F.element_at(table, (p + 1).cast("int")) for p in at]
        rows = session.range(0, n**3, 1, 1).select("id", *(p.alias(s) for p, s in zip(picked, "abc", strict=True)))
        self._rows = rows
        self.a, self.b, self.c = ([F.col(s)[f"c{j}"] for j in range(len(types))] for s in "abc")

    def doubts(self) -> str | None:
        laws = self._laws()
        is_idempotent = _same(self._of.combined(self.a, self.a), self.a)
        checks = [*(holds for _, holds, _ in laws), is_idempotent]
        broken = self._first_broken(checks)
        for (law, _, sides), at in zip(laws, broken, strict=False):
            if at is not None:
                raise VerificationError(
                    "PARALAGG_AGGREGATOR_LAW",
                    f"{law}: {self._told(at, sides)}",
                    value=self._sample(at)[: 3 if law == "it is not associative" else 2],
                    place=f"aggregator {self._of.name}",
                    hint="rows come in any order and in any grouping; give samples=[...] if such values never occur",
                )
        if broken[-1] is None:
            return None
        return self._told(broken[-1], [("combine({a}, {a})", self._of.combined(self.a, self.a))])

    def _laws(self) -> list[tuple[str, Column, list[tuple[str, Values]]]]:
        """What to say, the law, and both of its sides; the order is that in which they are told."""
        of, a, b, c = self._of, self.a, self.b, self.c
        ab, ba = of.combined(a, b), of.combined(b, a)
        left, right = of.combined(ab, c), of.combined(a, of.combined(b, c))
        one = ("combine({a}, {b})", ab)
        is_value = reduce(lambda x, y: x & y, (v.isNotNull() for v in ab))
        laws = [("combine gives null", is_value, [one])]
        if of.has_improves:
            changes = ~_same(ab, a)
            better = F.coalesce(of.improved(a, b), F.lit(False))  # noqa: FBT003 - as Spark has it
            said = ("improves({a}, {b})", [better])
            laws.append(("improves does not agree with combine", better == changes, [said, one]))
        laws += [
            ("it is not commutative", _same(ab, ba), [one, ("combine({b}, {a})", ba)]),
            (
                "it is not associative",
                _same(left, right),
                [("combine(combine({a}, {b}), {c})", left), ("combine({a}, combine({b}, {c}))", right)],
            ),
        ]
        if of.identity is not None:
            merged = of.combined(self._literals(of.identity), a)
            told = f"combine({_shown(of.identity, self._of)}, {{a}})"
            laws.append(("the identity changes values", _same(merged, a), [(told, merged)]))
        if of.has_inverse:
            rest = of.inverted(ab, b)
            told = "inverse(combine({a}, {b}), {b})"
            # What combines with itself to itself has swallowed everything, as 0 does under *, or changes nothing.
            kept = _same(rest, a) | _same(of.combined(b, b), b)
            laws.append(("the inverse does not give back what there was", kept, [(told, rest)]))
        return laws

    def _first_broken(self, laws: Sequence[Column]) -> list[int | None]:
        firsts = [F.min(F.when(~law, F.col("id"))).alias(f"law{n}") for n, law in enumerate(laws)]
        return list(self._run(self._rows.agg(*firsts)))

    def _told(self, at: int, sides: list[tuple[str, Values]]) -> str:
        values = self._run(self._rows.filter(F.col("id") == at).select(*(v for _, vs in sides for v in vs)))
        sample = dict(zip("abc", (_shown(s, self._of) for s in self._sample(at)), strict=True))
        parts, taken = [], 0
        for text, columns in sides:
            found = values[taken : taken + len(columns)]
            taken += len(columns)
            shown = _value(found[0]) if len(found) == 1 else _shown(found, self._of)
            parts.append(f"{text.format(**sample)} is {shown}")
        return ", ".join(parts)

    def _run(self, df: DataFrame) -> tuple[Any, ...]:
        try:
            row = df.first()
        except PySparkException as problem:
            what = f"its lambdas fail on samples of {', '.join(self._types)}: {_first_line(problem)}"
            raise UsageError(
                "PARALAGG_AGGREGATOR_RESULT",
                what,
                value=self._types,
                place=f"aggregator {self._of.name}",
                hint="give samples=[...] if such values never occur",
            ) from problem
        if row is None:
            raise AssertionError
        return tuple(row)

    def _sample(self, at: int) -> list[tuple[Any, ...]]:
        n = len(self._samples)
        return [self._samples[p] for p in (at // (n * n), at // n % n, at % n)]

    def _literals(self, values: Sequence[Any]) -> Values:
        return [F.lit(v).cast(t).alias(f"c{j}") for j, (v, t) in enumerate(zip(values, self._types, strict=True))]


def _samples(types: tuple[str, ...]) -> tuple[tuple[Any, ...], ...]:
    each = _A_COLUMN.get(len(types), 2)
    columns = [_SAMPLES.get(t, _WHOLE)[:each] for t in types]
    return tuple(itertools.islice(itertools.product(*columns), _MOST))


def _same(left: Sequence[Column], right: Sequence[Column]) -> Column:
    return reduce(lambda x, y: x & y, (a.eqNullSafe(b) for a, b in zip(left, right, strict=True)))


def _shown(values: Sequence[Any], of: UserAggregator) -> str:
    return _value(values[0]) if of.is_single else f"({', '.join(map(_value, values))})"


def _value(value: Any) -> str:  # noqa: ANN401 - a value of any type
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return repr(value) if isinstance(value, str) else str(value)


def _first_line(problem: Exception) -> str:
    return str(problem).strip().splitlines()[0][:200]
