"""A run of the tests takes a share of the settings of each case; which share follows from the date.

A test with many settings carries ``@pytest.mark.rotates(runs, by=...)``. Its items are grouped by the parameters ``by``
(none: one group). Of each group a run takes every item whose turn it is, so that ``runs`` runs on successive days take
all of them.

Tests that share an expensive process rotate together. ``rotates(runs, turns={parameter: values})``: a run takes the
items of the values whose turn it is, and so the same values in all tests of a module. ``rotates(runs, turn=N)``: one of
``runs`` successive runs takes the module as a whole; modules with different ``turn`` are in different runs.

``pytest --whole`` (``make test-all``) takes all at once. ``pytest --day N`` repeats the choice of a day,
which the head of every run names.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest


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
    groups: dict[tuple[str, ...], dict[tuple[Any, ...], list[Any]]] = defaultdict(lambda: defaultdict(list))
    runs: dict[tuple[str, ...], int] = {}
    out = []
    for item in items:
        mark = item.get_closest_marker("rotates")
        if mark is not None and "turn" in mark.kwargs:
            if (mark.kwargs["turn"] + day) % mark.kwargs["runs"]:
                out.append(item)
        elif mark is not None and "turns" in mark.kwargs:
            [(name, values)] = mark.kwargs["turns"].items()
            if (values.index(item.callspec.params[name]) + day) % mark.kwargs["runs"]:
                out.append(item)
        elif mark is not None:
            test = (str(item.path), item.originalname)
            runs[test] = mark.kwargs["runs"]
            parameters = item.callspec.params
            groups[test][tuple(str(parameters[p]) for p in mark.kwargs.get("by", ()))].append(item)
    return out + [
        item
        for test, of_test in groups.items()
        for number, group in enumerate(of_test.values())
        for turn, item in enumerate(group)
        if (turn + number + day) % runs[test]
    ]


def parameters_of(test: str, request: pytest.FixtureRequest) -> list[dict[str, Any]]:
    """Return the parameters of the items of ``test``, a function of the module that requests it, in this run."""
    items: list[Any] = request.session.items
    return [i.callspec.params for i in items if i.path == request.path and getattr(i, "originalname", None) == test]


def _day(config: pytest.Config) -> int:
    day: int | None = config.getoption("day")
    return dt.datetime.now(dt.timezone.utc).date().toordinal() if day is None else day
