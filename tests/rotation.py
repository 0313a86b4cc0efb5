"""A run of the tests takes a share of the settings of each case; which share follows from the date.

A test with many settings carries ``@pytest.mark.rotates(runs, by=...)``. Its items are grouped by the parameters ``by``
(none: one group). Of each group a run takes every item whose turn it is, so that ``runs`` runs on successive days take
all of them.

Tests that share an expensive process rotate together. ``rotates(runs, turns={parameter: values})``: a run takes the
items of the values whose turn it is, and so the same values in all tests of a module; a test without the parameter is
in every run. ``rotates(runs, turn=N)``: one of ``runs`` successive runs takes the item or the module; items with
different ``turn`` are in different runs.

Of several marks each leaves out its share. Their numbers of runs have no common divisor, so that each item has its day.
Marks of a test replace that of its module.

A test of several engines that carries no mark rotates over two runs by its parameter ``engine`` or ``backend``.

``pytest --whole`` (``make test-all``) takes all at once. ``pytest --day N`` repeats the choice of a day,
which the head of every run names.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from hashlib import sha256
from itertools import combinations
from math import gcd
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

ENGINES = ("engine", "backend")
"""The parameters of tests that run on several engines."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="run every setting of every case, not the share of the day")
    parser.addoption("--day", type=int, help="take the share of this day (the head of a run names its day)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers", "rotates(runs, by=() or turns={name: values} or turn=N): one of `runs` runs takes an item"
    )


def pytest_report_header(config: pytest.Config) -> str:
    return "settings: all" if config.getoption("whole") else f"settings: those of --day {_day(config)} (--whole: all)"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("whole") or any("::" in arg for arg in config.args):
        return  # whoever names a test gets it
    others = set(left_out(items, _day(config)))
    if others:
        config.hook.pytest_deselected(items=[i for i in items if i in others])
        items[:] = [i for i in items if i not in others]


def left_out(items: Iterable[Any], day: int) -> list[Any]:
    """Return the items of rotating tests whose turn is not on ``day``."""
    tests: dict[tuple[str, str], list[Any]] = defaultdict(list)
    for item in items:
        tests[str(item.path), getattr(item, "originalname", None) or item.name].append(item)
    out: list[Any] = []
    for (_, name), of_test in tests.items():
        marks, offset = _marks(of_test[0]), _offset(name)
        _check(marks)
        engine = next((p for p in ENGINES if p in _parameters(of_test[0])), None)
        if not marks and engine is not None:
            engines = list(dict.fromkeys(str(_parameters(item)[engine]) for item in of_test))
            waiting = _waiting_values(of_test, engine, engines, 2, day + offset)
        else:
            waiting = [item for mark in marks for item in _waiting(mark, of_test, day, offset)]
        waits = {id(item) for item in waiting}
        out += [item for item in of_test if id(item) in waits]
    return out


def _parameters(item: Any) -> dict[str, Any]:  # noqa: ANN401 - an item of pytest, or the part of it that is read
    return item.callspec.params if hasattr(item, "callspec") else {}


def _marks(item: Any) -> list[pytest.Mark]:  # noqa: ANN401 - an item of pytest, or the part of it that is read
    return [m for m in item.own_markers if m.name == "rotates"] or list(item.iter_markers("rotates"))


def _offset(name: str) -> int:
    """Return a number for a test, so that the tests of a module begin on different days."""
    return int.from_bytes(sha256(name.encode()).digest()[:4], "big")


def _check(marks: list[pytest.Mark]) -> None:
    """Raise ``ValueError`` if some items of a test with these marks would be in no run."""
    for a, b in combinations([m.kwargs["runs"] for m in marks], 2):
        if gcd(a, b) > 1:
            raise ValueError(f"rotates(runs={a}) and rotates(runs={b}) of one test: some items would never run")


def _waiting(mark: pytest.Mark, of_test: list[Any], day: int, offset: int) -> list[Any]:
    """Return the items of a test that one of its marks leaves out."""
    runs = mark.kwargs["runs"]
    if "turn" in mark.kwargs:
        return of_test if (mark.kwargs["turn"] + day) % runs else []
    if "turns" in mark.kwargs:
        [(name, values)] = mark.kwargs["turns"].items()
        return _waiting_values(of_test, name, [str(v) for v in values], runs, day)
    groups: dict[tuple[str, ...], list[Any]] = defaultdict(list)
    for item in of_test:
        groups[tuple(str(_parameters(item)[p]) for p in mark.kwargs.get("by", ()))].append(item)
    return [
        item
        for number, group in enumerate(groups.values())
        for turn, item in enumerate(group)
        if (turn + number + day + offset) % runs
    ]


def _waiting_values(of_test: list[Any], name: str, values: list[str], runs: int, day: int) -> list[Any]:
    """Return the items of a test whose value of the parameter ``name`` other runs take."""
    given = [(item, _parameters(item)) for item in of_test]
    return [item for item, p in given if name in p and (values.index(str(p[name])) + day) % runs]


def parameters_of(test: str, request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Return the parameters of the items of ``test``, a function of the module that requests it, in this run."""
    items: list[Any] = request.session.items
    return [i.callspec.params for i in items if i.path == request.path and getattr(i, "originalname", None) == test]


def _day(config: pytest.Config) -> int:
    day: int | None = config.getoption("day")
    return dt.datetime.now(dt.timezone.utc).date().toordinal() if day is None else day
