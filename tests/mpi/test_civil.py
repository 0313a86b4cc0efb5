"""The calendar of generated code is the one of the compiler, on every day of some years and on far ones."""

from __future__ import annotations

import pytest

pytest.importorskip("numba")

from mpi_backend.kernels import calendar
from pyspark_paralagg.program.functions import civil

DAYS = [*range(-719_162, -717_000), *range(-1_000, 1_000), *range(19_000, 21_000), 2_932_896, -(1 << 31), (1 << 31) - 1]


def test_days_have_the_same_months_and_periods() -> None:
    for day in DAYS:
        assert calendar.year_and_month(day) == civil.year_and_month(day)
        for months in (1, 3, 12):
            assert calendar.first_of_period(day, months) == civil.first_of_period(day, months)


def test_months_later_are_the_same_days() -> None:
    for day in DAYS[::7]:
        for months in (-13, -1, 0, 1, 11, 1_200):
            assert calendar.add_months(day, months) == civil.add_months(day, months)
