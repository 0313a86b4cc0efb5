"""Define ranges of values: the possible values of an expression that is not null.

Values are in Spark's order: NaN is above infinity, and -0.0 equals 0.0. Integers, dates (days), timestamps and
intervals (microseconds or months) are Python integers, decimals are fractions, so both are exact. The bounds of doubles
are doubles, so arithmetic on bounds rounds as Spark's arithmetic does.
"""

from __future__ import annotations

import ctypes
import functools
import math
import re
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from pyspark_paralagg.program.aggregators import is_integral

if TYPE_CHECKING:
    from collections.abc import Iterable

Number = int | float | Fraction

MAX = sys.float_info.max
TINY = 5e-324
MAX_32 = float.fromhex("0x1.fffffep127")
TINY_32 = float.fromhex("0x1p-149")
MICROSECONDS_PER_DAY = 86_400_000_000

MAX_DIGITS = 38
"""The most digits of a decimal."""
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DECIMAL = re.compile(r"decimal\((\d+),(-?\d+)\)")
# Spark documents 0001-01-01 to 9999-12-31 for dates and timestamps.
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
_BOUNDS = (-1, 0, 1)


@dataclass(frozen=True)
class Range:
    """All values from ``low`` to ``high``, both included, and NaN if ``has_nan``.

    >>> Range(0, 10).intersect(Range(5, 20))
    Range(low=5, high=10, has_nan=False)
    """

    low: Number
    high: Number
    has_nan: bool = False

    @property
    def is_empty(self) -> bool:
        """Return whether the range has no value."""
        return self.low > self.high and not self.has_nan

    def __contains__(self, value: Number) -> bool:
        return self.has_nan if is_nan(value) else bool(self.low <= value <= self.high)

    def intersect(self, other: Range) -> Range:
        """Return the values that are in both ranges."""
        return Range(max(self.low, other.low), min(self.high, other.high), self.has_nan and other.has_nan)

    def union(self, other: Range) -> Range:
        """Return the smallest range that contains both ranges."""
        if self.is_empty:
            return other
        if other.is_empty:
            return self
        return Range(min(self.low, other.low), max(self.high, other.high), self.has_nan or other.has_nan)

    def is_within(self, other: Range) -> bool:
        """Return whether every value of this range is in ``other``."""
        return self.is_empty or (
            other.low <= self.low and self.high <= other.high and (other.has_nan or not self.has_nan)
        )

    def widened(self, old: Range, limits: Range) -> Range:
        """Return this range with each bound that moved since ``old`` set to a coarse bound, so that iteration ends.

        ``limits`` is the range of the type.
        """
        low = self.low if self.low >= old.low else max((b for b in _BOUNDS if b <= self.low), default=limits.low)
        high = self.high if self.high <= old.high else min((b for b in _BOUNDS if b >= self.high), default=limits.high)
        return Range(max(low, limits.low), min(high, limits.high), self.has_nan)


def is_nan(value: object) -> bool:
    """Return whether ``value`` is the floating-point NaN."""
    return isinstance(value, float) and math.isnan(value)


def is_float(type_: str) -> bool:
    """Return whether ``type_`` is ``float`` or ``double``."""
    return type_ in ("float", "double")


def decimal_digits(type_: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal type, None for other types.

    >>> decimal_digits("decimal(10,2)"), decimal_digits("int")
    ((10, 2), None)
    """
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None


@functools.lru_cache(maxsize=256)
def type_range(type_: str) -> Range | None:  # noqa: PLR0911 - a return for each kind of type
    """Return the range of all values of a type, None for types without numbers (strings, booleans, nested types)."""
    if is_integral(type_):
        limit = 1 << _BITS[type_] - 1
        return Range(-limit, limit - 1)
    if is_float(type_):
        return Range(-math.inf, math.inf, has_nan=True)
    if digits := decimal_digits(type_):
        greatest = Fraction(10 ** digits[0] - 1) / Fraction(10) ** digits[1]
        return Range(-greatest, greatest)
    if type_ == "date":
        return Range(_FIRST_DAY, _LAST_DAY)
    if type_ in ("timestamp", "timestamp_ntz"):
        return Range(_FIRST_DAY * MICROSECONDS_PER_DAY, (_LAST_DAY + 1) * MICROSECONDS_PER_DAY - 1)
    if is_year_month_interval(type_):
        return type_range("int")
    return type_range("bigint") if is_day_time_interval(type_) else None


def union(a: Range | None, b: Range | None) -> Range | None:
    """Return the smallest range that contains both; None if one of them is unknown.

    >>> union(Range(0, 1), Range(5, 9)), union(Range(0, 1), None)
    (Range(low=0, high=9, has_nan=False), None)
    """
    return None if a is None or b is None else a.union(b)


def computed_range(type_: str) -> Range | None:
    """Return the range of computed values: as ``type_range``, but dates and timestamps may leave the years 1 to 9999.

    >>> computed_range("date")
    Range(low=-2147483648, high=2147483647, has_nan=False)
    """
    words = {"date": "int", "timestamp": "bigint", "timestamp_ntz": "bigint"}
    return type_range(words.get(type_, type_))


def is_day_time_interval(type_: str) -> bool:
    """Return whether ``type_`` is an interval of days to seconds, counted in microseconds."""
    return type_.startswith("interval ") and not is_year_month_interval(type_)


def is_year_month_interval(type_: str) -> bool:
    """Return whether ``type_`` is an interval of years and months, counted in months."""
    return type_ in ("interval year to month", "interval year", "interval month")


def unit(type_: str) -> Number:
    """Return the smallest positive value of a numeric type.

    >>> unit("decimal(10,2)"), unit("int")
    (Fraction(1, 100), 1)
    """
    if is_float(type_):
        return TINY if type_ == "double" else TINY_32
    digits = decimal_digits(type_)
    return 1 / Fraction(10) ** digits[1] if digits else 1


def finite(type_: str) -> Range | None:
    """Return the finite values of a floating-point type, without NaN; None for other types."""
    if not is_float(type_):
        return None
    limit = MAX if type_ == "double" else MAX_32
    return Range(-limit, limit)


def corners(range_: Range, type_: str) -> tuple[Number, ...]:
    """Return the values of ``range_`` at which arithmetic changes its behaviour, in Spark's order.

    These are the bounds, zero and its neighbours, one, the largest finite values, the infinities and NaN. Between two
    of them, + - * / are monotone in each argument and have one sign.
    """
    step = unit(type_)
    candidates: set[Number] = {-1, 0, 1, -step, step}
    if decimal_digits(type_):
        candidates = {Fraction(v) for v in candidates}
    if is_float(type_):
        limit = MAX if type_ == "double" else MAX_32
        candidates = {*map(float, candidates), -math.inf, -limit, limit, math.inf}
    points = {v for v in candidates if range_.low <= v <= range_.high}
    if range_.low <= range_.high:
        points |= {range_.low, range_.high}
    return (*sorted(points), *((math.nan,) if range_.has_nan else ()))


def hull(values: Iterable[Number]) -> Range | None:
    """Return the smallest range that contains ``values``; None if there are none."""
    all_values = list(values)
    numbers = [v for v in all_values if not is_nan(v)]
    if not all_values:
        return None
    if not numbers:
        return Range(math.inf, -math.inf, has_nan=True)
    return Range(min(numbers), max(numbers), len(numbers) < len(all_values))


def to_float32(value: float) -> float:
    """Return the nearest value of Spark's type ``float``; too large values become infinite."""
    return ctypes.c_float(value).value
