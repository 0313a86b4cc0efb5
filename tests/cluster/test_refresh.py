"""Test recursive tables on Delta: what a refresh writes, when it is a full one, and what a killed one leaves."""

from __future__ import annotations

import importlib.util
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest
from spark_versions import SPARK, skip_without_delta

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.delta,
    pytest.mark.slow("sixty refreshes of Delta tables of one to three seconds each, in one JVM; four JVMs are killed"),
]
MISSING_FILE = "FAILED_READ_FILE.FILE_NOT_EXIST" if SPARK >= (4, 0) else "_LEGACY_ERROR_TEMP_2055"
FACTS = (
    "pipeline",
    "equal",
    "deletes",
    "reports",
    "reasons",
    "costs",
    "sums",
    "kept",
    "bad",
    "conflicts",
    "texts",
    "written",
)


@pytest.fixture
def delta(scenario: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``scenario``. Skip the test if Delta or its jars are not available."""
    if importlib.util.find_spec("delta") is None:
        pytest.skip("delta-spark is not installed")

    def run(*key: str, seconds: int = 300) -> Any:  # noqa: ANN401 - Facts of conftest.py
        facts = scenario(*key, seconds=seconds)
        if not facts.by_name:
            skip_without_delta(facts.log)
        return facts

    return run


@pytest.fixture
def fact(delta: Callable[..., Any]) -> Callable[[str], Any]:
    """Return a function that reads a fact of the scenario ``refresh``."""
    return lambda name: delta("refresh", *FACTS, seconds=1500)[name]


def test_three_tables_form_a_pipeline(fact: Callable[[str], Any]) -> None:
    assert fact("pipeline") == {
        "written": {"a": 0, "b": 4, "c": 8},
        "by timestamp": 2,
        "by version": {"a": 0, "b": 4, "c": 8},
        "merged": {"a": 0, "b": 4, "c": 1, "d": 2},
        "appended": 8,
        "overwritten": {"a": 0, "b": 4, "c": 1, "d": 2},
        "schema": "DELTA_METADATA_MISMATCH" if SPARK >= (4, 0) else "_LEGACY_ERROR_TEMP_DELTA_0007",
    }


def test_a_refresh_reads_only_changed_rows_if_the_last_one_has_kept_its_state(fact: Callable[[str], Any]) -> None:
    new = "only changed rows: the last refresh has kept its state"
    none = "all rows: executors have no state of the last refresh"
    off = "all rows: spark.paralagg.delta.keepState is false"
    deleted = "only changed rows, and all base rows, since none are kept: the last refresh has kept its state"
    result = fact("kept")
    assert result["loaded"] == [
        ["", ""],  # full
        [new, new],
        [new, new],  # after OPTIMIZE, with rows of both sources, by new objects of the same tables
        [deleted, deleted],
        ["", new],  # another writer has changed one table
        [deleted, new],
        [none, new],  # after a commit of one table has failed
        [off, off],
    ]
    assert set(result["same"]) == {True}


def test_an_incremental_refresh_has_the_rows_of_a_full_one(fact: Callable[[str], Any]) -> None:
    result = fact("equal")
    assert {kind for kinds in result["kinds"].values() for kind in kinds[1:]} == {"incremental"}
    assert {kinds[0] for kinds in result["kinds"].values()} == {"full"}
    assert result["same"] == dict.fromkeys(("closure", "labels", "hops", "widest", "dist"), True)
    assert result["by_hand"]
    assert result["null_key"]

    result = fact("reports")
    assert result["kinds"] == ["full", "none", "incremental", "incremental", "none", "incremental"]
    assert result["version_after_nothing"] == 0
    assert result["versions"][:4] == [0, None, 1, 2]
    assert result["versions"][4] is None


def test_only_changed_rows_are_written(fact: Callable[[str], Any]) -> None:
    # A shorter way to 2 and a new node 9; an edge that improves nothing; a new node 10.
    assert fact("reports")["rows"] == [[3, 0], [1, 1], [0, 0], [1, 0]]
    assert fact("reports")["result"] == [[0, 0], [3, 2], [4, 1], [4, 9], [5, 10]]


def test_status_predicts_the_refresh(fact: Callable[[str], Any]) -> None:
    assert fact("reports")["status"] == ["incremental", {"insert": 2}]
    assert fact("reports")["sources"] == ["0 -> 1", "0"]
    assert fact("reports")["iterations"] == [True, True, 0]
    assert fact("reports")["text"] == [True, True]


def test_a_full_refresh_can_be_requested(fact: Callable[[str], Any]) -> None:
    assert fact("reports")["forced"] == ["full", "full=True is set", True, "none"]


def test_history_has_the_consumed_versions(fact: Callable[[str], Any]) -> None:
    result = [entry[1:] for entry in fact("reports")["history"]]
    assert result == [["full", 4], ["incremental", 4], ["incremental", 2], ["incremental", 1], ["full", 0]]


def test_the_session_keeps_its_confs(fact: Callable[[str], Any]) -> None:
    assert fact("reports")["confs"]
    assert fact("reports")["session_of_rdds"]


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("first", "it is the first refresh"),
        ("another step", "the program has changed since the last refresh"),
        ("another constant", "the program has changed since the last refresh"),
        ("clock", "the program calls current_date, which is not deterministic"),
        ("limit", "max_iterations is set, and a continued run has other rounds than a full one"),
        ("backend", "plain DataFrames are requested, and they recompute all rows in each iteration"),
        (
            "anti join",
            "the program reads edges below the right side of an anti join, where new rows may remove result rows",
        ),
        ("aggregate", "the program reads starts below an aggregate, where new rows may remove result rows"),
        ("another writer", "another writer changed the table: WRITE in version 3"),
        ("vacuumed", f"the change feed of edges cannot be read for versions 4 to *: {MISSING_FILE}"),
        ("no feed", "the source starts has no change feed (delta.enableChangeDataFeed)"),
        ("replaced", "the source edges was replaced by another table since the last refresh"),
    ],
)
def test_a_full_refresh_has_its_reason(fact: Callable[[str], Any], case: str, reason: str) -> None:
    assert fnmatchcase(fact("reasons")[case], reason)


def test_deletes_that_cost_more_than_a_full_refresh_are_not_maintained(fact: Callable[[str], Any]) -> None:
    result = fact("costs")
    assert result["kinds"] == ["full", "incremental", "full", "incremental", "incremental"]
    assert fnmatchcase(
        result["reason"],
        "a full refresh costs less: * s for all rows, * s for the deletes of an earlier one (full=False *",
    )
    assert result["costs"] == [True, True]
    assert result["rows"] == [*([4 * n, n] for n in range(7)), [25, 7]]


def test_sums_are_maintained_by_differences(fact: Callable[[str], Any]) -> None:
    first = {0: 10, 1: 20, 2: 30, 3: 110, 4: 220}
    twice = {0: 10, 1: 40, 2: 30, 3: 190, 4: 380, 5: 380, 6: 380}
    updated = {0: 10, 1: 40, 2: 30, 3: 370, 4: 740}
    result = fact("sums")
    assert result["kinds"] == ["full", "incremental", "incremental", "incremental"]
    expected = [first, twice, updated, {0: 10, 2: 30, 3: 210, 4: 420}]
    assert result["rows"] == [sorted([n, k] for k, n in rows.items()) for rows in expected]
    assert result["written"][1:] == [[2, 3, 0], [0, 2, 2], [0, 2, 1]]
    assert result["is full"]


def test_deletes_and_updates_are_maintained(fact: Callable[[str], Any]) -> None:
    result = fact("deletes")
    assert result["same"] == {name: [True, True] for name in ("closure", "labels", "hops", "widest", "dist")}
    assert {kind for kinds in result["kinds"].values() for kind in kinds} == {"incremental"}
    assert result["reasons"][0].startswith("the changes can be maintained: ")
    assert result["duplicate"] == ["incremental", 0, 0, 0]


def test_a_full_refresh_removes_outdated_rows(fact: Callable[[str], Any]) -> None:
    result = fact("reasons")
    assert result["incremental"] == "incremental"
    assert result["done"] == ["incremental", True, 1, [[0, 0], [2, 6], [4, 1]]]
    assert result["its rows are gone"]
    assert result["after vacuum"] == ["full", True]


def test_wrong_use_is_an_error_and_leaves_the_target(fact: Callable[[str], Any]) -> None:
    assert fact("bad") == {
        "foreign": ["UsageError", "PARALAGG_DELTA_TARGET"],
        "schema": ["UsageError", "PARALAGG_DELTA_SCHEMA"],
        "untouched": [0, 0],
        "column": ["UsageError", "PARALAGG_DELTA_PROGRAM"],
        "source": ["UsageError", "PARALAGG_DELTA_SOURCE"],
        "no table": ["UsageError", "PARALAGG_DELTA_SOURCE"],
        "untracked": ["UsageError", "PARALAGG_DELTA_UNTRACKED"],
        "no dataframe": ["UsageError", "PARALAGG_DELTA_PROGRAM"],
        "renamed": ["UsageError", "PARALAGG_DELTA_PROGRAM"],
        "after renaming": 0,
        "prepared": ["full", 4],
        "properties": "me",
    }


@pytest.mark.parametrize("when", ["before", "within"])
def test_one_of_two_concurrent_refreshes_fails_and_is_retryable(fact: Callable[[str], Any], when: str) -> None:
    assert fact("conflicts")[when] == {
        "first": [["PARALAGG_DELTA_CONFLICT", True]],
        "second": "incremental",
        "version": True,
        "again": "none",
    }


def test_a_text_with_one_recursion_is_incremental(fact: Callable[[str], Any]) -> None:
    assert fact("texts") == {
        "first": ["full", "full"],
        "then": ["incremental", "full"],
        "why": "only a single recursion over inputs can continue from its rows: far needs reach, which is another "
        "recursion",
        "dist": [[1, 0], [2, 3], [3, 6], [4, 7], [9, 7]],
        "far": [[2], [3], [4]],
        "unknown": ["UsageError", "PARALAGG_UNKNOWN_RELATION"],
    }


def test_a_killed_refresh_that_runs_again_gives_the_same_table(
    delta: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = str(tmp_path_factory.mktemp("killed"))
    full, fixpoint, merge = (delta("refresh_killed", step, folder) for step in ("full", "fixpoint", "merge"))
    assert [facts.end for facts in (full, fixpoint, merge)] == ["ended with code 9"] * 3
    assert fixpoint["before"] == {"version": -1}
    only_first = {"version": 0, "rows": ["first"], "history": ["full"]}
    assert merge["before"] == only_first
    after = delta("refresh_killed", "after", folder)
    assert after["before"] == only_first
    assert after["again"] == "incremental"
    assert after["then"] == {"version": 1, "rows": ["then"], "history": ["incremental", "full"]}
    assert after["lost"] == {
        "found": {"version": 2, "rows": ["last"], "history": ["incremental", "incremental", "full"]},
        "next": "none",
    }


def test_a_result_is_written_to_a_delta_table_and_read_by_a_recursion(fact: Callable[[str], Any]) -> None:
    assert fact("written") == {"stored": True, "recursed": True}
