"""Define functions of timestamps: numbers of microseconds in UTC.

``timestamp_ntz`` has no zone. A ``timestamp`` is read on the wall clock of the session's zone where days, months or
truncated hours count. A clock that goes back at 00:01 shows the day before once more: ``date_trunc('DAY', t)`` falls
then. Such functions are monotone only in a zone whose clocks never change.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.functions.calendar import CLOCK_LEVELS, DATE_LEVELS, is_fixed, level_of
from pyspark_paralagg.program.functions.function import Args, Function, Setting, Shape, total
from pyspark_paralagg.program.functions.value_range import (
    MICROSECONDS_PER_DAY,
    Range,
    decimal_digits,
    is_day_time_interval,
    is_float,
    type_range,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.expr import Call
    from pyspark_paralagg.program.functions.function import Strictness
    from pyspark_paralagg.program.functions.value_range import Number

_LESS_THAN_A_DAY = Range(1 - MICROSECONDS_PER_DAY, MICROSECONDS_PER_DAY - 1)
_SHORTEST_MONTH, _LONGEST_MONTH = 28, 31
_SECOND = CLOCK_LEVELS["SECOND"]


def _sum(call: Call, time: Range, interval: Range, setting: Setting) -> Range | None:
    """Return the range of a timestamp plus microseconds, of which only whole days count on the wall clock."""
    if call.type == "timestamp" and not is_fixed(setting.time_zone) and not interval.is_within(_LESS_THAN_A_DAY):
        return None
    return _cut(time.low + interval.low, time.high + interval.high)


def _cut(low: Number, high: Number) -> Range | None:
    """Return the range from ``low`` to ``high`` in 64 bits; beyond them Spark fails in any mode."""
    allowed = type_range("bigint")
    results = None if allowed is None else Range(low, high).intersect(allowed)
    return None if results is None or results.is_empty else results


def _add_interval(call: Call, args: Args, setting: Setting) -> Shape | None:
    """Return the shape of a timestamp plus days to seconds."""
    start, interval = args
    if start is None or interval is None or start.is_empty or interval.is_empty:
        return None
    results = _sum(call, start, interval, setting)
    return total(("up", "up"), results, ("exact", "exact"))


def _add_units(size: int) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of ``timestampadd`` in a unit of ``size`` microseconds."""

    def shape(call: Call, args: Args, setting: Setting) -> Shape | None:
        quantity, start = args
        if start is None or quantity is None or start.is_empty or quantity.is_empty:
            return None
        results = _sum(call, start, Range(quantity.low * size, quantity.high * size), setting)
        return total(("up", "up"), results, ("exact", "exact"))

    return shape


def _add_months(size: int) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of ``timestampadd`` in a unit of ``size`` months, which keeps no order of timestamps.

    The last days of a month may meet, and then the time of day decides (``calendar``).
    """

    def shape(call: Call, args: Args, setting: Setting) -> Shape | None:
        quantity, start = args
        if start is None or quantity is None or start.is_empty or quantity.is_empty:
            return None
        if call.type == "timestamp" and not is_fixed(setting.time_zone):
            return None
        day = MICROSECONDS_PER_DAY * size
        low = start.low + (_LONGEST_MONTH if quantity.low < 0 else _SHORTEST_MONTH) * quantity.low * day
        high = start.high + (_LONGEST_MONTH if quantity.high > 0 else _SHORTEST_MONTH) * quantity.high * day
        results = _cut(low, high)
        return total(("up", "unknown"), results, ("exact", "no"))

    return shape


def _difference(size: int, *, counts_months: bool) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of ``timestampdiff``: whole units from ``start`` to ``end``.

    Months may become more as ``start`` grows: none from January 30th, 18:00, to March 1st, 12:00, and one from January
    31st, 6:00.
    """

    def shape(call: Call, args: Args, setting: Setting) -> Shape | None:
        start, end = args
        if start is None or end is None or start.is_empty or end.is_empty or call.args[0].type != "timestamp":
            return None
        if not is_fixed(setting.time_zone):
            return None
        low, high = end.low - start.high, end.high - start.low
        if counts_months:
            month = _SHORTEST_MONTH * MICROSECONDS_PER_DAY
            results = Range(min(0, low // month), max(0, high // month + 1))
            return Shape(("unknown", "up"), results, ("never", "never"), ("no", "no"))
        ends = _cut(math.trunc(Fraction(low) / size), math.trunc(Fraction(high) / size))
        strict: Strictness = "exact" if size == 1 else "no"
        return total(("down", "up"), ends, (strict, strict))

    return shape


def _interval_between(call: Call, args: Args, setting: Setting) -> Shape | None:
    """Return the shape of a difference as an interval of days to seconds: of dates, or of two wall clock times."""
    end, start = args
    if end is None or start is None or end.is_empty or start.is_empty or not is_day_time_interval(call.type):
        return None
    if call.args[0].type == "timestamp" and not is_fixed(setting.time_zone):
        return None
    size = MICROSECONDS_PER_DAY if call.fn == "SubtractDates" else 1
    results = _cut((end.low - start.high) * size, (end.high - start.low) * size)
    return total(("up", "down"), results, ("exact", "exact"))


def _truncated(call: Call, args: Args, setting: Setting) -> Shape | None:
    """Return the shape of ``date_trunc``; offsets from UTC are whole seconds, so finer units need no zone."""
    level, time = level_of(call.args[0]), args[1]
    if level is None or time is None or time.is_empty:
        return None
    size = CLOCK_LEVELS.get(level) or (DATE_LEVELS[level] + 1) * MICROSECONDS_PER_DAY
    if size > _SECOND and not is_fixed(setting.time_zone):
        return None
    results = Range(time.low - size + 1, time.high)
    allowed = type_range("bigint")
    if allowed is None or not results.is_within(allowed):  # below the least number it would wrap
        return None
    return Shape(("unknown", "up"), results, ("never", "never"), ("no", "exact" if size == 1 else "no"))


def _since_1970(size: int) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of a timestamp as a number of units of ``size`` microseconds, rounded down."""

    def shape(_: Call, args: Args, __: Setting) -> Shape | None:
        [time] = args
        if time is None or time.is_empty:
            return None
        return Shape(("up",), Range(time.low // size, time.high // size), ("never",), ("exact" if size == 1 else "no",))

    return shape


def _from_1970(size: int) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of a number of units of ``size`` microseconds as a timestamp, which fails beyond 64 bits.

    A double saturates, and NaN and the infinities give null. A decimal with fractions of a microsecond fails.
    """

    def shape(call: Call, args: Args, _: Setting) -> Shape | None:
        [number], source = args, call.args[0].type
        if number is None or number.is_empty or number.has_nan or math.inf in number or -math.inf in number:
            return None
        ends = [Fraction(v) * size for v in (number.low, number.high)]
        results = _cut(*map(math.trunc, ends))
        if is_float(source):
            results = type_range("bigint")
            return Shape(("up",), results, ("never",), ("no",))
        is_exact = is_integral(source) or decimal_digits(source) is not None
        return total(("up",), results, ("exact" if is_exact else "no",))

    return shape


UNITS = {
    **{name.capitalize(): (size, False) for name, size in CLOCK_LEVELS.items()},
    "Dayofyear": (MICROSECONDS_PER_DAY, False),
    "Week": (7 * MICROSECONDS_PER_DAY, False),
    "Month": (1, True),
    "Quarter": (3, True),
    "Year": (12, True),
}
"""The units of ``timestampadd`` and ``timestampdiff``: a size in microseconds, or in months."""

_ADDS = tuple(
    Function(f"TimestampAdd{unit}", None, _add_months(size) if is_months else _add_units(size))
    for unit, (size, is_months) in UNITS.items()
)
_DIFFERENCES = tuple(
    Function(f"TimestampDiff{unit}", None, _difference(size, counts_months=is_months))
    for unit, (size, is_months) in UNITS.items()
)

FUNCTIONS = (
    Function("TimestampAddInterval", None, _add_interval),
    Function("TimeAdd", None, _add_interval),
    *_ADDS,
    *_DIFFERENCES,
    Function("SubtractTimestamps", None, _interval_between),
    Function("SubtractDates", None, _interval_between),
    Function("TruncTimestamp", None, _truncated),
    Function("UnixMicros", None, _since_1970(1)),
    Function("UnixMillis", None, _since_1970(CLOCK_LEVELS["MILLISECOND"])),
    Function("UnixSeconds", None, _since_1970(_SECOND)),
    Function("MicrosToTimestamp", None, _from_1970(1)),
    Function("MillisToTimestamp", None, _from_1970(CLOCK_LEVELS["MILLISECOND"])),
    Function("SecondsToTimestamp", None, _from_1970(_SECOND)),
)
