"""Successive runs take every setting of every case once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rotation import left_out

MARK = pytest.mark.rotates(runs=3, by=("case",)).mark
MODULES = [pytest.mark.rotates(runs=3, turn=turn).mark for turn in (0, 1, 1, 2)]
BY_TURNS = pytest.mark.rotates(runs=2, turns={"case": "abcd"}).mark


@dataclass(frozen=True)
class Item:
    """An item of pytest, as far as the rotation reads it."""

    case: str
    setting: int
    mark: Any = MARK
    originalname: str = "test_fixture"
    path: Path = Path("tests/test_fixtures.py")

    @property
    def callspec(self) -> Any:  # noqa: ANN401 - pytest's is private
        return SimpleNamespace(params={"case": self.case, "setting": self.setting})

    def get_closest_marker(self, name: str) -> Any:  # noqa: ANN401 - likewise
        return self.mark if name == "rotates" else None


ITEMS = [Item(case, setting) for case in "abcde" for setting in range(6)]


@pytest.mark.parametrize("first", [0, 739_942])
def test_three_runs_take_every_setting_of_every_case_once(first: int) -> None:
    taken = [item for day in range(first, first + 3) for item in ITEMS if item not in left_out(ITEMS, day)]
    assert sorted(taken, key=lambda i: (i.case, i.setting)) == ITEMS


@pytest.mark.parametrize("day", range(3))
def test_a_run_takes_two_of_six_settings_of_each_case_and_all_settings_of_some(day: int) -> None:
    taken = [item for item in ITEMS if item not in left_out(ITEMS, day)]
    assert [sum(i.case == c for i in taken) for c in "abcde"] == [2] * 5
    assert {i.setting for i in taken} == set(range(6))


def test_tests_without_the_mark_always_run() -> None:
    assert left_out([Item("a", n, mark=None) for n in range(6)], 0) == []


def test_two_runs_take_the_values_in_turns() -> None:
    items = [Item(case, setting, BY_TURNS) for case in "cabd" for setting in range(3)]
    taken = [{i.case for i in items} - {i.case for i in left_out(items, day)} for day in range(2)]
    assert taken == [{"a", "c"}, {"b", "d"}]


def test_three_runs_take_each_module_once() -> None:
    items = [Item(str(n), 0, mark) for n, mark in enumerate(MODULES)]
    taken = [{i.case for i in items} - {i.case for i in left_out(items, day)} for day in range(3)]
    assert taken == [{"0"}, {"3"}, {"1", "2"}]
