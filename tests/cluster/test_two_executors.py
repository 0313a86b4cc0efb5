"""Two real executors, in the open and with Spark's authentication and encryption."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from probes import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.cluster
INLINE = 16 * 1024  # what rides on a vote at most


@pytest.fixture(params=["plain", "secured"])
def facts(scenario: Callable[..., Any], request: pytest.FixtureRequest) -> Any:  # noqa: ANN401 - Facts of conftest.py
    return scenario("two_executors", request.param, seconds=240)


def test_rows_are_the_same_as_in_one_jvm(facts: dict[str, Any]) -> None:
    assert facts["executors"] == 2
    found = facts["fixtures"]
    assert len(found) in (11, 22)  # cases, or cases with AQE on and off
    assert {case: said for case, said in found.items() if said != "ok"} == {}


def test_messages_that_go_by_block_arrive(facts: dict[str, Any]) -> None:
    assert facts["large_messages"]["bytes"] > 2 * INLINE
    assert facts["large_messages"]["right"]
    assert facts["large_messages_of_strings"] == {"right": True}


def test_cancellation_frees_both_executors_and_leaves_no_block(facts: dict[str, Any]) -> None:
    found = facts["cancelled_run"]
    assert "SPARK_JOB_CANCELLED" in found["raised"][0]
    assert found["seconds"] < 2
    assert found["blocks"] == []
    assert found["left"] == NOTHING
