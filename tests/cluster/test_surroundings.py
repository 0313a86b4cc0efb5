"""Test gangs that cannot run or lack memory: the error is clear, and the session still works."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from probes import NOTHING
from small_disk import may_mount
from spark_versions import CANCELLED

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.rotates(runs=6, turn=2),
    pytest.mark.slow("a JVM each for dynamic allocation and for too little memory"),
]
WHY = "dynamic allocation is on (spark.dynamicAllocation.enabled)"


def test_auto_takes_plain_dataframes_under_dynamic_allocation(scenario: Callable[..., Any]) -> None:
    result = scenario("dynamic_allocation")["auto"]
    assert result["right"]
    assert result["by"] == "dataframe"
    assert result["reason"].startswith(WHY)
    assert any(WHY in line for line in result["said"])


def test_the_engine_is_refused_under_dynamic_allocation_with_a_reason(scenario: Callable[..., Any]) -> None:
    facts = scenario("dynamic_allocation")
    assert facts["insisting"]["code"] == "PARALAGG_BACKEND_UNAVAILABLE"
    assert WHY in facts["insisting"]["text"]
    assert facts["alive"]


@pytest.mark.parametrize("how", ["too_large", "too_many_keys"])
def test_out_of_memory_is_an_error_with_its_code(scenario: Callable[..., Any], how: str) -> None:
    result = scenario("little_memory")[how]
    assert "PARALAGG_OUT_OF_MEMORY" in result["raised"]
    assert "spark.driver.memory" in result["raised"]
    assert result["left"] == NOTHING
    assert result["next_is_right"]


@pytest.mark.parametrize("how", ["", "encrypted"])
def test_rows_that_memory_does_not_hold_are_spilled(scenario: Callable[..., Any], how: str) -> None:
    for kind, found in scenario("little_memory", *[how] * bool(how))["spilled"].items():
        assert found["right"], kind
        assert found["spilled"] > 5_000_000
        assert 0.5 < found["estimated"] / found["spilled"] < 5  # the keys are near each other
        assert found["fits"]
        assert found["files"] == []
        assert found["left"] == NOTHING


def test_what_tasks_share_is_counted_once(scenario: Callable[..., Any]) -> None:
    result = scenario("little_memory")["shared"]
    assert "everywhere" in result["explained"]
    assert result["rows"] == [[0, 0], [400000, 400000]]
    assert result["fits"]


def test_a_task_that_starts_late_gets_its_share_of_the_memory(scenario: Callable[..., Any]) -> None:
    assert scenario("little_memory")["late"]["right"]


def test_a_job_that_is_cancelled_in_a_spill_leaves_no_file(scenario: Callable[..., Any]) -> None:
    result = scenario("little_memory")["cancelled_in_a_spill"]
    assert CANCELLED in result["raised"][0]
    assert result["files"] == []
    assert result["left"] == NOTHING


@pytest.mark.skipif(not may_mount(), reason="this user may not mount file systems")
def test_a_full_local_directory_is_an_error_that_names_it(scenario: Callable[..., Any]) -> None:
    result = scenario("little_memory", "full")["full_disk"]
    assert "PARALAGG_DISK_FULL" in result["raised"]
    assert "/local/" in result["raised"]
    assert "spark.local.dir" in result["raised"]
    assert result["files"] == []
    assert result["left"] == NOTHING
    assert result["next_is_right"]
