"""Test typical uses of results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from probes import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.rotates(runs=2, turn=1),
    pytest.mark.slow("one JVM that uses results in many ways, with and without AQE"),
]


@pytest.mark.parametrize("use", ["limits", "shapes", "stored", "sql"])
def test_rows_are_right_however_they_are_used(scenario: Callable[..., Any], use: str) -> None:
    result = scenario("results")[use]
    assert {name: is_right for name, is_right in result.items() if not is_right} == {}
    assert len(result) >= 3


@pytest.mark.parametrize("aqe", ["aqe=true", "aqe=false"])
def test_a_join_or_group_by_on_the_key_shuffles_the_other_side_only(scenario: Callable[..., Any], aqe: str) -> None:
    result = scenario("results")["join_on_the_key"][aqe]
    assert result["right"]
    join, group = result["above"]
    assert "SortMergeJoin" in join
    assert any(name.startswith("HashAggregate") for name in group)
    assert not [name for name in join + group if "Exchange" in name or "Shuffle" in name]


def test_uses_of_results_leave_nothing(scenario: Callable[..., Any]) -> None:
    assert scenario("results")["left"] == NOTHING
