"""Test two real executors, without and with Spark's authentication and encryption."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from probes import NOTHING
from spark_versions import CANCELLED

if TYPE_CHECKING:
    from collections.abc import Callable

HOWS = ["plain", "secured"]
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.rotates(runs=2, turns={"facts": HOWS}),
    pytest.mark.slow("a driver and two executors, once without and once with encryption"),
]
INLINE = 16 * 1024  # the largest message inside a vote


@pytest.fixture(params=HOWS)
def facts(scenario: Callable[..., Any], request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 - Facts of conftest.py
    return scenario("two_executors", request.param, seconds=480)


def test_rows_are_the_same_as_in_one_jvm(facts: dict[str, Any]) -> None:
    assert facts["executors"] == 2
    result = facts["fixtures"]
    assert len(result) in (12, 24)  # cases, or cases with AQE on and off
    assert {case: outcome for case, outcome in result.items() if outcome != "ok"} == {}


def test_messages_sent_as_blocks_arrive(facts: dict[str, Any]) -> None:
    assert facts["large_messages"]["bytes"] > 2 * INLINE
    assert facts["large_messages"]["right"]
    assert facts["large_messages_of_strings"] == {"right": True}


def test_early_exchanges_change_no_row(facts: dict[str, Any]) -> None:
    """Each run has the right rows, early exchanges only with a limit, and the same number of iterations."""
    found = facts["early_exchanges"]
    assert {limit: is_right for limit, (is_right, _, _) in found.items()} == {"0": True, "1": True, "3000": True}
    assert {limit: is_early for limit, (_, is_early, _) in found.items()} == {"0": False, "1": True, "3000": True}
    assert len({iterations for _, _, iterations in found.values()}) == 1


def test_each_executor_goes_on_from_its_part_of_a_kept_state(facts: dict[str, Any]) -> None:
    assert facts["kept_state"]["shortest paths"]["rows"] == 42
    for case, found in facts["kept_state"].items():
        first, *others = found["forms"]
        assert "kept" not in first, case
        assert len(others) == 4
        assert all("from the kept state, in 2 tasks" in form for form in others), (case, others)


def test_each_executor_uses_the_indexes_that_it_has_kept(facts: dict[str, Any]) -> None:
    forms = [form for form, _ in facts["kept_indexes"]]
    assert ["kept indexes, in 2 tasks" in form for form in forms] == [False, True, True, True, False]
    assert [is_right for _, is_right in facts["kept_indexes"]] == [True] * 5


def test_cancellation_frees_both_executors_and_leaves_no_block(facts: dict[str, Any]) -> None:
    result = facts["cancelled_run"]
    assert CANCELLED in result["raised"][0]
    assert result["seconds"] < 2
    assert result["blocks"] == []
    assert result["left"] == NOTHING
