"""Where a gang cannot run, or has too little memory: said clearly, and the session lives on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from probes import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.cluster
WHY = "dynamic allocation is on (spark.dynamicAllocation.enabled)"


def test_auto_takes_plain_dataframes_under_dynamic_allocation(scenario: Callable[..., Any]) -> None:
    found = scenario("dynamic_allocation")["auto"]
    assert found["right"]
    assert found["by"] == "dataframe"
    assert found["reason"].startswith(WHY)
    assert any(WHY in line for line in found["said"])


def test_who_insists_on_the_engine_under_dynamic_allocation_gets_the_reason(scenario: Callable[..., Any]) -> None:
    facts = scenario("dynamic_allocation")
    assert facts["insisting"]["code"] == "PARALAGG_BACKEND_UNAVAILABLE"
    assert WHY in facts["insisting"]["text"]
    assert facts["alive"]


@pytest.mark.parametrize("how", ["too_large", "too_large_to_load"])
def test_out_of_memory_is_an_error_with_its_code(scenario: Callable[..., Any], how: str) -> None:
    found = scenario("little_memory")[how]
    assert "PARALAGG_OUT_OF_MEMORY" in found["raised"]
    assert "spark.driver.memory" in found["raised"]
    assert found["left"] == NOTHING
    assert found["next_is_right"]
