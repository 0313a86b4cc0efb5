"""``collect_set(10) AS seen`` in the head of a recursive query: the rows of ``ra.collect_set``."""

# ruff: noqa: S608, E501 - the tests' own queries, each in a line

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from test_collect_set import EDGES, oracle

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

Rows = list[tuple[object, ...]]

STEP = "SELECT e.dst, s.seen FROM s JOIN links e ON s.node = e.src"
BASE = "SELECT src, src FROM links UNION SELECT dst, dst FROM links"


@pytest.fixture(autouse=True)
def links(spark: SparkSession) -> None:
    spark.createDataFrame(EDGES, "src long, dst long").createOrReplaceTempView("links")


@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_least_elements(spark: SparkSession, run: Callable[[str], Rows], limit: int, partitions: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    query = f"WITH RECURSIVE s(node, collect_set({limit}) AS seen) AS ({BASE} UNION {STEP}) SELECT * FROM s"
    assert spark.sql(query).dtypes == [("node", "bigint"), ("seen", "array<bigint>")]
    assert sorted(run(query)) == oracle(limit)


@pytest.mark.parametrize(
    "head",
    [
        "s(collect_set(3) AS seen, node)",
        "s(seen, node) USING KEY (node, collect_set(seen, 3))",
        "s(seen, node) USING KEY (node, COLLECT_SET(SEEN, 3) AS seen)",
    ],
)
def test_other_spellings(run: Callable[[str], Rows], head: str) -> None:
    branches = f"{BASE} UNION SELECT s.seen, e.dst FROM s JOIN links e ON s.node = e.src"
    assert sorted(run(f"WITH RECURSIVE {head} AS ({branches}) SELECT node, seen FROM s")) == oracle(3)


def test_a_result_is_an_array(run: Callable[[str], Rows]) -> None:
    query = f"WITH RECURSIVE s(node, collect_set(3) AS seen) AS ({BASE} UNION {STEP}) SELECT count(*), max(size(seen)) FROM s"
    assert run(query) == [(len(oracle(3)), 3)]
    member = f"WITH RECURSIVE s(node, collect_set(3) AS seen) AS ({BASE} UNION {STEP}) SELECT node FROM s WHERE array_contains(seen, 2L)"
    assert sorted(run(member)) == [(v,) for v, seen in oracle(3) if 2 in seen]


def test_arrays_and_elements_of_several_types(run: Callable[[str], Rows]) -> None:
    """A base may have arrays, which become sets; a step adds wider elements; nulls do not count."""
    rows = run(
        "WITH RECURSIVE r(node, collect_set(2) AS tags) AS (SELECT 1L, array(9, NULL, 9, 8, 7) UNION SELECT 5L, 3 "
        "UNION SELECT 6L, NULL UNION SELECT node + 1, tags FROM r WHERE node < 3 "
        "UNION SELECT node, CAST(4000000000 AS bigint) FROM r) SELECT * FROM r ORDER BY node"
    )
    assert rows == [(1, [7, 8]), (2, [7, 8]), (3, [7, 8]), (5, [3, 4_000_000_000]), (6, [4_000_000_000])]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("decode(unhex('00'), 'utf-8') || tag", ["\x001", "\x0012"]),
        ("DATE'2024-02-28' + tag", ["2024-02-29", "2024-03-02"]),
        ("tag - 6.5D", ["-5.5", "-3.5"]),
    ],
)
def test_types_of_elements(run: Callable[[str], Rows], value: str, expected: list[str]) -> None:
    rows = run(
        f"WITH RECURSIVE r(node, collect_set(2) AS tags) AS (SELECT tag % 2, {value} FROM VALUES (1), (3), (12) AS t(tag) "
        "UNION SELECT 1 - node, tags FROM r) SELECT * FROM r"
    )
    assert [[str(v) for v in tags] for _, tags in rows] == [expected] * 2  # type: ignore[attr-defined]
