"""Rows of a recursion in SQL are explained: ``ra.why`` and ``ra.why_not``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DIST = """
WITH RECURSIVE dist(node, min() AS d) AS (
    SELECT 1L, 0L UNION SELECT few.dst, dist.d + few.w FROM dist JOIN few ON dist.node = few.src)
"""
OTHER = ", far(n) AS (SELECT node FROM dist WHERE d > 4 UNION SELECT n + 1 FROM far WHERE n < 6)"
ONE_OF_BOTH = "SELECT node FROM dist UNION TABLE far"
PROOF = """\
dist(node=3, d=9)   by step of dist
  dist(node=2, d=4)   by step of dist
    dist(node=1, d=0)   by base of dist
    few(src=1, dst=2, w=4)
  few(src=2, dst=3, w=5)"""

pytestmark = pytest.mark.usefixtures("views")


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM dist",
        "SELECT 2 * node AS n FROM dist WHERE d > 5",
        "SELECT count(*) FROM dist a JOIN dist b USING (node)",
    ],
)
def test_a_row_of_the_recursion_is_explained(spark: SparkSession, query: str) -> None:
    df = spark.sql(DIST + query)
    assert str(ra.why(df, node=3)) == PROOF
    absence = ra.why_not(df, node=9)
    assert [f.rule for f in absence.failures] == ["base of dist", "step of dist"]


def test_a_recursion_over_another_one(spark: SparkSession) -> None:
    proof = ra.why(spark.sql(DIST + OTHER + "TABLE far"), n=5)
    assert [p.row["n"] for p in proof.rows() if p.name == "far"] == [5, 4]


def test_mutual_recursion(spark: SparkSession) -> None:
    df = spark.sql("""
        WITH RECURSIVE even(n) AS (SELECT 1L UNION SELECT few.dst FROM odd JOIN few ON odd.n = few.src),
            odd(n) AS (SELECT few.dst FROM even JOIN few ON even.n = few.src)
        SELECT * FROM odd""")
    proof = ra.why(df, n=2)
    assert [p.name for p in proof.rows()] == ["odd", "even", "few"]


def test_a_sum_lists_its_contributions(spark: SparkSession) -> None:
    df = spark.sql("""
        WITH RECURSIVE t(part, sum() AS n) AS (
            SELECT 0L, 1L UNION ALL SELECT parts.part, t.n * parts.qty FROM t JOIN parts ON t.part = parts.whole)
        SELECT * FROM t""")
    row = max(df.collect(), key=lambda r: r.n)
    proof = ra.why(df, part=row.part)
    assert sum(p.row["n"] * (p.times or 1) for p in proof.premises) == row.n


def test_a_path_beside_the_value(spark: SparkSession) -> None:
    df = spark.sql(DIST.replace("min() AS d)", "min() AS d, path(d) AS way)") + "TABLE dist")
    assert str(ra.why(df, node=3)) == PROOF


def test_errors(spark: SparkSession) -> None:
    for df in (spark.sql(DIST + OTHER + ONE_OF_BOTH), spark.range(3), spark.sql("TABLE few")):
        with pytest.raises(ra.UsageError, match="one recursion in SQL") as wrong:
            ra.why(df, node=3)
        assert wrong.value.code == "PARALAGG_WHY"
    with pytest.raises(ra.UsageError, match="'dist' has no key 'n'"):
        ra.why(spark.sql(DIST + "TABLE dist"), n=3)
    arrays = spark.sql("WITH RECURSIVE r(n, min() AS x) AS (SELECT 1, array(1) UNION SELECT n, x FROM r) TABLE r")
    with pytest.raises(ra.UnsupportedError, match="without arrays and structs") as refused:
        ra.why(arrays, n=1)
    assert refused.value.code == "PARALAGG_WHY_UNSUPPORTED"
