"""Define arithmetic: + - * / div % on integers, decimals, floats and intervals.

Integers and decimals are exact. A result that does not fit is an error under ANSI rules; without them integers wrap and
decimals become null. Floats round, and have infinities and NaN. Shapes are computed at the corners of the arguments.
"""

from __future__ import annotations

import functools
import math
import operator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.functions.function import Args, Function, NullWhen, Setting, Shape, from_corners
from pyspark_paralagg.program.functions.value_range import (
    Range,
    corners,
    decimal_digits,
    is_float,
    to_float32,
    type_range,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.expr import Call
    from pyspark_paralagg.program.functions.function import Strictness
    from pyspark_paralagg.program.functions.value_range import Number


def truncated(a: Any, b: Any) -> Any:  # noqa: ANN401 - a number of any type
    """Return the quotient of two integers, rounded towards zero."""
    if isinstance(a, float) or isinstance(b, float):
        return math.trunc(a / b)
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def remainder(a: Any, b: Any) -> Any:  # noqa: ANN401 - a number of any type
    """Return the remainder of ``a / b``, with the sign of ``a``."""
    return math.fmod(a, b) if isinstance(a, float) or isinstance(b, float) else a - b * truncated(a, b)


def pmod(a: Any, b: Any) -> Any:  # noqa: ANN401 - a number of any type
    """Return Spark's ``pmod``: the remainder, made positive by adding ``b`` once."""
    rest = remainder(a, b)
    return remainder(rest + b, b) if rest < 0 else rest


def fit(range_: Range, type_: str, setting: Setting) -> tuple[Range, bool, bool]:
    """Return ``range_`` cut to the type's values, whether a result may wrap, and whether it may become null."""
    allowed = type_range(type_)
    if allowed is None or is_float(type_) or range_.is_within(allowed):
        return range_, False, False
    cut = range_.intersect(allowed)
    if setting.ansi or not is_numeric(type_):  # intervals fail in any mode
        return cut, False, False
    return cut, is_integral(type_), not is_integral(type_)


def to_scale(range_: Range, type_: str) -> Range:
    """Return a range with all values of ``range_``, rounded to the scale of a decimal type."""
    digits = decimal_digits(type_)
    if digits is None:
        return range_
    factor = Fraction(10) ** digits[1]
    return Range(
        Fraction(math.floor(Fraction(range_.low) * factor)) / factor,
        Fraction(math.ceil(Fraction(range_.high) * factor)) / factor,
    )


def keeps_scale(call: Call) -> bool:
    """Return whether a decimal result has all digits of the exact one."""
    result = decimal_digits(call.type)
    if result is None:
        return True
    scales = [digits[1] for a in call.args if (digits := decimal_digits(a.type))]
    return result[1] >= (sum(scales) if call.fn == "Multiply" else max(scales, default=0))


def _rounding(compute: Callable[..., Any], type_: str) -> Callable[..., Any]:
    return (lambda *args: to_float32(compute(*args))) if type_ == "float" else compute


@functools.lru_cache(maxsize=4096)
def _analyse(fn: str, type_: str, types: tuple[str, ...], args: Args) -> Any:  # noqa: ANN401 - the result of from_corners
    points = [corners(a, t) for a, t in zip(args, types, strict=True) if a is not None]
    return from_corners(_rounding(_COMPUTE[fn], type_), points)


def _shape(call: Call, args: Args, setting: Setting) -> Shape | None:
    types = tuple(a.type for a in call.args)
    if any(a is None or a.is_empty for a in args):
        return None
    directions, results = _analyse(call.fn, call.type, types, args)
    if results is None:
        return None
    if not keeps_scale(call) or call.fn == "Divide":
        results = to_scale(results, call.type)
    range_, wraps, overflows_to_null = fit(results, call.type, setting)
    nulls: list[NullWhen] = ["some" if overflows_to_null else "never"] * len(types)
    if call.fn in ("Divide", "IntegralDivide", "Remainder", "Pmod") and not setting.ansi and 0 in (args[1] or ()):
        nulls[1] = "some"
    strict = tuple(_strict(call, args, n) for n in range(len(types)))
    return Shape(directions, range_, tuple(nulls), strict, wraps)


def _strict(call: Call, args: Args, n: int) -> Strictness:
    """Return whether results differ if argument ``n`` differs."""
    exact: Strictness = "rounded" if is_float(call.type) else "exact"
    if call.fn in ("UnaryMinus", "UnaryPositive"):
        return "exact"
    if not keeps_scale(call):
        return "no"
    other = args[1 - n] if len(args) == 2 else None  # noqa: PLR2004 - a binary operator
    if other is None or math.inf in other or -math.inf in other or other.has_nan:
        return "no"
    if call.fn in ("Add", "Subtract"):
        return exact
    is_factor = call.fn == "Multiply" or (call.fn == "Divide" and n == 0 and is_float(call.type))
    return exact if is_factor and 0 not in other else "no"


def _remainder_shape(call: Call, args: Args, setting: Setting) -> Shape | None:
    """Return the shape of ``%``, which jumps: only its bounds and its nulls are known."""
    if any(a is None or a.is_empty for a in args) or args[0] is None or args[1] is None:
        return None
    limit: Number = max(args[1].high, -args[1].low)
    low = 0 if call.fn == "Pmod" and args[1].low > 0 else -limit
    can_be_nan = is_float(call.type)
    high = limit if args[0].high > 0 or call.fn == "Pmod" else 0
    low = low if args[0].low < 0 or (call.fn == "Pmod" and args[1].low < 0) else 0
    nulls: NullWhen = "some" if not setting.ansi and 0 in args[1] else "never"
    results, allowed = Range(low, high, can_be_nan), type_range(call.type)
    if is_integral(call.type) and allowed is not None:
        results = results.intersect(allowed)
    return Shape(("unknown",) * 2, results, ("never", nulls), ("no",) * 2)


_COMPUTE: dict[str, Callable[..., Any]] = {
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
    "UnaryMinus": operator.neg,
    "UnaryPositive": operator.pos,
    "Abs": abs,
    "Divide": operator.truediv,
    "IntegralDivide": truncated,
}
_ALGEBRAIC = ("Add", "Subtract", "Multiply", "UnaryMinus", "UnaryPositive")

FUNCTIONS = (
    *(Function(n, compute, _shape, is_algebraic=n in _ALGEBRAIC) for n, compute in _COMPUTE.items()),
    Function("Remainder", remainder, _remainder_shape),
    Function("Pmod", pmod, _remainder_shape),
)


def to_number(value: object, type_: str) -> Number | None:
    """Return a literal's JSON value as an exact number of its type; None if it is no number."""
    is_text = isinstance(value, str) and (is_float(type_) or decimal_digits(type_) is not None)
    if isinstance(value, bool) or not (is_text or isinstance(value, int | float)):
        return None
    if is_float(type_):
        return to_float32(float(value)) if type_ == "float" else float(value)  # type: ignore[arg-type]
    return Fraction(str(value)) if decimal_digits(type_) else int(value) if type_range(type_) else None  # type: ignore[call-overload]
