"""Casts between numbers, truth values, dates and timestamps; casts from and to other types are not analysed.

A cast may round (keeps the order), saturate (likewise), wrap (integers without ANSI rules), or give null (decimals
without ANSI rules, NaN to decimal). A wall clock time in a zone whose clocks change has no order with its timestamp.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.program.aggregators import is_integral, is_numeric
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
    """Return how a cast behaves."""
    source, target, [range_] = call.args[0].type, call.type, args
    if source == target:
        return Shape(("up",), range_, ("never",), ("exact",))
    if source == "boolean" and is_numeric(target):
        one = 1.0 if is_float(target) else 1
        cut, wraps, to_null = fit(Range(0, one), target, setting)
        return Shape(("up",), cut, ("some" if to_null else "never",), ("exact",), wraps)
    if range_ is None or range_.is_empty:
        return None
    if is_numeric(source) and target == "boolean":
        # Everything but zero is true, NaN too.
        return Shape(("up",), None, ("never",), ("no",)) if range_.low >= 0 else None
    if is_numeric(source) and is_numeric(target):
        return _numbers(source, target, range_, setting)
    if source in _TIMES and target in _TIMES:
        return _times(source, target, range_, setting)
    if source == "timestamp" and target == "bigint":
        ends = Range(range_.low // _MICROSECONDS, range_.high // _MICROSECONDS)
        return Shape(("up",), ends, ("never",), ("no",))
    return None


def is_exact(source: str, target: str) -> bool:
    """Whether every value of a numeric type is a value of the other, and the cast keeps it.

    >>> is_exact("int", "double"), is_exact("bigint", "double"), is_exact("double", "int")
    (True, False, False)
    """
    if source == target:
        return True
    of, into = type_range(source), type_range(target)
    if of is None or into is None or not is_numeric(source) or not is_numeric(target):
        return False
    if is_integral(source):
        limit = _INTEGERS_IN.get(target)
        return of.is_within(into) if limit is None else of.is_within(Range(-limit, limit))
    old, new = decimal_digits(source), decimal_digits(target)
    if old and new:
        return new[1] >= old[1] and of.is_within(into)
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
    # Rounded half up into a decimal, cut into an integer: either way the neighbours hold it.
    is_cut = is_integral(target)
    ends = Range(math.trunc(range_.low), math.trunc(range_.high)) if is_cut else to_scale(range_, target)
    cut, wraps, to_null = fit(ends, target, setting)
    if to_null:
        null = "some"
    is_whole = is_integral(source) or (decimal_digits(source) or (0, 1))[1] <= (digits or (0, 0))[1]
    exact: Strictness = "exact" if is_whole and not is_float(source) else "no"
    return Shape(("up",), cut, (null,), (exact,), wraps)


def _saturated(target: str, range_: Range) -> Shape | None:
    """A float as an integer without ANSI rules: NaN is 0, too large is the largest ``int`` or ``bigint``, then cut."""
    wide = type_range("bigint" if target == "bigint" else "int")
    allowed = type_range(target)
    if range_.has_nan or wide is None or allowed is None:
        return None
    low, high = (
        wide.low if v <= wide.low else wide.high if v >= wide.high else math.trunc(v) for v in (range_.low, range_.high)
    )
    found = Range(low, high)
    return Shape(("up",), found.intersect(allowed), ("never",), ("no",), wraps=not found.is_within(allowed))


def _to_float(value: Number, target: str) -> float:
    try:
        return to_float32(float(value)) if target == "float" else float(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _times(source: str, target: str, range_: Range, setting: Setting) -> Shape | None:
    is_clock = "timestamp" in (source, target)
    if is_clock and not is_fixed(setting.time_zone):
        # A day begins where its first moment is: also in zones that left a day out, where two begin together.
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
