"""Compute with days of the proleptic Gregorian calendar, as ``java.time`` does: a day is a number of days since 1970.

The functions have whole numbers only, so the engine on ranks compiles them, too.
"""

from __future__ import annotations

# A cycle of 400 years has 146,097 days. Years begin in March here, so that a leap day is the last of its year.
_CYCLE, _FIRST_DAY = 146_097, 719_468


def year_of(day: int) -> int:
    """Return the year of a day.

    >>> year_of(0), year_of(-1), year_of(-719_529)
    (1970, 1969, -1)
    """
    return year_and_month(day) // 12


def month_of(day: int) -> int:
    """Return the month of a day, 1 to 12.

    >>> month_of(0), month_of(59)
    (1, 3)
    """
    return year_and_month(day) % 12 + 1


def year_and_month(day: int) -> int:
    """Return the number of months since the year 0.

    >>> divmod(year_and_month(31), 12)
    (1970, 1)
    """
    shifted = day + _FIRST_DAY
    cycle = shifted // _CYCLE
    in_cycle = shifted - cycle * _CYCLE
    year = (in_cycle - in_cycle // 1_460 + in_cycle // 36_524 - in_cycle // 146_096) // 365
    in_year = in_cycle - (365 * year + year // 4 - year // 100)
    month = (5 * in_year + 2) // 153
    return (year + cycle * 400) * 12 + month + 2


def first_of(months: int) -> int:
    """Return the first day of the month that is so many months after the year 0.

    >>> first_of(1970 * 12), first_of(1970 * 12 + 1)
    (0, 31)
    """
    from_march = months - 2
    year, month = from_march // 12, from_march % 12
    cycle = year // 400
    in_cycle = year - cycle * 400
    day = 365 * in_cycle + in_cycle // 4 - in_cycle // 100 + (153 * month + 2) // 5
    return cycle * _CYCLE + day - _FIRST_DAY


def last_day(day: int) -> int:
    """Return the last day of a day's month.

    >>> last_day(0)
    30
    """
    return first_of(year_and_month(day) + 1) - 1


def day_in_year(day: int) -> int:
    """Return the number of a day in its year, from 1.

    >>> day_in_year(0), day_in_year(-1)
    (1, 365)
    """
    months = year_and_month(day)
    return day - first_of(months - months % 12) + 1


def first_of_period(day: int, months: int) -> int:
    """Return the first day of the period of so many months (1, 3 or 12) that contains a day.

    >>> first_of_period(40, 1), first_of_period(40, 3)
    (31, 0)
    """
    number = year_and_month(day)
    return first_of(number - number % months)


def monday_of(day: int) -> int:
    """Return the Monday of a day's week; 1970-01-01 was a Thursday.

    >>> monday_of(0)
    -3
    """
    return day - (day + 3) % 7


def add_months(day: int, months: int) -> int:
    """Return the same day of another month, or the last one of a shorter month.

    >>> add_months(30, 1)
    58
    """
    first = first_of(year_and_month(day))
    target = first_of(year_and_month(day) + months)
    return min(target + day - first, last_day(target))
