"""Test refreshes of recursive tables on Delta after deletes and updates."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.delta,
    pytest.mark.rotates(runs=6, turn=4),
    pytest.mark.slow("two dozen refreshes of Delta tables in one JVM"),
]
SCENARIO = ("refresh_deletes", "deletes", "costs", "sums", "representations")
SECONDS = 1200


def test_deletes_and_updates_are_maintained(fact: Callable[[str], Any]) -> None:
    result = fact("deletes")
    assert result["same"] == {name: [True, True] for name in ("closure", "labels", "hops", "widest", "dist")}
    assert {kind for kinds in result["kinds"].values() for kind in kinds} == {"incremental"}
    assert result["reasons"][0].startswith("the changes can be maintained: ")
    assert result["duplicate"] == ["incremental", 0, 0, 0]


def test_deletes_that_cost_more_than_a_full_refresh_are_not_maintained(fact: Callable[[str], Any]) -> None:
    result = fact("costs")
    assert result["kinds"] == ["full", "incremental", "full", "incremental", "incremental"]
    assert fnmatchcase(
        result["reason"],
        "a full refresh costs less: * s for all rows, * s for the changes of an earlier one (full=False *",
    )
    assert result["costs"] == [True, True]
    assert result["rows"] == [*([4 * n, n] for n in range(7)), [25, 7]]


@pytest.mark.parametrize(
    ("how", "loaded"),
    [
        ("kept", "only changed rows: the last refresh has kept its state"),
        ("differences", "all rows: spark.paralagg.delta.keepState is false"),
        ("evicted", "all rows: executors have no state of the last refresh"),
    ],
)
def test_sums_are_maintained(fact: Callable[[str], Any], how: str, loaded: str) -> None:
    first = {0: 10, 1: 20, 2: 30, 3: 110, 4: 220}
    twice = {0: 10, 1: 40, 2: 30, 3: 190, 4: 380, 5: 380, 6: 380}
    updated = {0: 10, 1: 40, 2: 30, 3: 370, 4: 740}
    result = fact("sums")[how]
    assert result["loaded"] == ["", loaded, loaded, loaded]
    assert result["kinds"] == ["full", "incremental", "incremental", "incremental"]
    expected = [first, twice, updated, {0: 10, 2: 30, 3: 210, 4: 420}]
    assert result["rows"] == [sorted([n, k] for k, n in rows.items()) for rows in expected]
    assert result["written"][1:] == [[2, 3, 0], [0, 2, 2], [0, 2, 1]]
    assert result["is full"]


def test_updates_to_values_that_spark_calls_equal_are_maintained(fact: Callable[[str], Any]) -> None:
    """Four updates of the second edge: of a double, in an array, in a structure, and of a string with a collation."""
    result = fact("representations")
    assert result["kinds"] == ["incremental"]
    assert result["same"] == {name: [True] * 4 for name in ("least", "sums", "text")}
    first, second = 9 + ord("a"), 12 + ord("A")
    assert result["rows"]["least"] == [[1, 0], [1 + first, 1], [1 + first + second, 2], [1 + 2 * first + second, 3]]
    assert result["rows"]["sums"] == [[1, 0], [first, 1], [first * second, 2], [first * second * first, 3]]
    assert result["rows"]["text"] == [[0, 1], [1, 4], [2, 8], [3, 11]]
