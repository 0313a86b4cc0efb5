"""Define functions of bits, guards and nulls, which ``compile.prove.monotone`` knows by their names."""

from __future__ import annotations

import math
import operator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.program.expr import ASSERT_UNSIGNED, PACKED, UNPACKED, Call, Lit
from pyspark_paralagg.program.functions.arithmetic import to_number
from pyspark_paralagg.program.functions.function import Args, Function, Setting, Shape, unmoved
from pyspark_paralagg.program.functions.value_range import Range, decimal_digits, type_range

if TYPE_CHECKING:
    from collections.abc import Callable


def _first(value: Any, *_: Any) -> Any:  # noqa: ANN401 - values of any type
    return value


def _not_negative(value: Any, _: Any) -> Any:  # noqa: ANN401 - a number
    if value < 0:
        raise OverflowError(value)
    return value


def _stored(call: Call, _args: Args, _: Setting) -> Shape | None:
    """Return the shape of a decimal as a text of the same order, or of such a text as its decimal."""
    stored = call.args[0].type if call.fn == PACKED else call.type
    if decimal_digits(stored) is None:
        return None
    return Shape(("up",), type_range(call.type), ("never",), ("exact",))


def _unsigned(call: Call, args: Args, _: Setting) -> Shape | None:
    """Return the shape of a difference of unsigned numbers, which is an error if it is negative."""
    if args[0] is None:
        return None
    shape = unmoved(call, args[0].intersect(Range(0, math.inf)), first="up")
    return replace(shape, strict=("exact", *shape.strict[1:]))


def _bits(call: Call, args: Args, _: Setting) -> Shape | None:
    """Return the shape of a bitwise function: ``x & 7`` is between 0 and 7."""
    n, results = len(call.args), type_range(call.type)
    tops = [r.high for r in args if r is not None and r.low >= 0]
    if call.fn == "BitwiseAnd" and tops:
        results = Range(0, min(tops))
    if call.fn == "BitwiseOr" and len(tops) == n and results is not None:
        results = Range(0, results.high)
    return unmoved(call, results)


def _between(call: Call, args: Args, _: Setting) -> Shape | None:
    """Return the shape of a column's guard: its value if between two constants (null: no upper one), else an error."""
    low, high = call.args[1:3]
    if args[0] is None or not isinstance(low, Lit) or not isinstance(high, Lit):
        return None
    minimum, maximum = (to_number(b.value, b.type) for b in (low, high))
    if minimum is None:
        return None
    allowed = args[0].intersect(Range(minimum, math.inf, has_nan=True) if maximum is None else Range(minimum, maximum))
    shape = unmoved(call, allowed, first="up")
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
    Function(PACKED, None, _stored),
    Function(UNPACKED, None, _stored),
)
