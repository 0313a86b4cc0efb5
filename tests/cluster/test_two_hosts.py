"""Test ranks on two hosts that share only the network, by the launcher ``spark``."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from hosts import ROOT, obstacle

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.rotates(runs=6, turn=1),
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
    return scenario("two_hosts", seconds=480)


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
    # A rank that loses its peer may crash inside of MPICH, and hydra names only one process: seen once, under load.
    ended = r"signal (9 \(rank [0-3] on two\)|11 \(rank [0-3] on (one|two)\))"
    assert re.search(f"PARALAGG_MPI_RANK_FAILED.*{ended}", result["error"])
    assert result["seconds"] < PROMPT_SECONDS
    assert (result["left"], result["runs"]) == (NOTHING, 0)
    assert result["next_is_right"]


@pytest.mark.skipif(importlib.util.find_spec("numba") is None, reason="ranks need numba")
def test_two_ranks_give_the_rows_of_one_and_send_their_bytes_through_the_network(tmp_path: Path) -> None:
    why = obstacle()
    if why is not None:
        pytest.skip(why)
    command = [sys.executable, "-m", "benchmarks.two_hosts", "--graph", "grid-40", "--cache", str(tmp_path)]
    command += ["--queries", "components", "--repeat", "1", "--log", str(tmp_path / "hosts.log"), "--json"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)  # noqa: S603
    assert result.returncode == 0, result.stderr
    facts = json.loads(result.stdout)
    [one], [two] = facts["components"]["one"], facts["components"]["two"]
    assert one["rows"] == two["rows"]
    assert len(one["rows"]) == 64
    assert ("one process" in one["form"], "2 ranks" in two["form"]) == (True, True)
    assert 0 < two["report_bytes"] <= sum(rank["interface_bytes"] for rank in two["ranks"])
    assert all(rank["meetings"] > 0 for rank in two["ranks"])
