"""Define functions that round numbers: to whole ones, or to a number of digits."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.program.expr import Call, Lit
from pyspark_paralagg.program.functions.arithmetic import fit
from pyspark_paralagg.program.functions.function import Args, Function, Setting, Shape
from pyspark_paralagg.program.functions.value_range import Range, decimal_digits, is_float, to_float32, type_range

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.functions.value_range import Number

_MAX_DIGITS = 400
"""Enough digits for the whole part of any double."""


def _round_to_whole(compute: Callable[[Any], int]) -> Callable[[Call, Args, Setting], Shape | None]:
    def shape(call: Call, args: Args, setting: Setting) -> Shape | None:
        [range_] = args
        # NaN becomes 0.
        if range_ is None or range_.is_empty or range_.has_nan:
            return None
        ends = [v if math.isinf(v) else compute(v) for v in (range_.low, range_.high)]
        allowed = type_range(call.type)
        if allowed is None:
            return None
        if is_float(call.args[0].type):  # saturates
            low, high = (min(max(v, allowed.low), allowed.high) for v in ends)
            return Shape(("up",), Range(low, high), ("never",), ("no",))
        cut, _, to_null = fit(Range(ends[0], ends[1]), call.type, setting)
        return Shape(("up",), cut, ("some" if to_null else "never",), ("no",))

    return shape


def _moved(value: Number, digits: int, *, is_up: bool) -> Number:
    """Return the bound ``value`` moved outwards by what rounding to ``digits`` can add."""
    step = Fraction(10) ** -digits
    offset = step if is_up else -step
    moved = Fraction(value) + offset
    if not isinstance(value, float):
        return moved
    try:
        return float(moved)
    except OverflowError:
        return math.copysign(math.inf, moved)


def _rounding(mode: str) -> Callable[..., Number]:
    """Return Spark's rounding to a number of digits; a float is rounded by its shortest decimal."""

    def rounded(value: Number, digits: int = 0) -> Number:
        if isinstance(value, float) and not math.isfinite(value):
            return value
        with localcontext() as context:
            context.prec = _MAX_DIGITS
            if isinstance(value, Fraction):
                exact = Decimal(value.numerator) / Decimal(value.denominator)
            else:
                exact = Decimal(repr(value))
            result = exact.quantize(Decimal(1).scaleb(-digits), mode)
        convert = float if isinstance(value, float) else Fraction if isinstance(value, Fraction) else int
        return convert(result)

    return rounded


round_half_up = _rounding(ROUND_HALF_UP)
_floor, _ceiling = _rounding(ROUND_FLOOR), _rounding(ROUND_CEILING)


def _digits(call: Call) -> int | None:
    """Return the constant number of digits to which a call rounds."""
    digits = call.args[1]
    return digits.value if isinstance(digits, Lit) and isinstance(digits.value, int) else None


def _round_shape(call: Call, args: Args, setting: Setting) -> Shape | None:
    range_, digits = args[0], _digits(call)
    if range_ is None or range_.is_empty or digits is None:
        return None
    ends = [
        v if isinstance(v, float) and math.isinf(v) else _moved(v, digits, is_up=up)
        for v, up in ((range_.low, False), (range_.high, True))
    ]
    low = max(ends[0], type(ends[0])(0)) if range_.low >= 0 else ends[0]
    high = min(ends[1], type(ends[1])(0)) if range_.high <= 0 else ends[1]
    if call.type == "float":
        low, high = to_float32(float(low)), to_float32(float(high))
    if decimal_digits(call.type) is None and not is_float(call.type):
        if digits >= 0:
            return Shape(("up", "unknown"), range_, ("never", "never"), ("exact", "no"))
        low, high = math.floor(low), math.ceil(high)
    cut, wraps, to_null = fit(Range(low, high, range_.has_nan), call.type, setting)
    return Shape(("up", "unknown"), cut, ("some" if to_null else "never", "never"), ("no", "no"), wraps)


def _round_one_way(compute: Callable[..., Number]) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of ``floor`` and ``ceil`` with a scale, which Spark has for decimals."""

    def shape(call: Call, args: Args, setting: Setting) -> Shape | None:
        range_, digits = args[0], _digits(call)
        if range_ is None or range_.is_empty or digits is None or decimal_digits(call.type) is None:
            return None
        ends = [Fraction(compute(Fraction(v), digits)) for v in (range_.low, range_.high)]
        cut, _, to_null = fit(Range(ends[0], ends[1]), call.type, setting)
        return Shape(("up", "unknown"), cut, ("some" if to_null else "never", "never"), ("no", "no"))

    return shape


FUNCTIONS = (
    Function("Floor", math.floor, _round_to_whole(math.floor)),
    Function("Ceil", math.ceil, _round_to_whole(math.ceil)),
    Function("Round", round_half_up, _round_shape),
    Function("BRound", _rounding(ROUND_HALF_EVEN), _round_shape),
    Function("RoundFloor", _floor, _round_one_way(_floor)),
    Function("RoundCeil", _ceiling, _round_one_way(_ceiling)),
)
