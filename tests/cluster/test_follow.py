"""Test streams that refresh recursive tables: their rows, restarts, and errors."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any

import pytest
from spark_versions import skip_without_delta

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.delta,
    pytest.mark.slow("a dozen refreshes of Delta tables in one JVM, driven by streams"),
]


@pytest.fixture
def fact(scenario: Callable[..., Any]) -> Callable[[str], Any]:
    """Return a function that reads a fact. Skip the test if Delta or its jars are not available."""
    if importlib.util.find_spec("delta") is None:
        pytest.skip("delta-spark is not installed")
    facts = scenario("follow", "continuous", "restarted", "errors", seconds=900)
    if not facts.by_name:
        skip_without_delta(facts.log)
    return lambda name: facts[name]


def test_each_change_of_a_source_is_refreshed(fact: Callable[[str], Any]) -> None:
    assert fact("continuous") == {
        "kinds": ["full", *["incremental"] * 4],
        "alive": True,
        "same": [True] * 5,
        "ended": False,
    }


def test_a_restarted_query_goes_on(fact: Callable[[str], Any]) -> None:
    assert fact("restarted") == {"same": [True, True], "kinds": ["full", "incremental"], "nothing new": True}


def test_errors_of_a_refresh_end_the_query(fact: Callable[[str], Any]) -> None:
    assert fact("errors") == {
        "raised": True,
        "exception": True,
        "repaired": True,
        "no feed": ["UsageError", "PARALAGG_DELTA_SOURCE"],
    }
