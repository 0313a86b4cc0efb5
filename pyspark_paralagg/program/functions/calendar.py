"""Define functions of dates, which are numbers of days, and of months; ``clock`` has those of timestamps.

A function that counts days or months on the wall clock of a time zone is monotone only if its clocks never go back.
Values are assumed to be in the years 1 to 9999, as Spark documents.
"""

from __future__ import annotations

import operator
import re
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.program.expr import Lit
from pyspark_paralagg.program.functions import civil
from pyspark_paralagg.program.functions.function import Args, Function, Setting, Shape, total, unmoved
from pyspark_paralagg.program.functions.value_range import MICROSECONDS_PER_DAY, Range, type_range

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.expr import Call, Expr
    from pyspark_paralagg.program.functions.function import Direction

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
    """Return the shape of a date plus months, where the last days of a month may meet; timestamps use wall clocks.

    Where they meet, the time of day decides: January 30th, 18:00, becomes February 29th, 18:00, and January 31st, 6:00,
    becomes February 29th, 6:00. So timestamps do not keep their order.
    """
    start, months = args
    if start is None or months is None or start.is_empty or months.is_empty:
        return None
    is_timestamp = call.type in ("timestamp", "timestamp_ntz")
    if call.type == "timestamp" and not is_fixed(setting.time_zone):
        return None
    day = MICROSECONDS_PER_DAY if is_timestamp else 1
    low = start.low + (_LONGEST_MONTH if months.low < 0 else _SHORTEST_MONTH) * months.low * day
    high = start.high + (_LONGEST_MONTH if months.high > 0 else _SHORTEST_MONTH) * months.high * day
    return Shape(("unknown" if is_timestamp else "up", "up"), Range(low, high), ("never", "never"), ("no", "exact"))


def _quarter_of(day: int) -> int:
    return (civil.month_of(day) + 2) // 3


def _part(part: Callable[[int], int], *, repeats: bool) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of a part of a date. One that ``repeats`` grows only while the year stays."""

    def shape(call: Call, args: Args, _: Setting) -> Shape | None:
        [days] = args
        if call.args[0].type != "date" or days is None or days.is_empty:
            return None
        low, high = int(days.low), int(days.high)
        if not repeats or civil.year_of(low) == civil.year_of(high):
            return Shape(("up",), Range(part(low), part(high)), ("never",), ("no",))
        return unmoved(call, _PARTS[call.fn])

    return shape


def _moved(least: int, most: int) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of a day near its argument: the last of its month, the first of its week.

    The result is at least ``least`` and at most ``most`` days later. Spark adds days with an ``int`` that wraps.
    """

    def shape(call: Call, args: Args, _: Setting) -> Shape | None:
        days, rest = args[0], call.args[1:]
        if days is None or days.is_empty or not all(isinstance(a, Lit) for a in rest):
            return None
        if call.fn == "TruncDate" and level_of(rest[0]) not in DATE_LEVELS:
            return None
        if call.fn == "NextDay" and not _is_weekday(rest[0]):
            return None
        results, allowed = Range(days.low + least, days.high + most), type_range("int")
        if allowed is None or not results.is_within(allowed):
            return None
        directions: tuple[Direction, ...] = ("up", "unknown")
        return total(directions[: len(call.args)], results, ["no"] * len(call.args))

    return shape


def level_of(unit: Expr) -> str | None:
    """Return the name of the unit to which ``trunc`` and ``date_trunc`` truncate; None if no constant names one.

    >>> level_of(Lit("mm", "string")), level_of(Lit("decade", "string"))
    ('MONTH', None)
    """
    if not isinstance(unit, Lit) or not isinstance(unit.value, str):
        return None
    name = unit.value.upper()
    return _SYNONYMS.get(name, name if name in (*CLOCK_LEVELS, *DATE_LEVELS) else None)


def truncated(day: int, unit: str) -> int:
    """Return Spark's ``trunc`` of a day; raise ``ValueError`` for a unit that gives null."""
    level = level_of(Lit(unit, "string"))
    if level == "WEEK":
        return civil.monday_of(day)
    if level not in DATE_LEVELS:
        raise ValueError(unit)
    return civil.first_of_period(day, {"MONTH": 1, "QUARTER": 3, "YEAR": 12}[level])


def _is_weekday(name: Expr) -> bool:
    return isinstance(name, Lit) and isinstance(name.value, str) and name.value.upper() in _WEEKDAYS


def _same(source: str) -> Callable[[Call, Args, Setting], Shape | None]:
    """Return the shape of a number that stays as it is, and only its type changes."""

    def shape(call: Call, args: Args, _: Setting) -> Shape | None:
        return Shape(("up",), args[0], ("never",), ("exact",)) if call.args[0].type == source else None

    return shape


CLOCK_LEVELS = {
    "MICROSECOND": 1, "MILLISECOND": 1_000, "SECOND": 1_000_000, "MINUTE": 60_000_000, "HOUR": 3_600_000_000,
    "DAY": MICROSECONDS_PER_DAY,
}  # fmt: skip
"""The units of a clock, in microseconds."""
DATE_LEVELS = {"WEEK": 6, "MONTH": 30, "QUARTER": 91, "YEAR": 365}
"""The units of a calendar, with the most days before one day of the same unit."""
_SYNONYMS = {"DD": "DAY", "MON": "MONTH", "MM": "MONTH", "YYYY": "YEAR", "YY": "YEAR"}
_DAY_NAMES = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_WEEKDAYS = {name[:n] for name in _DAY_NAMES for n in (2, 3, len(name))}
_PARTS = {"Quarter": Range(1, 4), "Month": Range(1, 12), "DayOfYear": Range(1, 366)}

FUNCTIONS = (
    Function("DateAdd", operator.add, _days(("up", "up"))),
    Function("DateSub", operator.sub, _days(("up", "down"))),
    Function("DateDiff", operator.sub, _difference),
    Function("AddMonths", civil.add_months, _months),
    Function("DateAddYMInterval", civil.add_months, _months),
    Function("TimestampAddYMInterval", None, _months),
    Function("TruncDate", truncated, _moved(-DATE_LEVELS["YEAR"], 0)),
    Function("LastDay", civil.last_day, _moved(0, 30)),
    Function("NextDay", None, _moved(1, 7)),
    Function("Year", civil.year_of, _part(civil.year_of, repeats=False)),
    Function("Quarter", _quarter_of, _part(_quarter_of, repeats=True)),
    Function("Month", civil.month_of, _part(civil.month_of, repeats=True)),
    Function("DayOfYear", civil.day_in_year, _part(civil.day_in_year, repeats=True)),
    Function("UnixDate", operator.pos, _same("date")),
    Function("DateFromUnixDate", operator.pos, _same("int")),
)
