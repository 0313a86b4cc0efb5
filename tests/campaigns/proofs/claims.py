"""Collect what the compiler claims of an expression, and compare it with values."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from pyspark_paralagg.compile.prove.behaviour import Behaviour
from pyspark_paralagg.compile.prove.carried import strict_in
from pyspark_paralagg.compile.prove.claim import Claim as Question
from pyspark_paralagg.compile.prove.claim import Moving, bounds_of
from pyspark_paralagg.compile.prove.monotone import Monotone
from pyspark_paralagg.compile.prove.solve import solve
from pyspark_paralagg.program.expr import Col, Expr, columns, substitute, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.compile.prove.facts import Facts

Row = dict[str, Any]
FAILED = object()
"""Stands for the value of an expression that fails."""
_RANGE = "range and nulls"
_BY_Z3 = {"up": "max", "down": "min"}


@dataclass(frozen=True)
class Case:
    """One expression: the column that improves, which way, and what is assumed of the columns."""

    sql: str
    type: str
    moving: str
    move: Literal["up", "down"]
    facts: Facts
    expr: Expr | None = None


@dataclass(frozen=True)
class Claim:
    """``holds`` is asked of each pair of rows of which the second is as good as the first, and of their results."""

    name: str
    holds: Callable[[Row, Row, Any, Any], bool]


@dataclass(frozen=True)
class Claims:
    """All that is claimed of a case; ``checked``: where overflow is an error, whatever the session says."""

    case: Case
    expr: Expr
    behaviour: Behaviour
    checked: bool
    found: tuple[Claim, ...]

    def broken(self, rows: list[Row], results: list[Any], tell: Callable[[str], None]) -> str | None:
        """The first claim that does not hold of these values; ``tell`` hears the name of each that is compared."""
        case, read = self.case, columns(self.expr)
        kept = [
            n
            for n, r in enumerate(rows)
            if all(_in_facts(case.facts, c, r[c]) for c in read) and results[n] is not FAILED
        ]
        moves = _improves_up if case.move == "up" else _improves_down
        pairs = [
            (a, b)
            for a in kept
            for b in kept
            if rows[a]["j"] == rows[b]["j"] and moves(rows[a][case.moving], rows[b][case.moving])
        ]
        tell(_RANGE)
        at = next(((n, n) for n in kept if not self._in_range(results[n])), None)
        name = _RANGE
        for claim in self.found:
            if at is not None:
                break
            tell(claim.name)
            name = claim.name
            at = next((p for p in pairs if not claim.holds(*(rows[n] for n in p), *(results[n] for n in p))), None)
        if at is None:
            return None
        told = [{c: rows[n][c] for c in sorted(read)} for n in at]
        a, b = (results[n] for n in at)
        return f"{name} is broken: {told[0]} gives {a!r}, {told[1]} gives {b!r}; {self.behaviour}"

    def _in_range(self, value: Any) -> bool:
        if value is None:
            return self.behaviour.is_nullable
        is_number = isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)
        if self.behaviour.range is None or not is_number or getattr(self.expr, "type", "") in ("date", "timestamp"):
            return True
        return _exact(value) in self.behaviour.range


def claims_of(case: Case, expr: Expr) -> Claims:
    """Return the claims of the rule system."""
    system = Monotone({case.moving: case.move}, case.facts)
    found = system.behaviour(expr)
    claims = []
    if case.type == "boolean" and not found.is_const:
        if found.keeps_true:
            claims.append(Claim("true stays true", lambda _a, _b, x, y: x is not True or y is True))
        if found.keeps_false:
            claims.append(Claim("false stays false", lambda _a, _b, x, y: x is not False or y is False))
    if found.move in ("up", "down") and found.presence != "unknown":
        claims.append(_monotone("monotone", found.move))
    is_strict = case.moving in columns(expr) and case.facts.setting.ansi
    if is_strict and strict_in(expr, case.moving, case.facts) == "exact":
        claims.append(_strict(case.moving))
    return Claims(case, expr, found, system.overflows, tuple(claims))


def claims_by_z3(case: Case, expr: Expr) -> Claims:
    """Return the claims that z3 proves if the rules say nothing."""

    def known(c: Col) -> Col:
        return replace(c, nullable=c.name not in case.facts.present)

    of = substitute(expr, known)
    moving = next(c for c in walk(of) if isinstance(c, Col) and c.name == case.moving)
    kind = "filter" if case.type == "boolean" else "value"
    how = _BY_Z3[case.move]
    bounds = bounds_of(case.facts)
    question = Question(kind, (of,), how, (Moving(moving, how),), (), (), bounds, case.facts.setting)
    answer = solve(question)[0]
    claims = []
    if answer.proved and not answer.is_rounded:
        by_z3 = Claim("true stays true, by z3", lambda _a, _b, x, y: x is not True or y is True)
        claims.append(by_z3 if kind == "filter" else _monotone("monotone, by z3", case.move))
    nothing = Behaviour("unknown", "unknown", None, is_nullable=True)
    return Claims(case, expr, nothing, checked=False, found=tuple(claims))


def _monotone(name: str, move: str) -> Claim:
    improves = _improves_up if move == "up" else _improves_down
    return Claim(name, lambda _a, _b, x, y: improves(x, y))


def _strict(moving: str) -> Claim:
    return Claim("strict", lambda a, b, x, y: x is None or _same(a[moving], b[moving]) or _key(x) != _key(y))


def _in_facts(facts: Facts, name: str, value: Any) -> bool:
    if value is None:
        return name not in facts.present
    known = facts.ranges.get(name)
    if known is None or isinstance(value, bool | str):
        return True
    return (int(value / timedelta(microseconds=1)) if isinstance(value, timedelta) else _exact(value)) in known


def _exact(value: Any) -> Any:
    return Fraction(value) if isinstance(value, decimal.Decimal) else value


def _key(value: Any) -> Any:
    if isinstance(value, str):
        return (0, value.encode())
    if isinstance(value, float) and math.isnan(value):
        return (1, 0)
    return (0, value)


def _same(a: Any, b: Any) -> bool:
    return (a is None and b is None) or (a is not None and b is not None and _key(a) == _key(b))


def _improves_up(a: Any, b: Any) -> bool:
    """Whether ``b`` is as good as ``a`` or better; null is worst."""
    return a is None or (b is not None and _key(a) <= _key(b))


def _improves_down(a: Any, b: Any) -> bool:
    return a is None or (b is not None and _key(b) <= _key(a))
