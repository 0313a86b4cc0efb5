"""Searches small values for some that refute a claim; ``tell`` says them in the user's own names."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.prove.render import (
    Assignment,
    Carried,
    told_carried,
    told_constant,
    told_filter,
    told_linear,
    told_monotone,
    wins,
)
from pyspark_paralagg.compile.rewrite.evaluate import NotEvaluableError, evaluate
from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Col, Expr, columns, walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark_paralagg.compile.prove.facts import Facts
    from pyspark_paralagg.program.aggregators import Aggregator

_TRIES = 600
"""What these do not find is a matter for z3."""
_SUMMANDS = ((1, 2), (1, 1), (2, 3), (10, 100), (-1, 2))
# What comes first is told first: plain numbers before odd ones, small steps before large ones.
_NUMBERS = (1, 2, 3, 5, 10, 100, 0, -1, -5)
_FACTORS = (1, 2, 0, 3, -1, 10)
_FRACTIONS = (0.5, -0.5)


@dataclass(frozen=True)
class Values:
    """The variables of a rule that a claim is about: ``directions`` of those that improve, and what is known of all.

    A direction is the aggregator that improves the variable; the others stay. ``orders`` has the deciding variable of
    what min_by carries. ``conditions`` hold before and after.
    """

    directions: Mapping[str, Aggregator]
    facts: Facts
    conditions: tuple[Expr, ...] = ()
    orders: Mapping[str, str] = field(default_factory=dict)

    def pairs(self, exprs: tuple[Expr, ...]) -> Iterator[tuple[Assignment, Assignment]]:
        """Worse and better values of what ``exprs`` read, and of what conditions tie to it."""
        cols = {e.name: e for x in exprs for e in walk(x) if isinstance(e, Col)}
        left = [c for c in self.conditions if c not in exprs]
        relevant: list[Expr] = []
        while more := [c for c in left if columns(c) & set(cols)]:
            relevant += more
            left = [c for c in left if c not in more]
            cols |= {e.name: e for x in more for e in walk(x) if isinstance(e, Col)}
        moving = [c for c in cols.values() if c.name in self.directions]
        still = [c for c in cols.values() if c.name not in self.directions]
        tries = itertools.product(
            *(samples_of(c, self.facts, _FACTORS) for c in still), *(self._improvements(c) for c in moving)
        )
        for chosen in itertools.islice(tries, _TRIES):
            fixed = dict(zip((c.name for c in still), chosen, strict=False))
            steps = dict(zip((c.name for c in moving), chosen[len(still) :], strict=True))
            worse = fixed | {n: s[0] for n, s in steps.items()}
            better = fixed | {n: s[1] for n, s in steps.items()}
            is_step = worse != better and all(self._follows(n, worse, better) for n in steps)
            if is_step and _hold(relevant, worse) and _hold(relevant, better):
                yield worse, better

    def _follows(self, name: str, worse: Assignment, better: Assignment) -> bool:
        """What is carried changes at a tie only where it wins."""
        decides = self.orders.get(name)
        if decides not in worse or worse[decides] != better[decides] or worse[name] == better[name]:
            return True
        return wins(better[name], worse[name])

    def _improvements(self, col: Col) -> list[tuple[Any, Any]]:
        """Pairs (worse, better) under the variable's aggregator, unchanged ones last."""
        values = samples_of(col, self.facts, _NUMBERS)
        how = self.directions[col.name]
        # What is held after b came: of bits and divisors not b itself, but what both make.
        tried = ((a, how.combine(a, b)) for a, b in itertools.product(values, values))
        better = list(dict.fromkeys((a, b) for a, b in tried if a != b))
        if is_numeric(col.type):
            better.sort(key=lambda p: (any(v % 1 for v in p), min(p) <= 0, abs(p[0] - p[1]), abs(p[0]) + abs(p[1])))
        nulls = [(None, v) for v in values] if may_be_null(col) else []
        return better + nulls + [(v, v) for v in values]


def samples_of(col: Col, facts: Facts, numbers: tuple[int, ...]) -> list[Any]:
    """Return a few values of a variable's type that it can have."""
    if is_numeric(col.type):
        allowed = facts.range_of(col)
        tried = numbers if is_integral(col.type) else (*numbers, *_FRACTIONS)
        return [n for n in tried if allowed is not None and n in allowed]
    others: dict[str, list[Any]] = {"boolean": [False, True], "string": ["a", "ab", "c"]}
    return others.get(col.type, [])


def against_monotone(expr: Expr, aggregator: Aggregator, values: Values) -> str | None:
    """Where an improvement of what ``expr`` reads makes ``expr`` worse under ``aggregator``."""
    found = (told_monotone(expr, aggregator, *pair) for pair in values.pairs((expr,)))
    return next(filter(None, found), None)


def against_filter(condition: Expr, values: Values) -> str | None:
    """Where a row passes ``condition`` and an improved row does not."""
    found = (told_filter(condition, *pair) for pair in values.pairs((condition,)))
    return next(filter(None, found), None)


def against_carried(pair: Carried, deciding: tuple[Col, ...], values: Values) -> str | None:
    """Where a better row gives a worse pair; ``deciding`` are the columns that decide on what is carried to here."""
    exprs = (pair.order, *deciding, pair.carried)
    found = (told_carried(pair, frozenset(values.orders), *p) for p in values.pairs(exprs))
    return next(filter(None, found), None)


def against_linear(expr: Expr, accumulating: frozenset[str], facts: Facts) -> str | None:
    """Where the step of a sum is not the sum of the steps."""
    for rest in _fixed(expr, accumulating, facts):
        for a, b in _SUMMANDS:
            one, two = (rest | dict.fromkeys(accumulating, v) for v in (a, b))
            found = told_linear(expr, accumulating, one, two)
            if found:
                return found
    return None


def against_constant(condition: Expr, accumulating: frozenset[str], facts: Facts) -> str | None:
    """Where parts of a sum pass ``condition`` and the sum does not, or the other way round."""
    for rest in _fixed(condition, accumulating, facts):
        for a, b in itertools.product(_NUMBERS, repeat=2):
            one, two = (rest | dict.fromkeys(accumulating, v) for v in (a, b))
            found = told_constant(condition, accumulating, one, two)
            if found:
                return found
    return None


def _fixed(expr: Expr, accumulating: frozenset[str], facts: Facts) -> Iterator[Assignment]:
    """Values of what is not added up."""
    still = [c for c in {e.name: e for e in walk(expr) if isinstance(e, Col)}.values() if c.name not in accumulating]
    samples = [samples_of(c, facts, _FACTORS) for c in still]
    for fixed in itertools.islice(itertools.product(*samples), _TRIES // len(_SUMMANDS)):
        yield dict(zip((c.name for c in still), fixed, strict=True))


def _hold(conditions: list[Expr], values: Assignment) -> bool:
    try:
        return all(evaluate(c, values) is True for c in conditions)
    except NotEvaluableError:
        return False
