"""Test when a refresh of a recursive table is a full one, wrong use, and conflicts with other writers."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest
from spark_versions import SPARK

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.delta,
    pytest.mark.rotates(runs=6, turn=2),
    pytest.mark.slow("a dozen refreshes of Delta tables in one JVM"),
]
SCENARIO = ("refresh_full", "reasons", "bad", "conflicts")
SECONDS = 1200
MISSING_FILE = "FAILED_READ_FILE.FILE_NOT_EXIST" if SPARK >= (4, 0) else "_LEGACY_ERROR_TEMP_2055"


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
            "two anti joins",
            "the program reads edges below the right side of an anti join, where new rows may remove result rows",
        ),
        ("aggregate", "the program reads starts below an aggregate, where new rows may remove result rows"),
        ("another writer", "another writer changed the table: WRITE in version 3"),
        ("vacuumed", f"the change feed of edges cannot be read for versions 4 to *: {MISSING_FILE}"),
        ("no feed", "the source starts has no change feed (delta.enableChangeDataFeed)"),
        ("swapped", "the source edges has other columns than at version 1"),
        ("replaced", "the source edges was replaced by another table since the last refresh"),
    ],
)
def test_a_full_refresh_has_its_reason(fact: Callable[[str], Any], case: str, reason: str) -> None:
    assert fnmatchcase(fact("reasons")[case], reason)


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
        "arguments": [
            ["UsageError", code]
            for code in (
                "PARALAGG_BAD_OPTION",
                "PARALAGG_DELTA_SOURCE",
                "PARALAGG_DELTA_TARGET",
                "PARALAGG_BAD_OPTION",
                "PARALAGG_BAD_OPTION",
            )
        ],
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
