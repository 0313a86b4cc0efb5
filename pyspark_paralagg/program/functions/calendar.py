"""Define functions of dates, timestamps and intervals.

A date is a number of days, a timestamp a number of microseconds in UTC. A function that counts days or months on the
wall clock of a time zone is monotone only if its clocks never go back. Values are assumed to be in the years 1 to 9999,
as Spark documents.
"""

from __future__ import annotations

import math
import operator
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.program.functions.function import Args, Function, Setting, Shape, Strictness
from pyspark_paralagg.program.functions.value_range import MICROSECONDS_PER_DAY, Range, type_range

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.expr import Call

    Directions = tuple[Literal["up", "down"], Literal["up", "down"]]

_FIXED = re.compile(
    r"(UTC|GMT|Z|UT|Etc/(UTC|GMT|UCT|Zulu|Universal|Greenwich)|(UTC|GMT|UT)?[+-]\d{1,2}(:\d{2})?(:\d{2})?)"
)
_SHORTEST_MONTH, _LONGEST_MONTH = 28, 31


def is_fixed(time_zone: str | None) -> bool:
    """Return whether the clocks of a time zone never change.

    >>> is_fixed("+05:30"), is_fixed("America/New_York"), is_fixed(None)
    (True, False, False)
    """
    return time_zone is not None and _FIXED.fullmatch(time_zone) is not None


def _days(directions: Directions) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of a date plus or minus days, which is an ``int`` that wraps silently."""

    def shape(_: Call, args: Args, __: Setting) -> Shape | None:
        date, days = args
        if date is None or days is None or date.is_empty or days.is_empty:
            return None
        sign = 1 if directions[1] == "up" else -1
        offsets = sorted((sign * days.low, sign * days.high))
        results, allowed = Range(date.low + offsets[0], date.high + offsets[1]), type_range("int")
        if allowed is None or not results.is_within(allowed):
            return None
        return Shape(directions, results, ("never", "never"), ("exact", "exact"))

    return shape


def _difference(_: Call, args: Args, __: Setting) -> Shape | None:
    end, start = args
    if end is None or start is None or end.is_empty or start.is_empty:
        return None
    results, allowed = Range(end.low - start.high, end.high - start.low), type_range("int")
    if allowed is None or not results.is_within(allowed):  # the difference of computed dates wraps silently, too
        return None
    return Shape(("up", "down"), results, ("never", "never"), ("exact", "exact"))


def _months(call: Call, args: Args, setting: Setting) -> Shape | None:
    """Return the shape of a date plus months, where the last days of a month may meet; timestamps use wall clocks."""
    start, months = args
    if start is None or months is None or start.is_empty or months.is_empty:
        return None
    is_timestamp = call.type in ("timestamp", "timestamp_ntz")
    if call.type == "timestamp" and not is_fixed(setting.time_zone):
        return None
    day = MICROSECONDS_PER_DAY if is_timestamp else 1
    low = start.low + (_LONGEST_MONTH if months.low < 0 else _SHORTEST_MONTH) * months.low * day
    high = start.high + (_LONGEST_MONTH if months.high > 0 else _SHORTEST_MONTH) * months.high * day
    return Shape(("up", "up"), Range(low, high), ("never", "never"), ("no", "exact"))


def _add_interval(call: Call, args: Args, setting: Setting) -> Shape | None:
    """Return the shape of a timestamp plus days to seconds, where only whole days are counted on the wall clock."""
    start, interval = args
    if start is None or interval is None or start.is_empty or interval.is_empty:
        return None
    less_than_a_day = Range(1 - MICROSECONDS_PER_DAY, MICROSECONDS_PER_DAY - 1)
    if call.type == "timestamp" and not is_fixed(setting.time_zone) and not interval.is_within(less_than_a_day):
        return None
    results = Range(start.low + interval.low, start.high + interval.high)
    return Shape(("up", "up"), results, ("never", "never"), ("exact", "exact"))


def _whole_days(call: Call, args: Args, setting: Setting) -> Shape | None:
    """Return the shape of the whole days of an interval."""
    del call, setting
    [interval] = args
    if interval is None or interval.is_empty:
        return None
    low, high = (math.trunc(Fraction(int(end), MICROSECONDS_PER_DAY)) for end in (interval.low, interval.high))
    return Shape(("up",), Range(low, high), ("never",), ("no",))


def _part(is_clock: bool) -> Callable[[Call, Args, Setting], Shape | None]:  # noqa: FBT001 - it selects one of two shapes
    """Return the shape of a part of a date or timestamp that grows with it."""

    def shape(call: Call, _: Args, setting: Setting) -> Shape | None:
        source = call.args[0].type
        if source == "timestamp" and is_clock and not is_fixed(setting.time_zone):
            return None
        strict: Strictness = "no"
        return Shape(("up",), type_range(call.type), ("never",), (strict,))

    return shape


FUNCTIONS = (
    Function("DateAdd", operator.add, _days(("up", "up"))),
    Function("DateSub", operator.sub, _days(("up", "down"))),
    Function("DateDiff", operator.sub, _difference),
    Function("AddMonths", None, _months),
    Function("DateAddYMInterval", None, _months),
    Function("TimestampAddYMInterval", None, _months),
    Function("TimestampAddInterval", None, _add_interval),
    Function("TimeAdd", None, _add_interval),
    Function("ExtractANSIIntervalDays", None, _whole_days),
    Function("Year", None, _part(is_clock=True)),
    Function("UnixMicros", None, _part(is_clock=False)),
    Function("UnixMillis", None, _part(is_clock=False)),
    Function("UnixSeconds", None, _part(is_clock=False)),
    Function("UnixDate", None, _part(is_clock=False)),
)
