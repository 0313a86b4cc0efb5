"""Check on sample values that a user-defined aggregator obeys its laws; one Spark job checks all laws.

    commutative    combine(a, b) = combine(b, a)            idempotent    combine(a, a) = a   (else it accumulates)
    associative    combine(combine(a, b), c) = combine(a, combine(b, c))
    improves       improves(a, b) if and only if combine(a, b) is not a
    identity       combine(identity, a) = a                  inverse      inverse(combine(a, b), b) = a

Samples are no proof. They are ordered from simple to complex, so the first counterexample is easy to read.
"""

from __future__ import annotations

import itertools
import json
from functools import reduce
from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from pyspark.sql.types import ArrayType, StructType

from pyspark_paralagg.errors import UsageError, VerificationError
from pyspark_paralagg.lowering.struct_type import struct_of
from pyspark_paralagg.program.custom import Custom
from pyspark_paralagg.session.condition import message_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from pyspark_paralagg.api.user_aggregator import UserAggregator

Values = list["Column"]
_MAX_SAMPLES = 27
"""The largest number of sample values, or tuples of them; the job has its cube as rows."""
_SAMPLES_PER_COLUMN = {1: 9, 2: 4, 3: 3}
# Sums and products of these are exact in doubles, and fit into a byte.
_WHOLE = (1, 2, 3, 0, -1, 5, 4, -2, 7)
_SAMPLES: dict[str, tuple[Any, ...]] = {
    "float": (1.0, 2.0, 0.5, 0.0, -1.0, 3.0, 4.0, -0.25, 8.0),
    "double": (1.0, 2.0, 0.5, 0.0, -1.0, 3.0, 4.0, -0.25, 8.0),
    "boolean": (False, True),
    "binary": (b"a", b"b", b"ab", b"", b"c"),
    "string": ("a", "b", "ab", "", "c"),
    "date": ("2024-01-01", "2024-01-02", "2023-12-31"),
    "timestamp": ("2024-01-01 00:00:00", "2024-01-01 00:00:01", "2023-12-31 12:00:00"),
    "timestamp_ntz": ("2024-01-01 00:00:00", "2024-01-01 00:00:01", "2023-12-31 12:00:00"),
}


def check_laws(aggregator: UserAggregator, session: SparkSession, types: tuple[str, ...]) -> Custom:
    """Return the aggregator over columns of ``types``; check its laws once for these types.

    Raises ``UsageError`` ``PARALAGG_AGGREGATOR_RESULT`` if a lambda does not return values of these types, and
    ``VerificationError`` ``PARALAGG_AGGREGATOR_LAW`` if a law does not hold.
    """
    if types not in aggregator.checked:
        doubts = find_doubts(aggregator, session, types)
        aggregator.checked[types] = Custom(
            aggregator.name, aggregator.columns, aggregator, doubts, aggregator.has_inverse
        )
    return aggregator.checked[types]


def find_doubts(aggregator: UserAggregator, session: SparkSession, types: tuple[str, ...]) -> str | None:
    """Return the counterexample to idempotence, None if the samples have none.

    Raises ``UsageError`` ``PARALAGG_AGGREGATOR_TYPE`` if the lambdas do not accept columns of ``types``, and
    ``VerificationError`` ``PARALAGG_AGGREGATOR_LAW`` with the values that break another law.
    """
    _check_types(aggregator, session, types)
    return _Trial(aggregator, session, types).doubts()


def _check_types(aggregator: UserAggregator, session: SparkSession, types: tuple[str, ...]) -> None:
    row = session.range(1)
    sides: list[Values] = [[F.lit(None).cast(t) for t in types] for _ in range(2)]
    expected = [("combine", list(zip(aggregator.columns, types, strict=True)), aggregator.combined(*sides))]
    if aggregator.has_improves:
        expected.append(("improves", [("it", "boolean")], [aggregator.improved(*sides)]))
    if aggregator.has_inverse:
        expected.append(("inverse", list(zip(aggregator.columns, types, strict=True)), aggregator.inverted(*sides)))
    for function, shape, values in expected:
        try:
            result_types = [t for _, t in row.select(*(v.alias(f"c{n}") for n, v in enumerate(values))).dtypes]
        except PySparkException as problem:
            raise _type_error(
                aggregator, f"{function} over {', '.join(types)}: {_first_line(problem)}", types
            ) from problem
        for (column, type_), actual in zip(shape, result_types, strict=True):
            if actual != type_:
                name = "" if aggregator.is_single or function == "improves" else f" for {column}"
                raise _type_error(aggregator, f"{function} returns {actual}{name}, not {type_}", types)


_RIGHT_TYPES = "return the type of the arguments from combine (.cast(...) helps), and a boolean from improves"


def _type_error(
    aggregator: UserAggregator, message: str, types: tuple[str, ...], hint: str = _RIGHT_TYPES
) -> UsageError:
    return UsageError(
        "PARALAGG_AGGREGATOR_TYPE",
        message,
        value=types,
        place=f"aggregator {aggregator.name}",
        hint=hint,
    )


class _Trial:
    """The check of one aggregator over columns of some types, on rows of three samples each."""

    def __init__(self, aggregator: UserAggregator, session: SparkSession, types: tuple[str, ...]) -> None:
        self._aggregator, self._session, self._types = aggregator, session, types
        self._samples = aggregator.samples or _samples(types)
        n = len(self._samples)
        table = F.array(*(F.struct(*self._literals(s)) for s in self._samples))
        row = F.col("id")
        positions = [F.floor(row / (n * n)), F.floor(row / n) % n, row % n]
        samples = [F.element_at(table, (p + 1).cast("int")) for p in positions]
        columns = [v.alias(s) for v, s in zip(samples, "abc", strict=True)]
        try:
            self._rows = session.range(0, n**3, 1, 1).select("id", *columns)
        except PySparkException as problem:
            message = f"there are no samples of {', '.join(types)}: {_first_line(problem)}"
            raise _type_error(
                aggregator, message, types, "pass samples=[...]: some values, as Python objects"
            ) from problem
        self.a, self.b, self.c = ([F.col(s)[f"c{j}"] for j in range(len(types))] for s in "abc")

    def doubts(self) -> str | None:
        laws = self._laws()
        is_idempotent = _same(self._aggregator.combined(self.a, self.a), self.a)
        checks = [*(holds for _, holds, _ in laws), is_idempotent]
        broken = self._first_broken(checks)
        for (law, _, sides), row in zip(laws, broken, strict=False):
            if row is not None:
                raise VerificationError(
                    "PARALAGG_AGGREGATOR_LAW",
                    f"{law}: {self._describe(row, sides)}",
                    value=self._sample(row)[: 3 if law == "it is not associative" else 2],
                    place=f"aggregator {self._aggregator.name}",
                    hint="correct the functions, or pass samples=[...] if such values never occur",
                )
        if broken[-1] is None:
            return None
        return self._describe(broken[-1], [("combine({a}, {a})", self._aggregator.combined(self.a, self.a))])

    def _laws(self) -> list[tuple[str, Column, list[tuple[str, Values]]]]:
        """Return for each law, in the order of checking: the message of a violation, the condition, and its sides."""
        aggregator, a, b, c = self._aggregator, self.a, self.b, self.c
        ab, ba = aggregator.combined(a, b), aggregator.combined(b, a)
        left, right = aggregator.combined(ab, c), aggregator.combined(a, aggregator.combined(b, c))
        combined = ("combine({a}, {b})", ab)
        is_value = reduce(lambda x, y: x & y, (v.isNotNull() for v in ab))
        laws = [("combine returns null", is_value, [combined])]
        if aggregator.has_improves:
            changes = ~_same(ab, a)
            is_better = F.coalesce(aggregator.improved(a, b), F.lit(False))  # noqa: FBT003 - as Spark has it
            improves = ("improves({a}, {b})", [is_better])
            laws.append(("improves does not agree with combine", is_better == changes, [improves, combined]))
        laws += [
            ("it is not commutative", _same(ab, ba), [combined, ("combine({b}, {a})", ba)]),
            (
                "it is not associative",
                _same(left, right),
                [("combine(combine({a}, {b}), {c})", left), ("combine({a}, combine({b}, {c}))", right)],
            ),
        ]
        if aggregator.identity is not None:
            merged = aggregator.combined(self._literals(aggregator.identity), a)
            text = f"combine({_format_values(aggregator.identity, self._aggregator)}, {{a}})"
            laws.append(("the identity changes values", _same(merged, a), [(text, merged)]))
        if aggregator.has_inverse:
            rest = aggregator.inverted(ab, b)
            text = "inverse(combine({a}, {b}), {b})"
            # A value that combines with itself to itself may absorb all others (0 under *), or is an identity.
            is_kept = _same(rest, a) | _same(aggregator.combined(b, b), b)
            laws.append(("the inverse does not restore the value", is_kept, [(text, rest)]))
        return laws

    def _first_broken(self, laws: Sequence[Column]) -> list[int | None]:
        firsts = [F.min(F.when(~law, F.col("id"))).alias(f"law{n}") for n, law in enumerate(laws)]
        return list(self._run(self._rows.agg(*firsts)))

    def _describe(self, row: int, sides: list[tuple[str, Values]]) -> str:
        values = self._run(self._rows.filter(F.col("id") == row).select(*(v for _, vs in sides for v in vs)))
        sample = dict(zip("abc", (_format_values(s, self._aggregator) for s in self._sample(row)), strict=True))
        parts, start = [], 0
        for text, columns in sides:
            result = values[start : start + len(columns)]
            start += len(columns)
            value = _format_value(result[0]) if len(result) == 1 else _format_values(result, self._aggregator)
            parts.append(f"{text.format(**sample)} is {value}")
        return ", ".join(parts)

    def _run(self, df: DataFrame) -> tuple[Any, ...]:
        try:
            row = df.first()
        except (PySparkException, Py4JJavaError) as problem:  # PySpark 3.5 converts no errors of rows
            message = f"its lambdas fail on samples of {', '.join(self._types)}: {_first_line(problem)}"
            raise UsageError(
                "PARALAGG_AGGREGATOR_RESULT",
                message,
                value=self._types,
                place=f"aggregator {self._aggregator.name}",
                hint="pass samples=[...] if such values never occur",
            ) from problem
        if row is None:
            raise AssertionError
        return tuple(row)

    def _sample(self, row: int) -> list[tuple[Any, ...]]:
        n = len(self._samples)
        return [self._samples[p] for p in (row // (n * n), row // n % n, row % n)]

    def _literals(self, values: Sequence[Any]) -> Values:
        return [_literal(v, t).alias(f"c{j}") for j, (v, t) in enumerate(zip(values, self._types, strict=True))]


def _literal(value: Any, type_: str) -> Column:  # noqa: ANN401 - a value of any type
    if isinstance(value, list | tuple | dict):
        return F.from_json(F.lit(json.dumps(value, default=str)), type_)
    return F.lit(value).cast(type_)


def _samples(types: tuple[str, ...]) -> tuple[tuple[Any, ...], ...]:
    count = _SAMPLES_PER_COLUMN.get(len(types), 2)
    fields = struct_of([(f"c{j}", t) for j, t in enumerate(types)]).fields
    columns = (_samples_of(f.dataType)[:count] for f in fields)
    return tuple(itertools.islice(itertools.product(*columns), _MAX_SAMPLES))


def _samples_of(kind: DataType) -> tuple[Any, ...]:
    """Return sample values of a type. An array is a list in ascending order, a struct is a dict."""
    if isinstance(kind, ArrayType):
        some = sorted(_samples_of(kind.elementType)[:3], key=_position)
        return tuple([*part] for n in range(4) for part in itertools.combinations(some, n))
    if isinstance(kind, StructType):
        values = itertools.product(*(_samples_of(f.dataType)[:2] for f in kind.fields))
        return tuple(dict(zip(kind.names, row, strict=True)) for row in values)
    return _SAMPLES.get(kind.simpleString(), _WHOLE)


def _position(value: Any) -> Any:  # noqa: ANN401 - a value of any type
    """Return a sort key of a sample value in Spark's order."""
    if isinstance(value, dict | list):
        return [_position(v) for v in (value.values() if isinstance(value, dict) else value)]
    return value


def _same(left: Sequence[Column], right: Sequence[Column]) -> Column:
    return reduce(lambda x, y: x & y, (a.eqNullSafe(b) for a, b in zip(left, right, strict=True)))


def _format_values(values: Sequence[Any], aggregator: UserAggregator) -> str:
    return _format_value(values[0]) if aggregator.is_single else f"({', '.join(map(_format_value, values))})"


def _format_value(value: Any) -> str:  # noqa: ANN401 - a value of any type
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return repr(value) if isinstance(value, str) else str(value)


def _first_line(problem: Exception) -> str:
    return message_of(problem).strip().splitlines()[0][:200]
