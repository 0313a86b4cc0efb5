"""``USING KEY`` as DuckDB has it: the same text gives the same rows in both, and the same rows as our heads."""

# ruff: noqa: S608 - the queries are the test's own

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rows import rows_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    Rows = list[tuple[object, ...]]

STEP = "SELECT e.dst, r.d + e.w FROM r JOIN graph e ON r.n = e.src"
PARENT = "SELECT e.dst, r.d + e.w, r.n FROM r JOIN few e ON r.n = e.src"
SAME_AS_DUCKDB = {
    "shortest paths": f"WITH RECURSIVE r(n, d) USING KEY (n, min(d)) AS (SELECT 0, 0 UNION {STEP}) SELECT n, d FROM r",
    "names of the first branch": (
        f"WITH RECURSIVE r USING KEY (n, min(d)) AS (SELECT 0 AS n, 0 AS d UNION {STEP}) SELECT n, d FROM r"
    ),
    "an aggregate before the key, in other letters": (
        "with recursive r(d, n) using key (MIN(D), N) as "
        "(SELECT 0, 0 UNION SELECT r.d + e.w, e.dst FROM r JOIN graph e ON r.n = e.src) SELECT n, d FROM r"
    ),
    "two keys": (
        "WITH RECURSIVE r(s, n, d) USING KEY (s, n, min(d)) AS (SELECT src, src, 0 FROM few "
        "UNION SELECT r.s, e.dst, r.d + e.w FROM r JOIN few e ON r.n = e.src) SELECT s, n, d FROM r"
    ),
    "widest paths": (
        "WITH RECURSIVE r(n, c) USING KEY (n, max(c)) AS (SELECT 0, 99 "
        "UNION SELECT e.dst, least(r.c, e.w) FROM r JOIN graph e ON r.n = e.src) SELECT n, c FROM r"
    ),
    "min_by": (
        f"WITH RECURSIVE r(n, d, p) USING KEY (n, min(d), min_by(p, d)) AS (SELECT 1, 0, 0 UNION {PARENT}) TABLE r"
    ),
    "arg_min": (
        f"WITH RECURSIVE r(n, d, p) USING KEY (n, arg_min(p, d), min(d)) AS (SELECT 1, 0, 0 UNION {PARENT}) TABLE r"
    ),
    "bool_or": (
        "WITH RECURSIVE r(n, b) USING KEY (n, bool_or(b)) AS (SELECT 0, true "
        "UNION SELECT e.dst, r.b AND e.w < 40 FROM r JOIN graph e ON r.n = e.src) SELECT n, b FROM r"
    ),
    "components": (
        "WITH RECURSIVE r(n, label) USING KEY (n, min(label)) AS (SELECT child, child FROM parent UNION "
        "SELECT p.parent, r.label FROM r JOIN parent p ON r.n = p.child) SELECT n, label FROM r"
    ),
    "two recursions, of which one reads the other": (
        f"WITH RECURSIVE r(n, d) USING KEY (n, min(d)) AS (SELECT 0, 0 UNION {STEP}), "
        "far(n, top) USING KEY (n, max(top)) AS (SELECT n, d FROM r UNION "
        "SELECT e.dst, f.top FROM far f JOIN graph e ON f.n = e.src) SELECT n, top FROM far"
    ),
    "keys only: a set": (
        "WITH RECURSIVE r(a, b) USING KEY (a, b) AS (SELECT src, dst FROM few UNION "
        "SELECT r.a, e.dst FROM r JOIN few e ON r.b = e.src) TABLE r"
    ),
    "all rows so far": (
        "WITH RECURSIVE r(a, b, d) USING KEY (a, b, min(d)) AS (SELECT src, dst, w FROM few UNION "
        "SELECT x.a, y.b, x.d + y.d FROM r x JOIN recurring.r AS y ON x.b = y.a) TABLE r"
    ),
    "only rows so far": (
        "WITH RECURSIVE r USING KEY (n, min(label)) AS (SELECT child AS n, child AS label FROM parent UNION "
        "SELECT p.parent, r.label FROM Recurring.R JOIN parent p ON r.n = p.child) TABLE r"
    ),
    "names of columns again": (
        f"WITH RECURSIVE r(n, d, p) USING KEY (n, arg_min(p, d) AS P, min(d) AS d) AS (SELECT 1, 0, 0 UNION {PARENT}) "
        "TABLE r"
    ),
    "all rows of a set so far": (
        "WITH RECURSIVE r(a, b) AS (SELECT src, dst FROM few UNION "
        "SELECT x.a, y.b FROM recurring.r x JOIN recurring.r AS y ON x.b = y.a) TABLE r"
    ),
    "the lesser value is kept by a comparison": (
        "WITH RECURSIVE r(n, label) USING KEY (n) AS (SELECT child, child FROM parent UNION "
        "SELECT parent, parent FROM parent UNION SELECT p.parent, min(r.label) FROM r JOIN parent p ON r.n = p.child "
        "JOIN recurring.r AS old ON old.n = p.parent WHERE r.label < old.label GROUP BY p.parent) TABLE r"
    ),
    "the greater value, with a column of its row": (
        "WITH RECURSIVE r USING KEY (n) AS (SELECT DISTINCT dst AS n, if(dst = 1, 0, -99) AS gain, 0 AS p FROM few "
        "UNION SELECT old.n, r.gain - e.w, r.n FROM r JOIN few e ON r.n = e.src "
        "JOIN recurring.r AS old ON old.n = e.dst AND old.gain < r.gain - e.w) TABLE r"
    ),
    "quoted names, a comment and a string": (
        'WITH RECURSIVE r("a n", d) /* USING KEY (x) */ USING KEY ("a n", min(d)) AS (SELECT 0, 0 UNION '
        'SELECT e.dst, r.d + e.w FROM r JOIN graph e ON r."a n" = e.src) '
        "SELECT \"a n\", d, 'USING KEY (n)' FROM r"
    ),
}


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("name", SAME_AS_DUCKDB)
def test_rows_are_those_of_duckdb(
    spark: SparkSession, run: Callable[[str], Rows], oracle: Callable[[str], Rows], name: str, partitions: int
) -> None:
    query = SAME_AS_DUCKDB[name]
    expected = oracle(query)
    assert len(expected) > 3
    if '"' in query:
        spark.conf.set("spark.sql.ansi.enabled", "true")
        spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))
    try:
        assert sorted(run(query), key=repr) == sorted(expected, key=repr)
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(before))


def test_a_clause_is_a_spelling_of_the_head(run: Callable[[str], Rows]) -> None:
    body = f"AS (SELECT 1, 0, 0 UNION {PARENT}) SELECT * FROM r ORDER BY n"
    clause = run(f"WITH RECURSIVE r(n, d, p) USING KEY (n, min(d), min_by(p, d)) {body}")
    assert clause == run(f"WITH RECURSIVE r(n, min() AS d, min_by(d) AS p) {body}")
    assert clause == [(1, 0, 0), (2, 4, 1), (3, 9, 2), (4, 10, 3)]


def test_a_sum_passes_each_contribution_on_once(run: Callable[[str], Rows]) -> None:
    """The ways from part 0, counted in a loop. DuckDB passes the running total on with each change, and counts more."""
    query = (
        "WITH RECURSIVE r(n, ways) USING KEY (n, sum(ways)) AS (SELECT 0L, 1L UNION "
        "SELECT p.part, r.ways FROM r JOIN parts p ON r.n = p.whole) SELECT n, ways FROM r"
    )
    parts = run("SELECT whole, part FROM parts")
    ways = {0: 1}
    for whole, part in sorted(parts):  # a part has a greater number than its whole
        if whole in ways:
            ways[part] = ways.get(part, 0) + ways[whole]
    assert dict(run(query)) == ways
    assert max(ways.values()) > 3


def test_a_view_keeps_the_clause(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    spark.sql(f"CREATE OR REPLACE TEMP VIEW nearest AS {SAME_AS_DUCKDB['shortest paths']}")
    assert sorted(run("SELECT * FROM nearest")) == sorted(run(SAME_AS_DUCKDB["shortest paths"]))
    assert rows_of(spark.table("nearest").where("n = 0")) == [(0, 0)]
    spark.catalog.dropTempView("nearest")


def test_a_join_with_a_column_named_key_is_no_clause(run: Callable[[str], Rows]) -> None:
    query = (
        "WITH RECURSIVE r(key) AS (SELECT 1 UNION SELECT b.dst FROM r JOIN (SELECT src AS key, dst FROM few) b "
        "USING (key)) SELECT key FROM r ORDER BY key"
    )
    assert run(query) == [(1,), (2,), (3,), (4,)]


def test_a_cte_that_does_not_recurse_may_aggregate(run: Callable[[str], Rows]) -> None:
    paths = f"WITH RECURSIVE r(n, min() AS d) AS (SELECT 0, 0 UNION {STEP})"
    kept = "SELECT n % 3, d FROM r UNION ALL SELECT 7, 8 UNION ALL SELECT 7, 9"
    expected = run(f"{paths}, x(k, v) AS ({kept}) SELECT k, min(v), sum(v) FROM x GROUP BY k")
    assert len(expected) == 4
    for head in ("x(k, min() AS v)", "x(k, v) USING KEY (min(v), k)"):
        assert sorted(run(f"{paths}, {head} AS ({kept}) TABLE x")) == sorted((k, v) for k, v, _ in expected)
    assert sorted(run(f"{paths}, x(k, sum() AS v) AS ({kept}) TABLE x")) == sorted((k, v) for k, _, v in expected)
    assert run("WITH RECURSIVE x(k, v) USING KEY (k, v) AS (SELECT 1, 2 UNION ALL SELECT 1, 2) TABLE x") == [(1, 2)]
