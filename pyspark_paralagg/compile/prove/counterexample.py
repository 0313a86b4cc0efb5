"""Search small values for a counterexample to a claim; ``render`` turns it into text."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.prove.render import (
    Assignment,
    Carried,
    render_carried,
    render_constant,
    render_filter,
    render_linear,
    render_monotone,
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
"""The most assignments to test; z3 decides the rest."""
_SUMMANDS = ((1, 2), (1, 1), (2, 3), (10, 100), (-1, 2))
# The first hit is reported: plain numbers before odd ones, small steps before large ones.
_NUMBERS = (1, 2, 3, 5, 10, 100, 0, -1, -5)
_FACTORS = (1, 2, 0, 3, -1, 10)
_FRACTIONS = (0.5, -0.5)


@dataclass(frozen=True)
class Values:
    """The variables of a claim: ``directions`` of those that improve, and ``facts`` about all.

    A direction is the aggregator that improves the variable; the others stay. ``orders`` maps a variable that min_by
    carries to its order variable. ``conditions`` hold before and after.
    """

    directions: Mapping[str, Aggregator]
    facts: Facts
    conditions: tuple[Expr, ...] = ()
    orders: Mapping[str, str] = field(default_factory=dict)

    def pairs(self, exprs: tuple[Expr, ...]) -> Iterator[tuple[Assignment, Assignment]]:
        """Yield worse and better values of the variables of ``exprs`` and of related conditions."""
        cols = {e.name: e for x in exprs for e in walk(x) if isinstance(e, Col)}
        unrelated = [c for c in self.conditions if c not in exprs]
        relevant: list[Expr] = []
        while more := [c for c in unrelated if columns(c) & set(cols)]:
            relevant += more
            unrelated = [c for c in unrelated if c not in more]
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
        """Return whether the carried variable ``name`` changes on a tie only if the new value wins."""
        order = self.orders.get(name)
        if order not in worse or worse[order] != better[order] or worse[name] == better[name]:
            return True
        return wins(better[name], worse[name])

    def _improvements(self, col: Col) -> list[tuple[Any, Any]]:
        """Return pairs (worse, better) under the variable's aggregator, unchanged ones last."""
        values = samples_of(col, self.facts, _NUMBERS)
        aggregator = self.directions[col.name]
        # The state after b arrives: for bits and divisors a combination of both, not b itself.
        combined = ((a, aggregator.combine(a, b)) for a, b in itertools.product(values, values))
        better = list(dict.fromkeys((a, b) for a, b in combined if a != b))
        if is_numeric(col.type):
            better.sort(key=lambda p: (any(v % 1 for v in p), min(p) <= 0, abs(p[0] - p[1]), abs(p[0]) + abs(p[1])))
        nulls = [(None, v) for v in values] if may_be_null(col) else []
        return better + nulls + [(v, v) for v in values]


def samples_of(col: Col, facts: Facts, numbers: tuple[int, ...]) -> list[Any]:
    """Return a few possible values of a variable."""
    if is_numeric(col.type):
        allowed = facts.range_of(col)
        candidates = numbers if is_integral(col.type) else (*numbers, *_FRACTIONS)
        return [n for n in candidates if allowed is not None and n in allowed]
    others: dict[str, list[Any]] = {"boolean": [False, True], "string": ["a", "ab", "c"]}
    return others.get(col.type, [])


def against_monotone(expr: Expr, aggregator: Aggregator, values: Values) -> str | None:
    """Return an example where better inputs make ``expr`` worse under ``aggregator``; None if none is found."""
    examples = (render_monotone(expr, aggregator, *pair) for pair in values.pairs((expr,)))
    return next(filter(None, examples), None)


def against_filter(condition: Expr, values: Values) -> str | None:
    """Return an example where a row passes ``condition`` and an improved row does not; None if none is found."""
    examples = (render_filter(condition, *pair) for pair in values.pairs((condition,)))
    return next(filter(None, examples), None)


def against_carried(pair: Carried, deciding: tuple[Col, ...], values: Values) -> str | None:
    """Return an example where a better row gives a worse pair; ``deciding`` are the order columns of its inputs."""
    exprs = (pair.order, *deciding, pair.carried)
    examples = (render_carried(pair, frozenset(values.orders), *p) for p in values.pairs(exprs))
    return next(filter(None, examples), None)


def against_linear(expr: Expr, accumulating: frozenset[str], nullable: frozenset[str], facts: Facts) -> str | None:
    """Return an example where the step of a sum is not the sum of the steps; None if none is found.

    ``nullable`` are those of ``accumulating`` that may be null.
    """
    for rest in _fixed(expr, accumulating, facts):
        pairs: list[tuple[Assignment, Assignment]] = [
            (dict.fromkeys(accumulating, a), dict.fromkeys(accumulating, b)) for a, b in _SUMMANDS
        ]
        pairs += [
            (dict.fromkeys(accumulating, 1) | {n: None}, dict.fromkeys(accumulating, 2)) for n in sorted(nullable)
        ]
        for one, other in pairs:
            example = render_linear(expr, accumulating, rest | one, rest | other)
            if example:
                return example
    return None


def against_constant(condition: Expr, accumulating: frozenset[str], facts: Facts) -> str | None:
    """Return an example where ``condition`` differs between a sum and its parts; None if none is found."""
    for rest in _fixed(condition, accumulating, facts):
        for a, b in itertools.product(_NUMBERS, repeat=2):
            left, right = (rest | dict.fromkeys(accumulating, v) for v in (a, b))
            example = render_constant(condition, accumulating, left, right)
            if example:
                return example
    return None


def _fixed(expr: Expr, accumulating: frozenset[str], facts: Facts) -> Iterator[Assignment]:
    """Yield values of the variables that are not accumulated."""
    still = [c for c in {e.name: e for e in walk(expr) if isinstance(e, Col)}.values() if c.name not in accumulating]
    samples = [samples_of(c, facts, _FACTORS) for c in still]
    for fixed in itertools.islice(itertools.product(*samples), _TRIES // len(_SUMMANDS)):
        yield dict(zip((c.name for c in still), fixed, strict=True))


def _hold(conditions: list[Expr], values: Assignment) -> bool:
    try:
        return all(evaluate(c, values) is True for c in conditions)
    except NotEvaluableError:
        return False
