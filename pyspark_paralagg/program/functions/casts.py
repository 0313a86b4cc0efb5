"""Define casts between numbers, booleans, dates, timestamps and intervals, and to texts; other casts are opaque.

A cast may round or saturate, which keeps the order. It may wrap (integers without ANSI rules), or return null (decimals
without ANSI rules, NaN to decimal). If the clocks of a zone change, wall clock times and timestamps differ in order.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.functions import intervals
from pyspark_paralagg.program.functions.arithmetic import fit, to_scale
from pyspark_paralagg.program.functions.calendar import is_fixed
from pyspark_paralagg.program.functions.function import Args, Function, NullWhen, Setting, Shape, Strictness
from pyspark_paralagg.program.functions.value_range import (
    MICROSECONDS_PER_DAY,
    Number,
    Range,
    decimal_digits,
    is_float,
    to_float32,
    type_range,
)

if TYPE_CHECKING:
    from pyspark_paralagg.program.expr import Call

_INTEGERS_IN = {"double": 1 << 53, "float": 1 << 24}
_MICROSECONDS = 1_000_000
_TIMES = ("date", "timestamp", "timestamp_ntz")


def shape(call: Call, args: Args, setting: Setting) -> Shape | None:  # noqa: PLR0911 - a return for each pair of kinds
    """Return the shape of a cast."""
    source, target, [range_] = call.args[0].type, call.type, args
    if source == target:
        return Shape(("up",), range_, ("never",), ("exact",))
    if source == "boolean" and is_numeric(target):
        true_value = 1.0 if is_float(target) else 1
        cut, wraps, to_null = fit(Range(0, true_value), target, setting)
        return Shape(("up",), cut, ("some" if to_null else "never",), ("exact",), wraps)
    if range_ is None or range_.is_empty:
        return None
    if is_numeric(source) and target == "boolean":
        # Everything except zero is true, including NaN.
        return Shape(("up",), None, ("never",), ("no",)) if range_.low >= 0 else None
    if is_numeric(source) and is_numeric(target):
        return _numbers(source, target, range_, setting)
    if source in _TIMES and target in _TIMES:
        return _times(source, target, range_, setting)
    if source == "timestamp" and target == "bigint":
        ends = Range(range_.low // _MICROSECONDS, range_.high // _MICROSECONDS)
        return Shape(("up",), ends, ("never",), ("no",))
    if target == "string":
        return _text(source, range_, setting)
    return intervals.cast_shape(source, target, range_) if source.startswith("interval ") else None


def is_exact(source: str, target: str) -> bool:
    """Return whether every value of ``source`` is a value of ``target``, which the cast keeps.

    >>> is_exact("int", "double"), is_exact("bigint", "double"), is_exact("double", "int")
    (True, False, False)
    """
    if source == target:
        return True
    source_range, target_range = type_range(source), type_range(target)
    if source_range is None or target_range is None or not is_numeric(source) or not is_numeric(target):
        return False
    if is_integral(source):
        limit = _INTEGERS_IN.get(target)
        return source_range.is_within(target_range) if limit is None else source_range.is_within(Range(-limit, limit))
    old, new = decimal_digits(source), decimal_digits(target)
    if old and new:
        return new[1] >= old[1] and source_range.is_within(target_range)
    return (source, target) == ("float", "double")


def convert(value: Any, source: str, target: str) -> Any:  # noqa: ANN401 - a value of any type
    """Return a number as a number of another type, under ANSI rules; raise ``ValueError`` for other casts."""
    if source == target:
        return value
    if isinstance(value, bool | int | float | Fraction) and source != "boolean":
        if is_integral(target):
            whole, allowed = math.trunc(value), type_range(target)
            if allowed is not None and whole not in allowed:
                raise OverflowError(value)
            return whole
        if is_float(target):
            return to_float32(float(value)) if target == "float" else float(value)
        if decimal_digits(target):
            return value
    raise ValueError(target)


def _numbers(source: str, target: str, range_: Range, setting: Setting) -> Shape | None:
    if is_float(target):
        low, high = (_to_float(v, target) for v in (range_.low, range_.high))
        limit = _INTEGERS_IN.get(target, 0)
        is_small = is_integral(source) and range_.is_within(Range(-limit, limit))
        strict: Strictness = "exact" if is_small or is_exact(source, target) else "no"
        if strict == "no" and is_integral(source) and target == "double":
            strict = "rounded"
        return Shape(("up",), Range(low, high, range_.has_nan), ("never",), (strict,))
    null: NullWhen = "never"
    if is_float(source):
        if is_integral(target) and not setting.ansi:
            return _saturated(target, range_)
        if is_integral(target) and range_.has_nan:
            range_ = Range(range_.low, range_.high)  # NaN fails under ANSI rules
        if decimal_digits(target) and (range_.has_nan or math.inf in range_ or -math.inf in range_):
            return None
        if is_integral(target):
            allowed = type_range(target)
            range_ = range_ if allowed is None else range_.intersect(Range(allowed.low - 1, allowed.high + 1))
            if range_.is_empty:
                return None
    digits = decimal_digits(target)
    # A cast to a decimal rounds half up, a cast to an integer truncates: both stay between the rounded bounds.
    is_cut = is_integral(target)
    ends = Range(math.trunc(range_.low), math.trunc(range_.high)) if is_cut else to_scale(range_, target)
    cut, wraps, to_null = fit(ends, target, setting)
    if to_null:
        null = "some"
    is_whole = is_integral(source) or (decimal_digits(source) or (0, 1))[1] <= (digits or (0, 0))[1]
    exact: Strictness = "exact" if is_whole and not is_float(source) else "no"
    return Shape(("up",), cut, (null,), (exact,), wraps)


def _saturated(target: str, range_: Range) -> Shape | None:
    """Return the shape of a float cast to an integer without ANSI rules: it saturates, then wraps in narrow types."""
    wide = type_range("bigint" if target == "bigint" else "int")
    allowed = type_range(target)
    if range_.has_nan or wide is None or allowed is None:
        return None
    low, high = (
        wide.low if v <= wide.low else wide.high if v >= wide.high else math.trunc(v) for v in (range_.low, range_.high)
    )
    results = Range(low, high)
    return Shape(("up",), results.intersect(allowed), ("never",), ("no",), wraps=not results.is_within(allowed))


def _text(source: str, range_: Range, setting: Setting) -> Shape | None:
    """Return the shape of a text that orders as its value: of numbers with as many digits, of years with four."""
    if is_integral(source) and range_.low >= 0 and len(str(range_.low)) == len(str(range_.high)):
        return Shape(("up",), None, ("never",), ("exact",))
    if source == "timestamp" and not is_fixed(setting.time_zone):
        return None
    allowed = type_range(source)
    if source not in _TIMES or allowed is None:
        return None
    slack = MICROSECONDS_PER_DAY if source == "timestamp" else 0
    is_plain = range_.is_within(Range(allowed.low + slack, allowed.high - slack))
    return Shape(("up",), None, ("never",), ("exact",)) if is_plain else None


def _to_float(value: Number, target: str) -> float:
    try:
        return to_float32(float(value)) if target == "float" else float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _times(source: str, target: str, range_: Range, setting: Setting) -> Shape | None:
    is_clock = "timestamp" in (source, target)
    if is_clock and not is_fixed(setting.time_zone):
        # A day begins at its first instant; in zones that skipped a day, two days begin at the same instant.
        if source == "date":
            slack = 2
            days = Range((range_.low - slack) * MICROSECONDS_PER_DAY, (range_.high + slack) * MICROSECONDS_PER_DAY)
            return Shape(("up",), days, ("never",), ("no",))
        return None
    slack = 1 if is_clock else 0
    if source == "date":
        ends = [(range_.low - slack) * MICROSECONDS_PER_DAY, (range_.high + slack) * MICROSECONDS_PER_DAY]
    elif target == "date":
        ends = [range_.low // MICROSECONDS_PER_DAY - slack, range_.high // MICROSECONDS_PER_DAY + slack]
    else:
        ends = [range_.low - slack * MICROSECONDS_PER_DAY, range_.high + slack * MICROSECONDS_PER_DAY]
    strict: Strictness = "no" if target == "date" else "exact"
    return Shape(("up",), Range(ends[0], ends[1]), ("never",), (strict,))


FUNCTIONS = (Function("Cast", None, shape),)
