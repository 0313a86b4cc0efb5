"""Test ranks on two hosts that share only the network, by the launcher ``spark``."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING, Any

import pytest
from hosts import obstacle

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.slow("two hosts in namespaces of Linux, each with an executor and ranks"),
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="ranks need mpi4py"),
]
NOTHING: dict[str, list[str]] = {"ranks": [], "files": [], "drivers": []}
PROMPT_SECONDS = 6


@pytest.fixture
def facts(scenario: Callable[..., Any]) -> Any:  # noqa: ANN401 - Facts of conftest.py
    why = obstacle()
    if why is not None:
        pytest.skip(why)
    return scenario("two_hosts", seconds=240)


def test_the_hosts_share_no_files_and_each_has_an_executor(facts: dict[str, Any]) -> None:
    assert facts["apart"] == {"seen": {"one": [], "two": []}, "executors": [1, 1]}


def test_ranks_on_two_hosts_give_the_rows_of_spark(facts: dict[str, Any]) -> None:
    result = facts["offloaded"]
    assert result["as_spark"]
    assert result["right"]
    assert result["backend"] == "mpi"
    assert result["hosts"] == ["one", "one", "two", "two"]
    assert result["sent"] == [True] * 4
    assert result["left"] == NOTHING


def test_a_killed_rank_is_named_with_its_host_and_leaves_nothing_on_either(facts: dict[str, Any]) -> None:
    result = facts["killed"]
    assert re.search(r"PARALAGG_MPI_RANK_FAILED.*signal 9 \(rank [0-3] on two\)", result["error"])
    assert result["seconds"] < PROMPT_SECONDS
    assert (result["left"], result["runs"]) == (NOTHING, 0)
    assert result["next_is_right"]
