"""Searches small values for one that refutes a claim, and tells it in the user's own names.

dist=1 improves dist=2, but dist * -1 gives -1, worse than -2
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.evaluate import NotEvaluableError, evaluate
from pyspark_paralagg.compile.signs import ANY, Signs
from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Col, Expr, columns, walk
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TRIES = 20_000
# What comes first is told first: plain numbers before odd ones, small steps before large ones.
_NUMBERS = (1, 2, 3, 5, 10, 100, 0, -1, -5)
_FACTORS = (1, 2, 0, 3, -1, 10)

Assignment = dict[str, Any]


@dataclass(frozen=True)
class Values:
    """The variables of a rule that a claim is about: ``directions`` of those that improve, and known signs of all.

    A direction is the aggregator that improves the variable; the others stay.
    """

    directions: Mapping[str, str]
    facts: Mapping[str, Signs]
    conditions: tuple[Expr, ...] = ()

    def pairs(self, exprs: tuple[Expr, ...]) -> Iterator[tuple[Assignment, Assignment]]:
        """Worse and better values of what ``exprs`` read; only where the rule's conditions hold for both."""
        cols = {e.name: e for x in exprs for e in walk(x) if isinstance(e, Col)}
        moving = [c for c in cols.values() if c.name in self.directions]
        still = [c for c in cols.values() if c.name not in self.directions]
        relevant = [c for c in self.conditions if c not in exprs and columns(c) <= set(cols)]
        tries = itertools.product(
            *(self._samples(c, _FACTORS) for c in still), *(self._improvements(c) for c in moving)
        )
        for chosen in itertools.islice(tries, _TRIES):
            fixed = dict(zip((c.name for c in still), chosen, strict=False))
            steps = dict(zip((c.name for c in moving), chosen[len(still) :], strict=True))
            worse = fixed | {n: s[0] for n, s in steps.items()}
            better = fixed | {n: s[1] for n, s in steps.items()}
            if worse != better and _hold(relevant, worse) and _hold(relevant, better):
                yield worse, better

    def _samples(self, col: Col, numbers: tuple[int, ...]) -> list[Any]:
        allowed = self.facts.get(col.name, ANY)
        if is_numeric(col.type):
            found: list[Any] = [n for n in numbers if (n > 0) - (n < 0) in allowed]
        elif col.type == "boolean":
            found = [False, True]
        elif col.type == "string":
            found = ["a", "b", "c"]
        else:
            found = []
        return found

    def _improvements(self, col: Col) -> list[tuple[Any, Any]]:
        """Pairs (worse, better) under the variable's aggregator, unchanged ones last."""
        values = self._samples(col, _NUMBERS)
        how = self.directions[col.name]
        better = [(a, b) for a, b in itertools.product(values, values) if a != b and improves(how, b, a)]
        if is_numeric(col.type):
            better.sort(key=lambda p: (min(p) <= 0, abs(p[0] - p[1]), abs(p[0]) + abs(p[1])))
        nulls = [(None, v) for v in values] if may_be_null(col) else []
        return better + nulls + [(v, v) for v in values]


def improves(aggregator: str, new: Any, old: Any) -> bool:  # noqa: ANN401 - values of any type
    """Whether ``new`` changes what ``aggregator`` holds when it holds ``old``; a null changes nothing."""
    if new is None or old is None:
        return old is None and new is not None
    match aggregator:
        case "min" | "all":
            return bool(new < old)
        case "max" | "any":
            return bool(new > old)
        case "bit_or":
            return bool((old | new) != old)
        case "bit_and":
            return bool((old & new) != old)
        case _:
            return bool(new != old)


def against_monotone(expr: Expr, aggregator: str, values: Values) -> str | None:
    """Where an improvement of what ``expr`` reads makes ``expr`` worse under ``aggregator``."""
    for worse, better in values.pairs((expr,)):
        try:
            before, after = evaluate(expr, worse), evaluate(expr, better)
        except NotEvaluableError:
            continue
        if before is not None and before != after and improves(aggregator, before, after):
            told = "nothing" if after is None else _number(after, expr.type)
            return f"{_step(worse, better)}, but {show(expr)} gives {told}, worse than {_number(before, expr.type)}"
    return None


def against_filter(condition: Expr, values: Values) -> str | None:
    """Where a row passes ``condition`` and an improved row does not."""
    for worse, better in values.pairs((condition,)):
        try:
            lost = evaluate(condition, worse) is True and evaluate(condition, better) is not True
        except NotEvaluableError:
            continue
        if lost:
            return f"{_step(worse, better)}, but passes {show(condition)} no longer"
    return None


def against_linear(expr: Expr, accumulating: frozenset[str], facts: Mapping[str, Signs]) -> str | None:
    """Where the step of a sum is not the sum of the steps."""
    cols = {e.name: e for e in walk(expr) if isinstance(e, Col)}
    still = [c for c in cols.values() if c.name not in accumulating]
    values = Values({}, facts)
    samples = [values._samples(c, _FACTORS) for c in still]  # noqa: SLF001 - of this module
    for fixed in itertools.islice(itertools.product(*samples), _TRIES):
        for a, b in ((1, 2), (1, 1), (2, 3), (10, 100)):
            rest = dict(zip((c.name for c in still), fixed, strict=True))
            try:
                one, two, both = (evaluate(expr, rest | dict.fromkeys(accumulating, v)) for v in (a, b, a + b))
            except NotEvaluableError:
                continue
            if None not in (one, two, both) and abs(one + two - both) > 1e-9:  # noqa: PLR2004 - rounding
                given = _given(rest)
                name = " and ".join(sorted(accumulating & set(cols))) or next(iter(sorted(accumulating)), "a value")
                numbers = [_number(v, expr.type) for v in (one, two, both, one + two)]
                return (
                    f"{given}{name}={a} and {name}={b} give {numbers[0]} and {numbers[1]}, "
                    f"their sum {name}={a + b} gives {numbers[2]}, not {numbers[3]}"
                )
    return None


def _hold(conditions: list[Expr], values: Assignment) -> bool:
    try:
        return all(evaluate(c, values) is True for c in conditions)
    except NotEvaluableError:
        return False


def _step(worse: Assignment, better: Assignment) -> str:
    changed = [n for n in worse if worse[n] != better[n]]
    rest = {n: v for n, v in worse.items() if n not in changed}
    new = ", ".join(f"{n}={_value(better[n])}" for n in changed)
    old = ", ".join(f"{n}={_value(worse[n])}" for n in changed)
    return f"{_given(rest)}{new} improves {old}"


def _given(rest: Assignment) -> str:
    return f"with {', '.join(f'{n}={_value(v)}' for n, v in rest.items())}: " if rest else ""


def _value(value: Any) -> str:  # noqa: ANN401 - a value of any type
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Any, type_: str) -> str:  # noqa: ANN401 - a value of any type
    return str(int(value)) if is_integral(type_) and isinstance(value, float) else _value(value)
