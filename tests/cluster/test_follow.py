"""Test streams that refresh recursive tables: their rows, restarts, and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.delta,
    pytest.mark.rotates(runs=6, turn=1),
    pytest.mark.slow("a dozen refreshes of Delta tables in one JVM, driven by streams"),
]
SCENARIO = ("follow", "continuous", "restarted", "errors")
SECONDS = 900


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
        "wrong trigger": "TypeError",
        "left": False,
        "no feed": ["UsageError", "PARALAGG_DELTA_SOURCE"],
    }
