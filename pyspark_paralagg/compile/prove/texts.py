"""Define the rules of ``monotone`` for strings that are made of parts.

Strings compare by bytes, so a part keeps the order if only constants come before it and nothing after it. Behind it
another text decides the order of a string and a longer one: ``a`` < ``ab``, but ``a`` || ``z`` > ``ab`` || ``z``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.behaviour import Behaviour, System, as_number, presence_of
from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.expr import Call, Lit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.aggregators import Move


def _concatenation(system: System, expr: Call) -> Behaviour:
    """Return the behaviour of concat: only a moving last part keeps the order."""
    args = [system.behaviour(a) for a in expr.args]
    nullable = any(a.is_nullable for a in args)
    if all(a.is_const for a in args):
        return Behaviour("const", "const", None, nullable)
    is_last = expr.type == "string" and all(a.is_const for a in args[:-1])
    return Behaviour(args[-1].move if is_last else "unknown", presence_of([a.presence for a in args]), None, nullable)


def _separated(system: System, expr: Call) -> Behaviour:
    """Return the behaviour of concat_ws, which skips nulls: a part that appears makes the text longer, so greater."""
    args = [system.behaviour(a) for a in expr.args]
    separator, last = args[0], args[-1]
    if all(a.is_const for a in args):
        return Behaviour("const", "const", None, separator.is_nullable)
    is_plain = all(a.type == "string" for a in (expr, *expr.args))  # an array has several parts
    is_last = is_plain and len(args) > 1 and all(a.is_const for a in args[:-1])
    move: Move = as_number(last.move) if is_last else "unknown"
    if last.presence == "unknown" or (last.presence == "up" and move not in ("const", "up")):
        move = "unknown"
    elif last.presence == "up":
        move = "up"
    return Behaviour(move, separator.presence, None, separator.is_nullable)


def _padded(system: System, expr: Call) -> Behaviour | None:
    """Return the behaviour of ``lpad(cast(n as string), 8, '0')`` of numbers with at most 8 digits, which order so."""
    text, width, pad = expr.args
    if not isinstance(text, Call) or text.fn != "Cast" or not is_integral(text.args[0].type):
        return None
    if not isinstance(width, Lit) or not isinstance(width.value, int):
        return None
    if not isinstance(pad, Lit) or (pad.value, pad.type, text.type) != ("0", "string", "string"):
        return None
    number = system.behaviour(text.args[0])
    if number.range is None or number.range.low < 0 or number.range.high >= 10**width.value:
        return None
    return Behaviour(as_number(number.move), number.presence, None, number.is_nullable)


RULES: dict[str, Callable[[System, Call], Behaviour | None]] = {
    "Concat": _concatenation,
    "ConcatWs": _separated,
    "StringLPad": _padded,
}
"""A rule that returns None leaves the call to the table of functions."""
