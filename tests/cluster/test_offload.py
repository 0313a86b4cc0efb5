"""Ranks that fail or are no longer wanted: promptly an error, nothing left, and the next query is right."""

from __future__ import annotations

import importlib.util
import re
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="ranks need mpi4py"),
]
NOTHING = {"ranks": 0, "runs": 0, "files": []}
ONE_JVM = "local[2]"
TWO_EXECUTORS = "local-cluster[2,1,1024]"
PROMPT_SECONDS = 4
SILENCE_SECONDS = 10


@pytest.mark.parametrize("master", [ONE_JVM, TWO_EXECUTORS])
def test_success_leaves_nothing(scenario: Callable[..., Any], master: str) -> None:
    assert scenario("offload", master, seconds=300)["succeeded"] == {"right": True, "left": NOTHING}


@pytest.mark.parametrize(
    ("master", "how", "seconds", "error"),
    [
        (ONE_JVM, "cancelled", PROMPT_SECONDS, "SPARK_JOB_CANCELLED"),
        (ONE_JVM, "cancelled_without_interrupts", PROMPT_SECONDS, "SPARK_JOB_CANCELLED"),
        (ONE_JVM, "killed", PROMPT_SECONDS, r"PARALAGG_MPI_RANK_FAILED.*signal 9 \(rank [01] on "),
        (ONE_JVM, "killed_alone", PROMPT_SECONDS, r"PARALAGG_MPI_RANK_FAILED.*signal 9 \(rank 0 on "),
        (
            ONE_JVM,
            "stopped",
            SILENCE_SECONDS + PROMPT_SECONDS,
            r"PARALAGG_MPI_RANK_FAILED.*no.* sign of life .*rank [01]",
        ),
        (TWO_EXECUTORS, "killed", PROMPT_SECONDS, r"PARALAGG_MPI_RANK_FAILED.*signal 9 \(rank [01] on "),
        (TWO_EXECUTORS, "cancelled_without_interrupts", PROMPT_SECONDS, "SPARK_JOB_CANCELLED"),
    ],
)
def test_an_end_before_the_end(scenario: Callable[..., Any], master: str, how: str, seconds: float, error: str) -> None:
    found = scenario("offload", master, seconds=300)[how]
    assert re.search(error, found["error"])
    assert found["seconds"] < seconds
    assert found["left"] == NOTHING
    assert found["next_is_right"]


def test_the_description_of_the_job_moves(scenario: Callable[..., Any]) -> None:
    described = scenario("offload", ONE_JVM, seconds=300)["cancelled"]["described"]
    assert re.search(r"paralagg r: iteration \d+, last delta [\d,]+ rows", described)


def test_ranks_outlive_an_executor(scenario: Callable[..., Any]) -> None:
    assert scenario("offload", TWO_EXECUTORS, seconds=300)["executor_lost"] == {
        "right": True,
        "ranks": 2,
        "left": NOTHING,
    }


@pytest.mark.parametrize("master", [ONE_JVM, TWO_EXECUTORS])
def test_no_rank_outlives_the_context(scenario: Callable[..., Any], master: str) -> None:
    assert scenario("offload", master, seconds=300)["context_stopped"] == {"ranks": 0, "files": []}
