"""How a counterexample is told: values of a rule's variables that refute a claim, in the user's own names.

dist=1 improves dist=2, but dist * -1 gives -1, worse than -2

Each function evaluates first (``compile.evaluate``), so that what small samples or z3 come up with is told only
where it is true.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.rewrite.evaluate import NotEvaluableError, evaluate
from pyspark_paralagg.program.aggregators import is_integral, order_key
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from pyspark_paralagg.program.aggregators import Aggregator
    from pyspark_paralagg.program.expr import Expr

Assignment = dict[str, Any]
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Carried:
    """The pair (order, carried) of a head's ``column``."""

    order: Expr
    carried: Expr
    column: str


def told_monotone(expr: Expr, aggregator: Aggregator, worse: Assignment, better: Assignment) -> str | None:
    """How the step from ``worse`` to ``better`` makes ``expr`` worse; None if it does not."""
    found = _evaluated(expr, worse, better)
    if found is None or found[0] is None or order_key(found[0]) == order_key(found[1]):
        return None
    before, after = found
    # What a later row gives must be what the aggregator would keep of both.
    if not (after is None or aggregator.improves(before, after)):
        return None
    told = "nothing" if after is None else _number(after, expr.type)
    return f"{_step(worse, better)}, but {show(expr)} gives {told}, worse than {_number(before, expr.type)}"


def told_filter(condition: Expr, worse: Assignment, better: Assignment) -> str | None:
    """How the step from ``worse`` to ``better`` loses a row; None if it does not."""
    found = _evaluated(condition, worse, better)
    if found is None or found[0] is not True or found[1] is True:
        return None
    return f"{_step(worse, better)}, but passes {show(condition)} no longer"


def told_carried(pair: Carried, labels: AbstractSet[str], worse: Assignment, better: Assignment) -> str | None:
    """How the step from ``worse`` to ``better`` gives a worse pair; None if it does not. ``labels`` are carried."""
    orders, carried = (_evaluated(e, worse, better) for e in (pair.order, pair.carried))
    if orders is None or carried is None or None in orders or orders[0] != orders[1]:
        return None
    if carried[0] == carried[1] or wins(carried[1], carried[0]):
        return None
    changed = [n for n in worse if worse[n] != better[n]]
    replaced = [n for n in changed if n in labels]
    improved = [n for n in changed if n not in labels] or replaced
    given = _given({n: v for n, v in worse.items() if n not in changed})
    step = ", ".join(f"{n}={_value(better[n])} improves {n}={_value(worse[n])}" for n in improved)
    swap = ", ".join(f"{n}={_value(worse[n])} by {n}={_value(better[n])}" for n in replaced if n not in improved)
    return (
        f"{given}{step}{f' and replaces {swap}' if swap else ''}, but {show(pair.order)} stays "
        f"{_number(orders[1], pair.order.type)}, where the smaller {pair.column} should win"
    )


def told_linear(expr: Expr, accumulating: frozenset[str], one: Assignment, two: Assignment) -> str | None:
    """How ``expr`` of the sum differs from the sum of ``expr``; None if it does not."""
    both = sum_of_parts(accumulating, one, two)
    found = _evaluated(expr, one, two, both)
    if found is None or None in found or isinstance(found[0], bool):
        return None
    a, b, ab = found
    if abs(a + b - ab) <= _ROUNDING * max(1, abs(a), abs(b), abs(ab)):
        return None
    rest = {n: v for n, v in one.items() if n not in accumulating}
    names = sorted(accumulating & set(one))
    told = [" and ".join(f"{n}={_value(v[n])}" for n in names) or "a value" for v in (one, two, both)]
    numbers = [_number(v, expr.type) for v in (a, b, ab, a + b)]
    joined = f"{told[0]} and {told[1]}" if len(names) == 1 else f"({told[0]}) and ({told[1]})"
    apart = f"{joined} give {numbers[0]} and {numbers[1]}"
    return f"{_given(rest)}{apart}, their sum {told[2]} gives {numbers[2]}, not {numbers[3]}"


def told_constant(condition: Expr, accumulating: frozenset[str], one: Assignment, two: Assignment) -> str | None:
    """How the parts ``one`` and ``two`` of a sum pass ``condition`` otherwise than the sum; None if they do not."""
    both = sum_of_parts(accumulating, one, two)
    found = _evaluated(condition, one, two, both)
    if found is None:
        return None
    passes = [v is True for v in found]
    if passes[0] == passes[1] == passes[2]:
        return None
    names = sorted(accumulating & set(one))
    told = [" and ".join(f"{n}={_value(v[n])}" for n in names) for v in (one, two, both)]
    how = ["passes" if p else "fails" for p in passes]
    rest = {n: v for n, v in one.items() if n not in accumulating}
    return (
        f"{_given(rest)}{told[0]} {how[0]} {show(condition)} and {told[1]} {how[1]}, but their sum {told[2]} {how[2]}: "
        "what was added up in parts cannot be taken back"
    )


def sum_of_parts(accumulating: frozenset[str], one: Assignment, two: Assignment) -> Assignment:
    """What is there once both are added up; a null adds nothing."""
    return one | {n: two[n] if one[n] is None else one[n] if two[n] is None else one[n] + two[n] for n in accumulating}


def wins(new: Any, old: Any) -> bool:  # noqa: ANN401 - values of any type
    """Whether ``new`` is carried beside ``old`` at a tie: the smaller one, and any value beside null."""
    return bool(new is not None and (old is None or order_key(new) < order_key(old)))


def _evaluated(expr: Expr, *assignments: Assignment) -> list[Any] | None:
    try:
        return [evaluate(expr, a) for a in assignments]
    except NotEvaluableError:
        return None


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
