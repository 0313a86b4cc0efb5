"""Test that a run gives the right rows if an executor dies in the middle of the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from probes import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow("an executor is killed or stopped at several moments of a run, and Spark has to notice it"),
]
INTERVAL = 250


@pytest.fixture
def facts(scenario: Callable[..., Any]) -> Any:  # noqa: ANN401 - Facts of conftest.py
    return scenario("killed", seconds=300)


@pytest.mark.parametrize("how", ["killed", "killed_with_checkpoints"])
def test_a_killed_executor_changes_no_row_and_leaves_nothing(facts: dict[str, Any], how: str) -> None:
    result = facts[how]
    assert 800 < result["killed_at"] < result["iterations"]
    assert not result["same_executors"]
    assert result["right"]
    assert result["iterations"] == result["first_of_last_attempt"] + result["applied_in_last_attempt"] - 1
    assert set(result["sessions"]) == {0}
    assert result["left"] == NOTHING


def test_without_checkpoints_the_loop_restarts(facts: dict[str, Any]) -> None:
    assert facts["killed"]["first_of_last_attempt"] == 1


def test_with_checkpoints_the_loop_resumes_from_the_newest(facts: dict[str, Any]) -> None:
    result = facts["killed_with_checkpoints"]
    resumed = result["first_of_last_attempt"] - 1
    assert resumed % INTERVAL == 0
    # The newest checkpoint may have been incomplete when the executor died.
    assert result["complete_before"], result
    assert resumed >= max(result["complete_before"]), result


def test_the_checkpoint_folder_is_empty_afterwards(facts: dict[str, Any]) -> None:
    assert facts["killed_with_checkpoints"]["kept"] == []
