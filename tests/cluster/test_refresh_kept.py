"""Test which refreshes go on from the state that the last one has kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.delta,
    pytest.mark.rotates(runs=6, turn=3),
    pytest.mark.slow("sixteen refreshes of Delta tables in one JVM"),
]
SCENARIO = ("refresh_kept", "kept", "alone", "clauses", "indexes")
SECONDS = 900


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


def test_deletes_reach_a_step_without_sources_and_a_full_refresh_leaves_one_state(fact: Callable[[str], Any]) -> None:
    result = fact("alone")
    assert result["loaded"].startswith("only changed rows, and all base rows")
    assert result["rows"] == [[n, n] for n in range(5)]
    assert result["more states"] == 0


def test_merge_inserts_only_if_the_run_has_added_keys(fact: Callable[[str], Any]) -> None:
    update, delete, insert = 0, 1, 2
    updated, both, left = fact("clauses")
    assert (updated[update], updated[insert]) == (True, False)
    assert (both[update], both[insert]) == (True, True)
    assert (left[delete], left[insert]) == (True, False)
    assert [rows_are_right for *_, rows_are_right in (updated, both, left)] == [True] * 3


def test_a_query_uses_the_indexes_of_the_same_version_of_a_table(fact: Callable[[str], Any]) -> None:
    assert fact("indexes") == [[False, True], [True, True]] * 5 + [[True, True], [True, True]]
