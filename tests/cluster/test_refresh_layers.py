"""Test refreshes of texts with several recursions: their companion tables, and negated sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.delta,
    pytest.mark.rotates(runs=6, turn=1),
    pytest.mark.slow("two dozen refreshes of Delta tables in one JVM"),
]
SCENARIO = ("refresh_layers", "changes", "kept", "companions")
SECONDS = 1200


def test_each_refresh_gives_the_rows_of_the_whole_text(fact: Callable[[str], Any]) -> None:
    result = fact("changes")
    assert result["same"] == [True] * 12
    assert result["kinds"] == ["full"] * 2 + ["incremental"] * 10
    assert result["why"].startswith("the changes can be maintained: ")
    assert result["written"]


def test_relations_beside_the_target_are_in_companion_tables(fact: Callable[[str], Any]) -> None:
    result = fact("changes")
    assert result["companions"] == [True, True]
    assert result["explained"].startswith("far(")


def test_each_recursion_goes_on_from_its_state(fact: Callable[[str], Any]) -> None:
    result = fact("kept")
    assert result["same"] == [True] * 6
    assert result["companions"] == [True, True]
    changed = "only changed rows: the last refresh has kept its state"
    base = "only changed rows, and all base rows, since none are kept: the last refresh has kept its state"
    inserted, deleted, *later = result["loaded"]
    assert inserted == f"even, odd: {changed}; worst: {base}"  # nearer nodes take the place of farther ones
    assert deleted == f"even, odd: {base}; worst: {changed}"
    assert later == [changed] * 3


def test_a_companion_that_does_not_fit_is_noticed(fact: Callable[[str], Any]) -> None:
    result = fact("companions")
    assert result["same"] == [True] * 4
    assert result["kinds"] == ["full", "incremental", "full", "full"]
    edited, interrupted = result["reasons"]
    assert edited == "another writer changed the companion table /even__odd: DELETE in version 3"
    assert interrupted == "the companion table /even__odd is not that of the last refresh"
    assert result["stopped"] == "before the target's commit"
    assert result["foreign"] == ["UsageError", "PARALAGG_DELTA_TARGET"]
