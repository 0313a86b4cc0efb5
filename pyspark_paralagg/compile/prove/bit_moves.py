"""Compute directions for ``bit_or``, ``bit_and`` and ``gcd``: how bits of a word or divisors of a number move."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.behaviour import FLIPPED, all_of, as_number
from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.expr import Call, Lit

if TYPE_CHECKING:
    from pyspark_paralagg.program.aggregators import Move

_BITWISE = ("BitwiseOr", "BitwiseAnd", "ShiftLeft", "ShiftRight", "ShiftRightUnsigned")


def bit_move(expr: Call, parts: list[Move]) -> Move | None:  # noqa: PLR0911 - a function a line
    """Return the direction of bits or divisors; None if no argument moves by bits or divisors."""
    if not any(as_number(p) != p for p in parts):
        return None
    if "divides" in parts:
        is_whole = expr.fn in ("Multiply", "UnaryMinus", "Abs", "Cast") and all(
            is_integral(e.type) for e in (expr, *expr.args)
        )
        return "divides" if is_whole and set(parts) <= {"const", "divides"} else "unknown"
    if expr.fn == "BitwiseNot":
        return FLIPPED[parts[0]]
    if expr.fn.startswith("Shift"):
        return parts[0] if parts[1] == "const" else "unknown"
    if expr.fn == "Multiply" and is_integral(expr.type):
        return _shifted(expr, parts)
    if expr.fn == "Cast":
        return parts[0] if is_integral(expr.type) else "unknown"
    return all_of(parts) if expr.fn in _BITWISE else "unknown"


def _shifted(expr: Call, parts: list[Move]) -> Move:
    """Return the direction of a product: a power of two, as in ``d * 2``, shifts every bit."""
    for arg, move in ((expr.args[0], parts[1]), (expr.args[1], parts[0])):
        factor = arg
        while isinstance(factor, Call) and factor.fn == "Cast":
            factor = factor.args[0]
        if isinstance(factor, Lit) and isinstance(factor.value, int) and factor.value > 0:
            return move if factor.value & (factor.value - 1) == 0 else "unknown"
    return "unknown"


def bit_test(expr: Call, parts: list[Move]) -> Move:
    """Return the direction of a bit test: as bits are set, ``mask & 4 = 0`` becomes false, ``mask & 4 = 4`` true."""
    left, right = expr.args
    move = all_of(parts)
    if not move.startswith("bits") or parts[1] != "const":
        return "unknown"
    mirrored: Move = "up" if move == "bits_up" else "down"
    if isinstance(right, Lit) and right.value == 0:
        return FLIPPED[mirrored]
    if isinstance(left, Call) and left.fn == "BitwiseAnd" and right in left.args:
        return mirrored
    return "unknown"
