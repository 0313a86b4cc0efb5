"""Compute the operators, functors and constraints of a Datalog text on Python values, for the interpreter.

``number`` is an ``int`` of 64 bits, ``float`` a ``float``, ``symbol`` a ``str``. Overflow and division by zero raise.
"""
# ruff: noqa: ANN401  (values of any type)

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

BITS = 64


def _check_range(value: Any) -> Any:
    """Return ``value``. Raise if it is an int of more than 64 bits."""
    if isinstance(value, int) and not -(1 << BITS - 1) <= value < 1 << BITS - 1:
        raise OverflowError(value)
    return value


def _wrap(value: int) -> int:
    """Return the lowest 64 bits, signed, as after a shift."""
    return (value + (1 << BITS - 1)) % (1 << BITS) - (1 << BITS - 1)


def _divide(a: Any, b: Any) -> Any:
    if isinstance(a, float) or isinstance(b, float):
        return a / b
    quotient = abs(a) // abs(b)
    return _check_range(quotient if (a < 0) == (b < 0) else -quotient)


def _range(start: Any, end: Any, step: Any = None) -> list[Any]:
    """Return the numbers from ``start`` up or down to ``end``, exclusive."""
    step = step if step is not None else (1 if start <= end else -1)
    return [start + step * n for n in range(max(0, math.ceil((end - start) / step)))]


OPERATIONS: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: _check_range(a + b),
    "-": lambda a, b: _check_range(a - b),
    "*": lambda a, b: _check_range(a * b),
    "/": _divide,
    "%": lambda a, b: math.fmod(a, b) if isinstance(a, float) or isinstance(b, float) else a - b * _divide(a, b),
    "^": lambda a, b: _check_range(a**b),
    "neg": lambda a: _check_range(-a),
    "band": lambda a, b: a & b,
    "bor": lambda a, b: a | b,
    "bxor": lambda a, b: a ^ b,
    "bnot": lambda a: ~a,
    "bshl": lambda a, b: _wrap(a << b % BITS),
    "bshr": lambda a, b: a >> b % BITS,
    "land": lambda a, b: int(bool(a) and bool(b)),
    "lor": lambda a, b: int(bool(a) or bool(b)),
    "lnot": lambda a: int(not a),
    "min": min,
    "max": max,
    "gcd": math.gcd,
    "cat": lambda *parts: "".join(parts),
    "strlen": len,
    "substr": lambda text, start, length: text[start : start + length],
    "to_string": str,
    "to_symbol": str,
    "to_number": int,
    "to_unsigned": int,
    "to_float": float,
    "range": _range,
}


COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def constrain(name: str, *args: Any) -> bool:
    """Evaluate ``match(pattern, text)``, ``contains(part, text)``, ``true`` or ``false``."""
    match name:
        case "match":
            return re.fullmatch(args[0], args[1]) is not None
        case "contains":
            return args[0] in args[1]
    return name == "true"
