"""Render a counterexample as text: values of a rule's variables that refute a claim, in the user's names.

dist=1 improves dist=2, but dist * -1 gives -1, worse than -2

Each function evaluates the values first (``rewrite.evaluate``) and returns None if they do not refute the claim, so
false candidates of samples or z3 are never reported.
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
    """The pair (order, carried) of the head's carried ``column``."""

    order: Expr
    carried: Expr
    column: str


def render_monotone(expr: Expr, aggregator: Aggregator, worse: Assignment, better: Assignment) -> str | None:
    """Render how the step from ``worse`` to ``better`` makes ``expr`` worse; None if it does not."""
    values = _evaluate_all(expr, worse, better)
    if values is None or values[0] is None or order_key(values[0]) == order_key(values[1]):
        return None
    before, after = values
    # The value of the better row must be the one that the aggregator keeps of both.
    if not (after is None or aggregator.improves(before, after)):
        return None
    result = "null" if after is None else _number(after, expr.type)
    return f"{_step(worse, better)}, but {show(expr)} gives {result}, worse than {_number(before, expr.type)}"


def render_filter(condition: Expr, worse: Assignment, better: Assignment) -> str | None:
    """Render how the step from ``worse`` to ``better`` loses a row; None if it does not."""
    values = _evaluate_all(condition, worse, better)
    if values is None or values[0] is not True or values[1] is True:
        return None
    return f"{_step(worse, better)}, but no longer passes {show(condition)}"


def render_carried(pair: Carried, labels: AbstractSet[str], worse: Assignment, better: Assignment) -> str | None:
    """Render how the step gives a worse pair; None if it does not. ``labels`` are the carried variables."""
    orders, carried = (_evaluate_all(e, worse, better) for e in (pair.order, pair.carried))
    if orders is None or carried is None or None in orders or orders[0] != orders[1]:
        return None
    if carried[0] == carried[1] or wins(carried[1], carried[0]):
        return None
    changed = [n for n in worse if worse[n] != better[n]]
    replaced = [n for n in changed if n in labels]
    improved = [n for n in changed if n not in labels] or replaced
    context = _context({n: v for n, v in worse.items() if n not in changed})
    step = ", ".join(f"{n}={_value(better[n])} improves {n}={_value(worse[n])}" for n in improved)
    swap = ", ".join(f"{n}={_value(worse[n])} by {n}={_value(better[n])}" for n in replaced if n not in improved)
    return (
        f"{context}{step}{f' and replaces {swap}' if swap else ''}, but {show(pair.order)} stays "
        f"{_number(orders[1], pair.order.type)}, and a tie keeps the smaller {pair.column}"
    )


def render_linear(expr: Expr, accumulating: frozenset[str], left: Assignment, right: Assignment) -> str | None:
    """Render how ``expr`` of the sum differs from the sum of ``expr``; None if it does not."""
    total = sum_of_parts(accumulating, left, right)
    values = _evaluate_all(expr, left, right, total)
    if values is None or any(isinstance(v, bool) for v in values):
        return None
    a, b, ab = (0 if v is None else v for v in values)  # a null adds nothing
    if abs(a + b - ab) <= _ROUNDING * max(1, abs(a), abs(b), abs(ab)):
        return None
    rest = {n: v for n, v in left.items() if n not in accumulating}
    names = sorted(accumulating & set(left))
    parts = [" and ".join(f"{n}={_value(v[n])}" for n in names) or "a value" for v in (left, right, total)]
    numbers = ["null" if v is None else _number(v, expr.type) for v in (*values, a + b)]
    joined = f"{parts[0]} and {parts[1]}" if len(names) == 1 else f"({parts[0]}) and ({parts[1]})"
    apart = f"{joined} give {numbers[0]} and {numbers[1]}"
    return f"{_context(rest)}{apart}, but their sum {parts[2]} gives {numbers[2]}, not {numbers[3]}"


def render_constant(condition: Expr, accumulating: frozenset[str], left: Assignment, right: Assignment) -> str | None:
    """Render how ``condition`` differs between a sum and its parts ``left`` and ``right``; None if it does not."""
    total = sum_of_parts(accumulating, left, right)
    values = _evaluate_all(condition, left, right, total)
    if values is None:
        return None
    passes = [v is True for v in values]
    if passes[0] == passes[1] == passes[2]:
        return None
    names = sorted(accumulating & set(left))
    parts = [" and ".join(f"{n}={_value(v[n])}" for n in names) for v in (left, right, total)]
    how = ["passes" if p else "fails" for p in passes]
    rest = {n: v for n, v in left.items() if n not in accumulating}
    return (
        f"{_context(rest)}{parts[0]} {how[0]} {show(condition)} and {parts[1]} {how[1]}, but their sum "
        f"{parts[2]} {how[2]}: the filter treats a sum differently from its parts"
    )


def sum_of_parts(accumulating: frozenset[str], left: Assignment, right: Assignment) -> Assignment:
    """Return the sum of both assignments in ``accumulating``; a null adds nothing."""
    return left | {
        n: right[n] if left[n] is None else left[n] if right[n] is None else left[n] + right[n] for n in accumulating
    }


def wins(new: Any, old: Any) -> bool:  # noqa: ANN401 - values of any type
    """Return whether ``new`` replaces ``old`` on a tie: the smaller value wins, and any value replaces null."""
    return bool(new is not None and (old is None or order_key(new) < order_key(old)))


def _evaluate_all(expr: Expr, *assignments: Assignment) -> list[Any] | None:
    try:
        return [evaluate(expr, a) for a in assignments]
    except NotEvaluableError:
        return None


def _step(worse: Assignment, better: Assignment) -> str:
    changed = [n for n in worse if worse[n] != better[n]]
    rest = {n: v for n, v in worse.items() if n not in changed}
    new = ", ".join(f"{n}={_value(better[n])}" for n in changed)
    old = ", ".join(f"{n}={_value(worse[n])}" for n in changed)
    return f"{_context(rest)}{new} improves {old}"


def _context(rest: Assignment) -> str:
    return f"with {', '.join(f'{n}={_value(v)}' for n, v in rest.items())}: " if rest else ""


def _value(value: Any) -> str:  # noqa: ANN401 - a value of any type
    return "null" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def _number(value: Any, type_: str) -> str:  # noqa: ANN401 - a value of any type
    return str(int(value)) if is_integral(type_) and isinstance(value, float) else _value(value)
