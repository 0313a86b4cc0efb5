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
    marks: tuple[Any, ...] = (MARK,)
    originalname: str = "test_fixture"
    path: Path = Path("tests/test_fixtures.py")
    parameter: str = "case"
    of_module: tuple[Any, ...] = ()

    @property
    def callspec(self) -> Any:  # noqa: ANN401 - pytest's is private
        return SimpleNamespace(params={self.parameter: self.case, "setting": self.setting})

    @property
    def own_markers(self) -> tuple[Any, ...]:
        return self.marks

    def iter_markers(self, name: str) -> tuple[Any, ...]:
        assert name == "rotates"
        return (*self.marks, *self.of_module)


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
    assert left_out([Item("a", n, marks=()) for n in range(6)], 0) == []


def test_two_runs_take_the_values_in_turns() -> None:
    items = [Item(case, setting, (BY_TURNS,)) for case in "cabd" for setting in range(3)]
    taken = [{i.case for i in items} - {i.case for i in left_out(items, day)} for day in range(2)]
    assert taken == [{"a", "c"}, {"b", "d"}]


def test_three_runs_take_each_module_once() -> None:
    items = [Item(str(n), 0, (mark,), f"test_{n}") for n, mark in enumerate(MODULES)]
    taken = [{i.case for i in items} - {i.case for i in left_out(items, day)} for day in range(3)]
    assert taken == [{"0"}, {"3"}, {"1", "2"}]


def test_a_test_without_the_parameter_is_in_every_run() -> None:
    items = [Item(case, 0, (BY_TURNS,), parameter="other") for case in "ab"]
    assert left_out(items, 0) == left_out(items, 1) == []


def test_two_marks_take_every_setting_of_every_case_in_six_runs() -> None:
    marks = (pytest.mark.rotates(runs=3, turns={"case": "abcde"}).mark, pytest.mark.rotates(runs=2, by=("case",)).mark)
    items = [Item(case, setting, marks) for case in "abcde" for setting in range(4)]
    taken = [[i for i in items if i not in left_out(items, day)] for day in range(6)]
    assert sorted((i for of_day in taken for i in of_day), key=lambda i: (i.case, i.setting)) == items
    assert [{i.case for i in of_day} for of_day in taken[:3]] == [{"a", "d"}, {"c"}, {"b", "e"}]


def test_marks_that_would_leave_out_an_item_for_ever_are_an_error() -> None:
    marks = tuple(pytest.mark.rotates(runs=runs).mark for runs in (2, 4))
    with pytest.raises(ValueError, match="would never run"):
        left_out([Item("a", 0, marks)], 0)


@pytest.mark.parametrize("parameter", ["engine", "backend"])
def test_two_runs_take_the_engines_of_a_test(parameter: str) -> None:
    items = [
        Item(engine, setting, (), name, parameter=parameter)
        for name in ("test_a", "test_b", "test_c", "test_d")
        for engine in "abc"
        for setting in range(2)
    ]
    taken = [{(i.originalname, i.case) for i in items if i not in left_out(items, day)} for day in range(2)]
    assert not taken[0] & taken[1]
    assert len(taken[0] | taken[1]) == 12
    assert all({engine for _, engine in of_day} == set("abc") for of_day in taken)  # not all tests take the same ones


def test_the_tests_of_a_module_that_rotates_are_in_different_runs() -> None:
    module = (pytest.mark.rotates(runs=3).mark,)
    items = [Item("a", 0, (), f"test_{n}", of_module=module) for n in range(12)]
    taken = [[i for i in items if i not in left_out(items, day)] for day in range(3)]
    assert sorted((i for of_day in taken for i in of_day), key=items.index) == items
    assert all(1 < len(of_day) < 7 for of_day in taken)


def test_the_mark_of_a_test_replaces_that_of_its_module() -> None:
    module = (pytest.mark.rotates(runs=4).mark,)
    items = [Item("a", n, (pytest.mark.rotates(runs=2).mark,), of_module=module) for n in range(4)]
    assert [len(left_out(items, day)) for day in range(2)] == [2, 2]
