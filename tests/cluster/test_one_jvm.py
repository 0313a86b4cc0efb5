"""Test cancellation, three queries at once, waiting and errors on local[2]; the session still runs the next query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from probes import NOTHING
from spark_versions import since

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.rotates(runs=2, turn=0),
    pytest.mark.slow("one JVM whose queries fail, are cancelled or wait for slots"),
]
PROMPT_SECONDS = 2  # documented as half a second; more for a machine that runs other tests


@pytest.fixture
def facts(scenario: Callable[..., Any]) -> Any:  # noqa: ANN401 - Facts of conftest.py
    return scenario("one_jvm", seconds=480)


def test_success_leaves_nothing(facts: dict[str, Any]) -> None:
    result = facts["success"]
    assert result["right"]
    assert result["left"] == NOTHING
    assert result["wrote"] > 0
    assert result["kept"] == []


def test_the_sql_tab_shows_the_iterations_of_the_report(facts: dict[str, Any]) -> None:
    assert facts["live_metrics"] == {"iterations": 5001}


def test_metrics_and_the_job_description_show_progress(facts: dict[str, Any]) -> None:
    shown = facts["while_it_runs"]["first"]
    assert re.fullmatch(r"my own words \(paralagg r: iteration [\d,]+, last delta [\d,]+ rows\)", shown)


def test_the_sql_tab_shows_a_running_query(facts: dict[str, Any]) -> None:
    metrics = facts["while_it_runs"]["metrics"]
    live = {
        "iterations",
        "rows changed by the last iteration",
        "rows of the recursive relations",
        "changed rows of the heaviest task, % of the average",
    }
    assert live <= metrics.keys()
    assert all(re.fullmatch(r"[\d,]+", metrics[name]) for name in live)
    assert "time to iterate" not in metrics  # unknown until the loop ends


def test_the_event_log_has_beginning_progress_and_end(facts: dict[str, Any]) -> None:
    events = facts["events"]
    first, second = sorted({e["run"] for e in events})
    kinds = {run: [e["Event"].rpartition(".Fixpoint")[2] for e in events if e["run"] == run] for run in (first, second)}
    for run in (first, second):
        assert kinds[run][0] == "Started"
        assert set(kinds[run][1:-1]) == {"Progress"}
        assert kinds[run][-1] == "Ended"
    started, *moved, ended = [e for e in events if e["run"] == first]
    assert (started["backend"], started["tasks"], started["limit"]) == ("spark", 2, -1)
    assert ended["succeeded"]
    assert (ended["iterations"], ended["total"]) == (61, 61)
    assert (moved[-1]["iteration"], moved[-1]["total"]) == (61, 61)
    assert ended["loopSeconds"] > 0
    assert started["time"] <= moved[0]["time"] <= ended["time"]
    failed = events[-1]
    assert (failed["run"], failed["succeeded"], failed["iterations"]) == (second, False, 10)


@pytest.mark.parametrize(
    "how",
    [
        "cancelled_in_rounds",
        "cancelled_in_rounds_with_interrupts",
        "cancelled_in_place",
        "cancelled_in_one_long_iteration",
        "cancelled_while_it_waits",
        "cancelled_between_checkpoints",
    ],
)
def test_cancellation_is_prompt_and_leaves_nothing(facts: dict[str, Any], how: str) -> None:
    result = facts[how]
    assert result["is_cancelled"]
    assert result["back"] < PROMPT_SECONDS
    assert result["free"] < PROMPT_SECONDS
    assert result["left"] in (NOTHING, None)
    assert result["next_is_right"]


def test_a_cancelled_run_keeps_no_checkpoint(facts: dict[str, Any]) -> None:
    assert facts["cancelled_between_checkpoints"]["kept"] == []


def test_ctrl_c_raises_keyboard_interrupt_and_the_session_still_works(facts: dict[str, Any]) -> None:
    result = facts["interrupted"]
    assert result["raised"]
    assert result["back"] < PROMPT_SECONDS
    assert result["left"] == NOTHING
    assert result["next_is_right"]


@since("4.0", "PySpark cancels the jobs")
def test_ctrl_c_cancels_the_job(facts: dict[str, Any]) -> None:
    assert facts["interrupted"]["job_ended"] is not None


def test_ctrl_c_leaves_no_checkpoint_of_dataframes(facts: dict[str, Any]) -> None:
    result = facts["interrupted_dataframes"]
    assert len(result["raised"]) > 3
    assert not result["left"]


def test_three_queries_at_once_are_all_right(facts: dict[str, Any]) -> None:
    assert facts["three_at_once"] == {"right": [True] * 9, "left": NOTHING}


def test_waiting_for_slots_is_reported(facts: Any) -> None:  # noqa: ANN401 - Facts of conftest.py
    result = facts["waiting_for_slots"]
    assert result["right"]
    assert result["seconds"] > 3
    assert "patience: waiting for 2 slots" in facts.log


def test_an_rdd_of_a_fixpoint_is_not_ended_by_other_jobs(facts: dict[str, Any]) -> None:
    assert facts["rdd_beside_other_jobs"] == {"right": True, "left": NOTHING}


@pytest.mark.parametrize(
    ("how", "code"),
    [
        ("error_at_the_limit", "PARALAGG_LIMIT_REACHED"),
        ("error_of_a_cycle", "PARALAGG_NO_FIXPOINT"),
        ("error_of_arithmetic", "ARITHMETIC_OVERFLOW"),
    ],
)
def test_an_error_has_its_code_and_leaves_nothing(facts: dict[str, Any], how: str, code: str) -> None:
    assert code in facts[how]["raised"]
    assert facts[how]["left"] == NOTHING


def test_more_partitions_than_slots_are_no_error(facts: dict[str, Any]) -> None:
    assert facts["more_partitions_than_slots"] == {"found": [[True, 2], [True, 2]], "is_alive": True}


def test_confs_are_unchanged(facts: dict[str, Any]) -> None:
    assert facts["confs_are_as_before"] == {}
