"""Subqueries over other tables in a recursive branch: they give DuckDB's rows, also where they have nulls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    Rows = list[tuple[object, ...]]

STEP = "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT e.dst FROM t JOIN few e ON t.n = e.src WHERE {}) TABLE t"
WITH_NULL = "(SELECT id FROM (VALUES (4), (NULL)) AS x(id))"
OPTIONAL = (
    "WITH RECURSIVE t(n, d) AS (SELECT src, nullif(dst, 2) FROM few UNION "
    "SELECT e.dst, nullif(e.w, 5) FROM t JOIN few e ON t.n = e.src WHERE {}) TABLE t"
)
SAME_AS_DUCKDB = {
    "IN": (STEP.format("e.dst IN (SELECT src FROM few)"), 3),
    "IN with a null": (STEP.format(f"e.dst IN {WITH_NULL}"), 2),
    "NOT IN": (STEP.format("e.dst NOT IN (SELECT src FROM few WHERE src > 2)"), 3),
    "NOT IN with a null": (STEP.format(f"e.dst NOT IN {WITH_NULL}"), 1),
    "NOT IN no rows": (
        OPTIONAL.format("nullif(e.w, 5) NOT IN (SELECT id FROM (VALUES (1)) AS x(id) WHERE id > 1)"),
        10,
    ),
    "null NOT IN some rows": (OPTIONAL.format("nullif(e.w, 5) NOT IN (SELECT id FROM (VALUES (1)) AS x(id))"), 7),
    "two columns NOT IN": (
        OPTIONAL.format(
            "(e.dst, nullif(e.w, 5)) NOT IN (SELECT a, b FROM (VALUES (4, 1), (2, NULL), (NULL, 4), (3, 7)) AS x(a, b))"
        ),
        7,
    ),
    "EXISTS": (STEP.format("EXISTS (SELECT 1 FROM few f WHERE f.src = e.dst)"), 3),
    "NOT EXISTS": (STEP.format("NOT EXISTS (SELECT 1 FROM few f WHERE f.src = e.dst)"), 2),
    "EXISTS without correlation": (STEP.format("EXISTS (SELECT 1 FROM few WHERE w > 99)"), 1),
    "a value in a filter": (STEP.format("e.dst < (SELECT max(dst) FROM few)"), 3),
    "no value": (STEP.format("e.dst < (SELECT dst FROM few WHERE dst > 99)"), 1),
    "a value in a join": (
        (
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT e.dst FROM t JOIN few e "
            "ON t.n = e.src AND e.w < (SELECT max(w) FROM few)) TABLE t"
        ),
        4,
    ),
    "values in the columns": (
        (
            "WITH RECURSIVE t(n, d) USING KEY (n, min(d)) AS (SELECT 1, 0 UNION SELECT e.dst, "
            "t.d + e.w + (SELECT min(w) FROM few) * (SELECT count(*) FROM few) "
            "FROM t JOIN few e ON t.n = e.src) TABLE t"
        ),
        4,
    ),
}


@pytest.mark.parametrize("name", SAME_AS_DUCKDB)
def test_rows_are_those_of_duckdb(run: Callable[[str], Rows], oracle: Callable[[str], Rows], name: str) -> None:
    query, count = SAME_AS_DUCKDB[name]
    expected = oracle(query)
    assert len(expected) == count
    assert sorted(run(query), key=repr) == sorted(expected, key=repr)


def test_more_than_one_row_is_spark_s_error(run: Callable[[str], Rows]) -> None:
    with pytest.raises(Exception, match="SCALAR_SUBQUERY_TOO_MANY_ROWS"):
        run(STEP.format("e.dst < (SELECT dst FROM few)"))


@pytest.mark.parametrize(
    "condition", ["e.w < (SELECT max(w) FROM few f WHERE f.src = e.dst)", "e.w > 4 OR e.dst IN (SELECT src FROM few)"]
)
def test_other_subqueries_are_refused(spark: SparkSession, views: None, condition: str) -> None:  # noqa: ARG001 - made once
    with pytest.raises(AnalysisException) as caught:
        spark.sql(STEP.format(condition))
    assert caught.value.getCondition() == "PARALAGG_STEP_UNSUPPORTED"
    assert "subquery" in str(caught.value).lower()
