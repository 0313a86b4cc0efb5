"""Define functions of intervals: numbers of months, or of microseconds.

Results are rounded half up, away from zero, and fail in any mode if they do not fit; so does a division by zero.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.functions.arithmetic import fit
from pyspark_paralagg.program.functions.function import Args, Function, Setting, Shape, from_corners, total
from pyspark_paralagg.program.functions.value_range import MICROSECONDS_PER_DAY, Range, corners, is_float, type_range

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.expr import Call
    from pyspark_paralagg.program.functions.function import Strictness
    from pyspark_paralagg.program.functions.value_range import Number

_DAY, _HOUR, _MINUTE, _SECOND = MICROSECONDS_PER_DAY, 3_600_000_000, 60_000_000, 1_000_000
_MONTHS_PER_YEAR = 12


def _half_up(value: Number) -> int:
    """Return the nearest whole number, half away from zero; raise ``ArithmeticError`` for NaN and infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        raise ArithmeticError(value)
    rounded = math.floor(abs(Fraction(value)) + Fraction(1, 2))
    return rounded if value >= 0 else -rounded


def _product(interval: Number, number: Number) -> int:
    return _half_up(float(interval) * number if isinstance(number, float) else Fraction(interval) * Fraction(number))


def _quotient(interval: Number, number: Number) -> int:
    return _half_up(float(interval) / number if isinstance(number, float) else Fraction(interval) / Fraction(number))


def _scaled(compute: Callable[[Number, Number], int]) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of an interval times or by a number."""

    def shape(call: Call, args: Args, setting: Setting) -> Shape | None:
        interval, number = args
        if interval is None or number is None or interval.is_empty or number.is_empty:
            return None
        source = call.args[1].type
        points = (corners(interval, call.args[0].type), _points(number, source))
        directions, results = from_corners(compute, points)
        if results is None:
            return None
        if not is_integral(source):  # a quotient of decimals is rounded twice
            results = Range(results.low - 1, results.high + 1)
        cut, _, __ = fit(results, call.type, setting)
        is_product = compute is _product and is_integral(source)
        strict: tuple[Strictness, Strictness] = (
            "exact" if is_product and 0 not in number else "no",
            "exact" if is_product and 0 not in interval else "no",
        )
        return Shape(directions, cut, ("never", "never"), strict)

    return shape


def _points(number: Range, type_: str) -> tuple[Number, ...]:
    points = corners(number, type_)
    return tuple(map(float, points)) if is_float(type_) else points


def _made(sizes: tuple[int, ...]) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of an interval made of numbers of units."""

    def shape(call: Call, args: Args, setting: Setting) -> Shape | None:
        low: Number = 0
        high: Number = 0
        for range_, size in zip(args, sizes, strict=True):
            if range_ is None or range_.is_empty:
                return None
            low, high = low + range_.low * size, high + range_.high * size
        cut, _, __ = fit(Range(low, high), call.type, setting)
        return total(["up"] * len(args), cut, ["exact"] * len(args))

    return shape


def _whole_days(call: Call, args: Args, setting: Setting) -> Shape | None:
    """Return the shape of the whole days of an interval."""
    del call, setting
    [interval] = args
    if interval is None or interval.is_empty:
        return None
    low, high = (math.trunc(Fraction(int(end), MICROSECONDS_PER_DAY)) for end in (interval.low, interval.high))
    return Shape(("up",), Range(low, high), ("never",), ("no",))


def cast_shape(source: str, target: str, range_: Range) -> Shape | None:
    """Return the shape of a cast between intervals, which cuts smaller units than the target's last one."""
    if type_range(source) != type_range(target):
        return None
    is_kept = source == target or target.rsplit(maxsplit=1)[-1] in ("second", "month")
    results = range_ if is_kept else Range(min(range_.low, 0), max(range_.high, 0))
    return Shape(("up",), results, ("never",), ("exact" if is_kept else "no",))


FUNCTIONS = (
    *(Function(f"Multiply{kind}Interval", _product, _scaled(_product)) for kind in ("DT", "YM")),
    *(Function(f"Divide{kind}Interval", _quotient, _scaled(_quotient)) for kind in ("DT", "YM")),
    Function("MakeDTInterval", None, _made((_DAY, _HOUR, _MINUTE, _SECOND))),
    Function("MakeYMInterval", None, _made((_MONTHS_PER_YEAR, 1))),
    Function("ExtractANSIIntervalDays", None, _whole_days),
)
