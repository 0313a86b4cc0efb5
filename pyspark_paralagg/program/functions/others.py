"""Bits, texts, guards, and what looks at nulls: functions that ``compile.monotone`` knows by their names."""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.program.expr import ASSERT_UNSIGNED, Call, Lit
from pyspark_paralagg.program.functions.arithmetic import of_number
from pyspark_paralagg.program.functions.function import Args, Function, Setting, Shape, unmoved
from pyspark_paralagg.program.functions.value_range import Range, type_range

if TYPE_CHECKING:
    from collections.abc import Callable


def _substring(text: Any, start: Any, length: Any) -> Any:  # noqa: ANN401 - values of any type
    if start < 1 or length < 0:
        raise ValueError(start)  # Spark counts from the end then
    return text[start - 1 : start - 1 + length]


def _concatenated(*parts: str) -> str:
    return "".join(parts)


def _first(value: Any, *_: Any) -> Any:  # noqa: ANN401 - values of any type
    return value


def _not_negative(value: Any, _: Any) -> Any:  # noqa: ANN401 - a number
    if value < 0:
        raise OverflowError(value)
    return value


def _unsigned(call: Call, args: Args, _: Setting) -> Shape | None:
    """A difference of unsigned numbers: an error where it would be negative."""
    if args[0] is None:
        return None
    shape = unmoved(call, args[0].intersect(Range(0, math.inf)), first="up")
    return replace(shape, strict=("exact", *shape.strict[1:]))


def _length(call: Call, _: Args, __: Setting) -> Shape | None:
    whole = type_range("int")
    if whole is None:
        return None
    return unmoved(call, Range(0, whole.high))


def _bits(call: Call, args: Args, _: Setting) -> Shape | None:
    """Words of bits: ``x & 7`` lies between 0 and 7."""
    n, found = len(call.args), type_range(call.type)
    tops = [r.high for r in args if r is not None and r.low >= 0]
    if call.fn == "BitwiseAnd" and tops:
        found = Range(0, min(tops))
    if call.fn == "BitwiseOr" and len(tops) == n and found is not None:
        found = Range(0, found.high)
    return unmoved(call, found)


def _between(call: Call, args: Args, _: Setting) -> Shape | None:
    """The guard of a column: its value where that lies between two constants (null: no upper one), else an error."""
    low, high = call.args[1:3]
    if args[0] is None or not isinstance(low, Lit) or not isinstance(high, Lit):
        return None
    least, most = (of_number(b.value, b.type) for b in (low, high))
    if least is None:
        return None
    found = args[0].intersect(Range(least, math.inf, has_nan=True) if most is None else Range(least, most))
    shape = unmoved(call, found, first="up")
    return replace(shape, strict=("exact", *shape.strict[1:]))


_COMPARISONS = {
    "EqualTo": operator.eq,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
}
_BITWISE: dict[str, Callable[..., Any]] = {
    "BitwiseOr": operator.or_,
    "BitwiseAnd": operator.and_,
    "BitwiseXor": operator.xor,
    "BitwiseNot": operator.invert,
}

FUNCTIONS = (
    *(Function(n, compute) for n, compute in _COMPARISONS.items()),
    *(Function(n, compute, _bits) for n, compute in _BITWISE.items()),
    Function("Not", operator.not_),
    Function("Between", _first, _between),
    Function(ASSERT_UNSIGNED, _not_negative, _unsigned),
    Function("Present", _first),
    Function("Concat", _concatenated),
    Function("Contains", operator.contains),
    Function("Length", len, _length),
    Function("BitLength", None, _length),
    Function("OctetLength", None, _length),
    Function("Substring", _substring),
)
