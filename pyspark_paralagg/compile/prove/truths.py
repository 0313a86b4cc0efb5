"""Define the rules of ``monotone`` for booleans, tests of null and NaN, and guards."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.behaviour import (
    FLIPPED,
    NOTHING,
    Behaviour,
    System,
    all_of,
    as_number,
    presence_of,
    truth_move,
)
from pyspark_paralagg.compile.prove.bit_moves import bit_test
from pyspark_paralagg.program.expr import Call, Lit
from pyspark_paralagg.program.functions.value_range import type_range

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.compile.prove.behaviour import Presence


def _comparison(system: System, expr: Call) -> Behaviour:
    left, right = (system.behaviour(a) for a in expr.args)
    if expr.fn.startswith("Greater"):
        left, right = right, left
    presence = presence_of([left.presence, right.presence])
    nullable = left.is_nullable or right.is_nullable
    return Behaviour(all_of([FLIPPED[as_number(left.move)], as_number(right.move)]), presence, None, nullable)


def _equality(system: System, expr: Call) -> Behaviour:
    args = [system.behaviour(a) for a in expr.args]
    presence = presence_of([a.presence for a in args])
    nullable = any(a.is_nullable for a in args)
    if all(a.is_const for a in args):
        return Behaviour("const", "const", None, nullable)
    move = "up" if _is_remainder(system, expr) else bit_test(expr, [a.move for a in args])
    return Behaviour(move, presence, None, nullable)


def _is_remainder(system: System, expr: Call) -> bool:
    """Return whether ``expr`` is ``n % g = 0``: once a gcd divides a number, it always does."""
    rest, zero = expr.args
    return (
        isinstance(rest, Call)
        and rest.fn == "Remainder"
        and [system.behaviour(a).move for a in rest.args] == ["const", "divides"]
        and isinstance(zero, Lit)
        and zero.value == 0
    )


def _logic(system: System, expr: Call) -> Behaviour:
    args = [system.behaviour(a) for a in expr.args]
    nullable = any(a.is_nullable for a in args)
    if all(a.is_const for a in args):
        return Behaviour("const", "const", None, nullable)
    keeps = all(a.keeps_true for a in args), all(a.keeps_false for a in args)
    # Where one argument decides, a null of the other is not seen; it is once that changes.
    presence: Presence = "const" if not nullable else "up" if all(keeps) else "unknown"
    return Behaviour(truth_move(*keeps), presence, None, nullable, keeps)


def _negation(system: System, expr: Call) -> Behaviour:
    [a] = (system.behaviour(x) for x in expr.args)
    return Behaviour(FLIPPED[a.move], a.presence, None, a.is_nullable, a.keeps and (a.keeps[1], a.keeps[0]))


def _null_test(system: System, expr: Call) -> Behaviour:
    [a] = (system.behaviour(x) for x in expr.args)
    stays = {"const": (True, True), "up": (True, False), "unknown": (False, False)}[a.presence]
    is_present = truth_move(*stays)
    return Behaviour(is_present if expr.fn == "IsNotNull" else FLIPPED[is_present])


def _nan_test(system: System, expr: Call) -> Behaviour:
    [a] = (system.behaviour(x) for x in expr.args)
    if a.is_const:
        return Behaviour("const")
    keeps_false = a.move in ("const", "down") and a.presence == "const"
    return Behaviour(truth_move(a.move in ("const", "up") and a.presence != "unknown", keeps_false))


def _as_const(system: System, expr: Call) -> Behaviour:
    """Return ``const`` if all arguments are constant; otherwise ``unknown``."""
    args = [system.behaviour(a) for a in expr.args]
    nullable = expr.nullable and expr.fn != "EqualNullSafe"
    if all(a.is_const for a in args):
        return Behaviour("const", "const", type_range(expr.type), nullable)
    return Behaviour("unknown", "unknown" if nullable else "const", type_range(expr.type), nullable)


def _guarded(system: System, expr: Call) -> Behaviour:
    """Return the behaviour of a guard: never null, since a null ends the query."""
    behaviour = system.behaviour(expr.args[0])
    return replace(behaviour, presence="const", is_nullable=False)


def _raised(_: System, __: Call) -> Behaviour:
    """Return the behaviour of an error: it has no value."""
    return Behaviour("const", "const", NOTHING)


RULES: dict[str, Callable[[System, Call], Behaviour]] = {
    **dict.fromkeys(("LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual"), _comparison),
    **dict.fromkeys(("And", "Or"), _logic),
    **dict.fromkeys(("IsNull", "IsNotNull"), _null_test),
    **dict.fromkeys(("EqualNullSafe", "In", "NaNvl"), _as_const),
    "EqualTo": _equality,
    "Not": _negation,
    "IsNaN": _nan_test,
    "Present": _guarded,
    "RaiseError": _raised,
}
