"""Test ranks that fail or are cancelled: a prompt error, nothing left, and the next query is right."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING, Any

import pytest
from spark_versions import CANCELLED

if TYPE_CHECKING:
    from collections.abc import Callable

NOTHING = {"ranks": 0, "runs": 0, "files": []}
ONE_JVM = ("local[2]", "local", "shared")
TWO_EXECUTORS = ("local-cluster[2,1,1024]", "local", "shared")
RANKS_IN_EXECUTORS = ("local-cluster[2,1,1024]", "spark", "shared")
FILES_APART = ("local-cluster[2,1,1024]", "spark", "apart")
WHERES = [ONE_JVM, TWO_EXECUTORS, RANKS_IN_EXECUTORS, FILES_APART]
pytestmark = [
    pytest.mark.cluster,
    pytest.mark.rotates(runs=4, turns={"where": WHERES}),
    pytest.mark.slow("clusters whose queries succeed, fail, are cancelled and lose processes"),
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="ranks need mpi4py"),
]
PROMPT_SECONDS = 4
SILENCE_SECONDS = 10
KILLED = r"PARALAGG_MPI_RANK_FAILED.*signal 9 \(rank [01] on "
SILENT = r"PARALAGG_MPI_RANK_FAILED.*no heartbeat .*rank [01]"


@pytest.mark.parametrize("where", WHERES)
def test_success_leaves_nothing(scenario: Callable[..., Any], where: tuple[str, ...]) -> None:
    assert scenario("offload", *where, seconds=300)["succeeded"] == {"right": True, "left": NOTHING}


@pytest.mark.parametrize(
    ("where", "how", "seconds", "error"),
    [
        (ONE_JVM, "cancelled", PROMPT_SECONDS, CANCELLED),
        (ONE_JVM, "cancelled_without_interrupts", PROMPT_SECONDS, CANCELLED),
        (ONE_JVM, "killed", PROMPT_SECONDS, KILLED),
        (ONE_JVM, "killed_alone", PROMPT_SECONDS, KILLED),
        (ONE_JVM, "stopped", SILENCE_SECONDS + PROMPT_SECONDS, SILENT),
        (TWO_EXECUTORS, "killed", PROMPT_SECONDS, KILLED),
        (TWO_EXECUTORS, "cancelled_without_interrupts", PROMPT_SECONDS, CANCELLED),
        (RANKS_IN_EXECUTORS, "killed", PROMPT_SECONDS, KILLED),
        (RANKS_IN_EXECUTORS, "stopped", SILENCE_SECONDS + PROMPT_SECONDS, SILENT),
        (RANKS_IN_EXECUTORS, "cancelled_without_interrupts", PROMPT_SECONDS, CANCELLED),
        (FILES_APART, "killed", PROMPT_SECONDS, KILLED),
        (FILES_APART, "stopped", SILENCE_SECONDS + PROMPT_SECONDS, SILENT),
        (FILES_APART, "cancelled_without_interrupts", PROMPT_SECONDS, CANCELLED),
    ],
)
def test_a_failed_or_cancelled_run(
    scenario: Callable[..., Any], where: tuple[str, ...], how: str, seconds: float, error: str
) -> None:
    result = scenario("offload", *where, seconds=300)[how]
    assert re.search(error, result["error"])
    assert result["seconds"] < seconds
    assert result["left"] == NOTHING
    assert result["next_is_right"]


@pytest.mark.parametrize("where", [ONE_JVM])
def test_the_description_of_the_job_shows_progress(scenario: Callable[..., Any], where: tuple[str, ...]) -> None:
    described = scenario("offload", *where, seconds=300)["cancelled"]["described"]
    assert re.search(r"paralagg r: iteration \d+, last delta [\d,]+ rows", described)


@pytest.mark.parametrize("where", [TWO_EXECUTORS, RANKS_IN_EXECUTORS, FILES_APART])
def test_a_lost_executor_is_no_error(scenario: Callable[..., Any], where: tuple[str, ...]) -> None:
    result = scenario("offload", *where, seconds=300)["executor_lost"]
    assert result == {"right": True, "ranks": 2, "left": NOTHING}


@pytest.mark.parametrize("where", WHERES)
def test_no_rank_outlives_the_context(scenario: Callable[..., Any], where: tuple[str, ...]) -> None:
    assert scenario("offload", *where, seconds=300)["context_stopped"] == {"ranks": 0, "files": []}
