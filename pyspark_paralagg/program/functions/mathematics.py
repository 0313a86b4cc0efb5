"""Define functions of one number that grow with it on their domain.

Outside of their domain logarithms are null, other functions NaN, which is Spark's largest value. Only functions whose
results are monotone *as computed* belong here. Java guarantees this for ``exp``, ``log``, ``atan`` and similar
functions, but not for ``cbrt``, ``sinh``, ``tanh``, nor for the formulas of ``asinh`` and ``acosh``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.program.expr import Call, Lit
from pyspark_paralagg.program.functions.function import Args, Function, Setting, Shape
from pyspark_paralagg.program.functions.value_range import Range, is_nan

if TYPE_CHECKING:
    from collections.abc import Callable


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
    "Rint": Growing(lambda x: float(round(x)) if math.isfinite(x) else x),
    "Signum": Growing(lambda x: math.copysign(1.0, x) if x else 0.0),
    "ToRadians": Growing(math.radians),
    "ToDegrees": Growing(math.degrees),
}


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
    Function("Pow", math.pow, _power_shape),
)
