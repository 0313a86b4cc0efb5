"""Test recursive tables on Delta: what a refresh after inserts writes and reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from spark_versions import SPARK

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.delta,
    pytest.mark.rotates(runs=6, turn=0),
    pytest.mark.slow("two dozen refreshes of Delta tables in one JVM"),
]
SCENARIO = ("refresh", "pipeline", "equal", "reports", "texts", "written")
SECONDS = 1200


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


def test_texts_are_incremental(fact: Callable[[str], Any]) -> None:
    assert fact("texts") == {
        "first": ["full", "full"],
        "then": ["incremental", "incremental"],
        "why": "the sources had only inserts: 2 into edge",
        "dist": [[1, 0], [2, 3], [3, 6], [4, 7], [9, 7]],
        "far": [[2], [3], [4]],
        "unknown": ["UsageError", "PARALAGG_UNKNOWN_RELATION"],
    }


def test_a_result_is_written_to_a_delta_table_and_read_by_a_recursion(fact: Callable[[str], Any]) -> None:
    assert fact("written") == {"stored": True, "recursed": True}
