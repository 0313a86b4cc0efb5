"""Define functions of one number that grow with it on their domain.

Outside of their domain logarithms are null, other functions NaN, which is Spark's largest value. Only functions whose
results are monotone *as computed* belong here. Java guarantees this for ``exp``, ``log``, ``atan`` and similar
functions, but not for ``cbrt``, ``sinh``, ``tanh``, nor for the formulas of ``asinh`` and ``acosh``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

from pyspark_paralagg.program.expr import Call, Lit
from pyspark_paralagg.program.functions.arithmetic import fit
from pyspark_paralagg.program.functions.function import Args, Function, Setting, Shape
from pyspark_paralagg.program.functions.value_range import (
    Range,
    decimal_digits,
    is_float,
    is_nan,
    to_float32,
    type_range,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.functions.value_range import Number

_ULPS = 4
"""An upper bound for the difference between Java's and Python's results, in units in the last place."""


@dataclass(frozen=True)
class Growing:
    """A growing function: ``compute`` on the numbers from ``low`` to ``high``.

    Below ``low`` the result is ``outside``, NaN or null; above ``high`` it is NaN. ``is_open``: ``low`` is outside.
    """

    compute: Callable[[float], float]
    low: float = -math.inf
    high: float = math.inf
    is_open: bool = False
    outside: Literal["nan", "null"] = "nan"

    def value(self, x: float) -> float | None:
        """Return Spark's result for ``x``."""
        if is_nan(x):
            return x
        if x < self.low or (self.is_open and x == self.low):
            return None if self.outside == "null" else math.nan
        if x > self.high:
            return math.nan
        try:
            return self.compute(x)
        except OverflowError:
            return math.inf

    def shape(self, _: Call, args: Args, __: Setting) -> Shape | None:
        """Return the shape of the function on a range."""
        [range_] = args
        if range_ is None or range_.is_empty:
            return None
        is_inside = range_.low > self.low or (range_.low == self.low and not self.is_open)
        inside = range_.intersect(Range(math.nextafter(self.low, math.inf) if self.is_open else self.low, self.high))
        ends = [] if inside.low > inside.high else [self.value(float(v)) for v in (inside.low, inside.high)]
        numbers = [v for v in ends if v is not None and not is_nan(v)]
        low, high = min(numbers, default=math.inf), max(numbers, default=-math.inf)
        for _ulp in range(_ULPS):
            low, high = math.nextafter(low, -math.inf), math.nextafter(high, math.inf)
        if low < 0 <= min(numbers, default=-1):  # a rounded result keeps the sign of the exact one
            low = 0.0
        has_nan = range_.has_nan or range_.high > self.high or (self.outside == "nan" and not is_inside)
        direction: Literal["up", "unknown"] = "up" if is_inside or self.outside == "null" else "unknown"
        nulls: Literal["never", "low"] = "low" if self.outside == "null" and not is_inside else "never"
        return Shape((direction,), Range(low, high, has_nan), (nulls,), ("no",))


_GROWING = {
    "Sqrt": Growing(math.sqrt, low=0.0),
    "Exp": Growing(math.exp),
    "Expm1": Growing(math.expm1),
    "Log": Growing(math.log, low=0.0, is_open=True, outside="null"),
    "Log10": Growing(math.log10, low=0.0, is_open=True, outside="null"),
    "Log2": Growing(math.log2, low=0.0, is_open=True, outside="null"),
    "Log1p": Growing(math.log1p, low=-1.0, is_open=True, outside="null"),
    "Atan": Growing(math.atan),
    "Asin": Growing(math.asin, low=-1.0, high=1.0),
    "Signum": Growing(lambda x: math.copysign(1.0, x) if x else 0.0),
    "ToRadians": Growing(math.radians),
    "ToDegrees": Growing(math.degrees),
}


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


def _rounded(value: Number, digits: int, *, is_up: bool) -> Number:
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


def round_half_up(value: Number, digits: int = 0) -> Number:
    """Return Spark's ``round``: half away from zero, by the shortest decimal of a float."""
    if isinstance(value, float) and not math.isfinite(value):
        return value
    text = repr(value) if isinstance(value, float) else str(value)
    exact = Decimal(value.numerator) / Decimal(value.denominator) if isinstance(value, Fraction) else Decimal(text)
    rounded = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP)
    convert = float if isinstance(value, float) else Fraction if isinstance(value, Fraction) else int
    return convert(rounded)


def _round_shape(call: Call, args: Args, setting: Setting) -> Shape | None:
    range_, digits = args[0], call.args[1]
    if range_ is None or range_.is_empty or not isinstance(digits, Lit) or not isinstance(digits.value, int):
        return None
    ends = [
        v if isinstance(v, float) and math.isinf(v) else _rounded(v, digits.value, is_up=up)
        for v, up in ((range_.low, False), (range_.high, True))
    ]
    low = max(ends[0], type(ends[0])(0)) if range_.low >= 0 else ends[0]
    high = min(ends[1], type(ends[1])(0)) if range_.high <= 0 else ends[1]
    if call.type == "float":
        low, high = to_float32(float(low)), to_float32(float(high))
    if decimal_digits(call.type) is None and not is_float(call.type):
        if digits.value >= 0:
            return Shape(("up", "unknown"), range_, ("never", "never"), ("exact", "no"))
        low, high = math.floor(low), math.ceil(high)
    cut, wraps, to_null = fit(Range(low, high, range_.has_nan), call.type, setting)
    return Shape(("up", "unknown"), cut, ("some" if to_null else "never", "never"), ("no", "no"), wraps)


def _power_shape(call: Call, args: Args, _: Setting) -> Shape | None:
    """Return the shape of a power with a constant exponent and a base that is not negative."""
    base, exponent = args[0], call.args[1]
    while isinstance(exponent, Call) and exponent.fn == "Cast":
        exponent = exponent.args[0]
    if base is None or base.is_empty or base.low < 0 or not isinstance(exponent, Lit):
        return None
    if not isinstance(exponent.value, int | float) or not 0 < exponent.value < math.inf:
        return None
    return Shape(("up", "unknown"), Range(0.0, math.inf, base.has_nan), ("never", "never"), ("no", "no"))


FUNCTIONS = (
    *(Function(n, g.value, g.shape) for n, g in _GROWING.items()),
    Function("Floor", math.floor, _round_to_whole(math.floor)),
    Function("Ceil", math.ceil, _round_to_whole(math.ceil)),
    Function("Round", round_half_up, _round_shape),
    Function("Pow", math.pow, _power_shape),
)
