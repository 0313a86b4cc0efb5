"""Test runs with too little memory for their indexes: these lie in mapped files, and no file or mapping is left."""

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
    pytest.mark.rotates(runs=6, turn=5),
    pytest.mark.slow("a JVM each for one executor, two executors, encryption, a full disk"),
]
LEAST_MAPPED = 2_000_000
BYTES_OF_NAMES = 10_000_000


@pytest.mark.parametrize("how", ["", "cluster"])
def test_rows_are_right_with_mapped_indexes(scenario: Callable[..., Any], how: str) -> None:
    result = scenario("mapped", *[how] * bool(how))["results_of_executors" if how else "results"]
    for query, found in result["queries"].items():
        assert found["right"], query
        assert found["mapped"] > LEAST_MAPPED, query
        assert found["estimated"] > LEAST_MAPPED, query
        assert found["fits"], query
        assert ("everywhere" in found["explained"]) == query.startswith("everywhere"), query
        assert ("sums by target" in found["form"]) == query.startswith("sums"), query
    for tasks, found in result["names"].items():
        assert found["wrong"] == 0, tasks
        assert found["mapped"] > BYTES_OF_NAMES, tasks
    assert (result["files"], result["maps"], result["left"]) == ([], 0, NOTHING)


def test_an_endless_climb_is_traced_over_mapped_indexes(scenario: Callable[..., Any]) -> None:
    result = scenario("mapped")["climb"]
    assert "PARALAGG_NO_FIXPOINT" in result["raised"]
    assert "a cycle never ends" in result["raised"]
    assert (result["maps"], result["left"]) == (0, NOTHING)


def test_a_cancelled_job_leaves_no_mapped_file(scenario: Callable[..., Any]) -> None:
    result = scenario("mapped")["cancelled"]
    assert CANCELLED in result["raised"][0]
    assert (result["files"], result["left"]) == ([], NOTHING)


def test_with_encryption_indexes_stay_in_memory(scenario: Callable[..., Any]) -> None:
    result = scenario("mapped", "encrypted")["not_mapped"]
    assert "PARALAGG_OUT_OF_MEMORY" in result["raised"]
    assert "spark.io.encryption.enabled" in result["raised"]
    assert result["fits"] is False
    assert "The indexes do not fit" in result["text"]
    assert (result["files"], result["maps"], result["left"]) == ([], 0, NOTHING)
    assert result["next_is_right"]


@pytest.mark.skipif(not may_mount(), reason="this user may not mount file systems")
def test_a_disk_without_room_for_the_mapped_file_is_an_error(scenario: Callable[..., Any]) -> None:
    facts = scenario("mapped", "full")
    result = facts["not_mapped"]
    assert "PARALAGG_DISK_FULL" in result["raised"]
    assert "indexes" in result["raised"]
    assert [raised for raised in facts["reasons"] if "PARALAGG_DISK_FULL" not in raised] == []
    assert (result["files"], result["maps"], result["left"]) == ([], 0, NOTHING)
    assert result["next_is_right"]
