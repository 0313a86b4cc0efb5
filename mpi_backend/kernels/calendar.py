"""Define the calendar that generated code calls, as ``program.functions.civil`` does, and rounding to digits."""

from __future__ import annotations

from mpi_backend.kernels.cache import LEAF, njit

FLOOR, CEILING, HALF_UP = 0, 1, 2
"""The ways to round; any other number is half even."""


@njit(**LEAF)
def year_and_month(day):
    """Return the number of months since the year 0."""
    shifted = day + 719_468
    cycle = shifted // 146_097
    in_cycle = shifted - cycle * 146_097
    year = (in_cycle - in_cycle // 1_460 + in_cycle // 36_524 - in_cycle // 146_096) // 365
    in_year = in_cycle - (365 * year + year // 4 - year // 100)
    return (year + cycle * 400) * 12 + (5 * in_year + 2) // 153 + 2


@njit(**LEAF)
def first_of(months):
    """Return the first day of the month that is so many months after the year 0."""
    from_march = months - 2
    year = from_march // 12
    month = from_march - year * 12
    cycle = year // 400
    in_cycle = year - cycle * 400
    day = 365 * in_cycle + in_cycle // 4 - in_cycle // 100 + (153 * month + 2) // 5
    return cycle * 146_097 + day - 719_468


@njit(**LEAF)
def first_of_period(day, months):
    """Return the first day of the period of so many months (1, 3 or 12) that contains a day."""
    number = year_and_month(day)
    return first_of(number // months * months)


@njit(**LEAF)
def add_months(day, months):
    """Return the same day of another month, or the last one of a shorter month."""
    number = year_and_month(day)
    target = first_of(number + months)
    return min(target + day - first_of(number), first_of(number + months + 1) - 1)


@njit(**LEAF)
def rounded(value, unit, way):
    """Return the multiple of ``unit`` near ``value``, as a number of units; ``unit`` is even or 1."""
    below = value // unit
    rest = value - below * unit
    if way == FLOOR:
        return below
    if way == CEILING:
        return below + 1 if rest > 0 else below
    if rest * 2 != unit:
        return below + 1 if rest * 2 > unit else below
    is_up = value >= 0 if way == HALF_UP else below % 2 != 0
    return below + 1 if is_up else below
