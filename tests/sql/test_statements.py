"""Where a recursive query may stand: views, tables, EXPLAIN, subqueries, CTEs, parameters; and what Spark keeps."""

# ruff: noqa: S608 - the tests' own queries

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException
from rows import assert_same_rows, rows_of
from spark_versions import since

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

Rows = list[tuple[object, ...]]
LEVELS = since("4.1", "MAX RECURSION LEVEL")

NEAR = """WITH RECURSIVE near(node, min() AS d) AS (
    SELECT 1, 0 UNION SELECT dst, d + w FROM near JOIN few ON node = src) """
EXPECTED = [(1, 0), (2, 4), (3, 9), (4, 10)]


@pytest.fixture
def table(spark: SparkSession) -> Iterator[str]:
    """The name of a table that is dropped afterwards."""
    yield "near_table"
    spark.sql("DROP TABLE IF EXISTS near_table")


def test_a_temporary_view(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW near_view AS {NEAR} SELECT * FROM near")
    assert_same_rows(run("SELECT * FROM near_view"), EXPECTED)
    assert_same_rows(run("SELECT a.d FROM near_view a JOIN near_view b ON a.node = b.node + 1"), [(4,), (9,), (10,)])


def test_a_view_in_the_catalog_keeps_the_text_of_its_head(spark: SparkSession, run: Callable[[str], Rows]) -> None:
    query = (
        "WITH RECURSIVE t(n, min() AS d) AS (SELECT 1, 0 UNION SELECT n + 1, d + 2 FROM t WHERE n < 3) SELECT * FROM t"
    )
    spark.sql(f"CREATE OR REPLACE VIEW counted AS {query}")
    try:
        assert query in run("SHOW CREATE TABLE counted")[0][0]  # type: ignore[operator]
        assert_same_rows(run("SELECT * FROM counted"), [(1, 0), (2, 2), (3, 4)])
    finally:
        spark.sql("DROP VIEW counted")


def test_tables_are_made_filled_and_replaced(spark: SparkSession, run: Callable[[str], Rows], table: str) -> None:
    spark.sql(f"CREATE TABLE {table} USING parquet AS {NEAR} SELECT * FROM near")
    assert_same_rows(run(f"TABLE {table}"), EXPECTED)
    spark.sql(f"INSERT INTO {table} {NEAR} SELECT * FROM near WHERE node = 1")
    assert_same_rows(run(f"TABLE {table}"), [*EXPECTED, (1, 0)])
    spark.sql(f"INSERT OVERWRITE {table} {NEAR} SELECT * FROM near WHERE node = 2")
    assert_same_rows(run(f"TABLE {table}"), [(2, 4)])
    spark.sql(f"{NEAR} INSERT INTO {table} SELECT * FROM near WHERE node = 3")
    assert_same_rows(run(f"TABLE {table}"), [(2, 4), (3, 9)])


def test_explain_shows_the_fixpoint(run: Callable[[str], Rows]) -> None:
    (line,) = run(f"EXPLAIN {NEAR} SELECT * FROM near")
    assert "Fixpoint near (near, lattice) keys=[node] aggs=[min(d)]" in str(line[0])
    assert "a recursive CTE in SQL runs on the Spark engine" in str(line[0])


def test_explain_and_report_know_the_recursion(spark: SparkSession, views: None) -> None:  # noqa: ARG001 - made once
    df = spark.sql(f"{NEAR} SELECT * FROM near")
    assert ra.explain(df, "program").splitlines()[0] == "relation near(node, min d) from input 0"
    assert ra.report(df) is None
    df.collect()
    report = ra.report(df)
    assert report is not None
    assert (report.backend, report.tuples) == ("spark", 4)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"SELECT * FROM ({NEAR} SELECT * FROM near) WHERE d < 5", [(1, 0), (2, 4)]),
        (f"SELECT w FROM few WHERE dst IN ({NEAR} SELECT node FROM near WHERE d > 9)", [(1,), (20,)]),
        (f"SELECT ({NEAR} SELECT max(d) FROM near)", [(10,)]),
        (f"WITH a AS (SELECT 2 AS n), b AS ({NEAR} SELECT * FROM near) SELECT d FROM a JOIN b ON n = node", [(4,)]),
        (f"{NEAR} SELECT * FROM near UNION ALL SELECT * FROM near", EXPECTED * 2),
        (f"{NEAR}, twice AS (SELECT node, d * 2 FROM near) SELECT * FROM twice WHERE node = 4", [(4, 20)]),
    ],
)
def test_anywhere_that_a_query_may_stand(run: Callable[[str], Rows], query: str, expected: Rows) -> None:
    assert_same_rows(run(query), expected)


def test_a_with_inside_a_recursive_cte(run: Callable[[str], Rows]) -> None:
    text = """WITH RECURSIVE near(node, min() AS d) AS (
        WITH start AS (SELECT 1 AS n), roads AS (SELECT src, dst, w FROM few),
            cheap AS (SELECT * FROM roads WHERE w < 9)
        SELECT n, 0 FROM start
        UNION SELECT c.dst, d + c.w FROM near JOIN cheap c ON node = c.src
        UNION SELECT x.dst, d + x.w FROM near JOIN (WITH y AS (SELECT * FROM few WHERE w = 20) SELECT * FROM y) x
            ON node = x.src)
        SELECT * FROM near"""
    assert_same_rows(run(text), EXPECTED)


@pytest.mark.parametrize(
    "roads",
    [
        "(SELECT * FROM few WHERE dst IN (SELECT id FROM c))",
        "(SELECT few.* FROM few JOIN c a ON dst = a.id JOIN c b ON a.id = b.id)",
        "(WITH d AS (SELECT id AS k FROM c WHERE id = (SELECT max(id) FROM c)) SELECT few.* FROM few, d WHERE dst = k)",
    ],
)
def test_ctes_are_read_in_subqueries_of_a_source(spark: SparkSession, run: Callable[[str], Rows], roads: str) -> None:
    """Around the recursion, in a WITH of the branch, in a WITH of the source, and in a view."""
    spark.sql(f"CREATE OR REPLACE TEMPORARY VIEW roads AS WITH c AS (SELECT 3 AS id) SELECT * FROM {roads}")
    c, step = "c AS (SELECT 3 AS id)", "SELECT e.dst FROM r JOIN {} e ON r.n = e.src"
    for text in (
        f"WITH RECURSIVE {c}, r(n) AS (SELECT 2 UNION {step.format(roads)}) TABLE r",
        f"WITH RECURSIVE r(n) AS (SELECT 2 UNION (WITH {c} {step.format(roads)})) TABLE r",
        f"WITH RECURSIVE r(n) AS (SELECT 2 UNION {step.format(f'(WITH {c} SELECT * FROM {roads})')}) TABLE r",
        f"WITH RECURSIVE r(n) AS (SELECT 2 UNION {step.format('roads')}) TABLE r",
    ):
        assert_same_rows(run(text), [(2,), (3,)])


def test_the_size_of_a_view_with_ctes_is_known(spark: SparkSession, views: None) -> None:  # noqa: ARG001 - made once
    spark.sql("CREATE OR REPLACE TEMPORARY VIEW cheap AS WITH c AS (SELECT * FROM few) SELECT * FROM c WHERE w < 9")
    df = spark.sql("WITH RECURSIVE r(n) AS (SELECT 2 UNION SELECT c.dst FROM r JOIN cheap c ON r.n = c.src) TABLE r")
    assert "(src, dst) := cheap  [160 bytes]" in ra.explain(df, "plan")


@pytest.mark.parametrize(
    "hiding",
    [
        "WITH t AS (SELECT 2 AS n) SELECT n FROM t",
        "SELECT * FROM (WITH t AS (SELECT 2 AS n) SELECT n FROM t)",
        "SELECT dst AS n FROM few WHERE dst IN (WITH t AS (SELECT 2 AS n) SELECT n FROM t)",
    ],
)
def test_a_with_inside_hides_the_recursion(run: Callable[[str], Rows], hiding: str) -> None:
    text = f"WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT e.dst FROM t JOIN few e ON t.n = e.src JOIN ({hiding}) s "
    assert_same_rows(run(f"{text} ON s.n = e.dst) TABLE t"), [(1,), (2,)])
    text = f"WITH RECURSIVE t(n) AS (({hiding}) UNION SELECT n + 1 FROM t WHERE n < 4) TABLE t"
    assert_same_rows(run(text), [(2,), (3,), (4,)])


def test_parameters(spark: SparkSession, views: None) -> None:  # noqa: ARG001 - made once
    text = """WITH RECURSIVE near(node, min() AS d) AS (
        SELECT :start, 0 UNION SELECT dst, d + w FROM near JOIN few ON node = src AND w < :most) SELECT * FROM near"""
    assert_same_rows(rows_of(spark.sql(text, args={"start": 2, "most": 9})), [(2, 0), (3, 5), (1, 6), (4, 6)])


SIX = "WITH RECURSIVE t(n, min() AS d) AS (SELECT 1, 2 UNION SELECT n + 1, d FROM t WHERE n < 3) SELECT sum(n) FROM t"


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        (f"DECLARE EXIT HANDLER FOR SQLEXCEPTION SELECT 'caught'; {SIX}; SELECT raise_error('x');", "caught"),
        (f"DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN {SIX}; END; SELECT raise_error('x');", 6),
        (f"DECLARE EXIT HANDLER FOR DIVIDE_BY_ZERO SELECT 'caught'; {SIX}; SELECT 1 / 0;", "caught"),
        (f"IF 1 = 2 THEN {SIX}; ELSE SELECT 'else'; END IF;", "else"),
        (f"IF 1 = 2 THEN SELECT 'then'; ELSE {SIX}; END IF;", 6),
        (f"CASE WHEN 1 = 2 THEN {SIX}; ELSE SELECT 'else'; END CASE;", "else"),
        (f"CASE ({SIX}) WHEN 6 THEN SELECT 'six'; ELSE SELECT 'else'; END CASE;", "six"),
        (f"CASE 1 WHEN 2 THEN SELECT 'two'; ELSE {SIX}; END CASE;", 6),
        (f"FOR row AS {SIX} DO {SIX}; END FOR;", 6),
    ],
)
@since("4.1", "scripts are on")
def test_scripts_keep_their_handlers_and_branches(run: Callable[[str], Rows], script: str, expected: object) -> None:
    assert run(f"BEGIN {script} END") == [(expected,)]


def test_comments_strings_quotes_and_lines_are_no_matter(run: Callable[[str], Rows]) -> None:
    text = """-- WITH RECURSIVE no(min() AS x) AS (
        with /* recursive */ recursive `a b` ( `the key`, -- the first
            MIN ( ) as `the (least)` ) as (select 1, ', t(min() AS d) AS (' union
            select `the key` + 1, `the (least)` from `a b` where `the key` < 2)
        select * from `a b`"""
    assert_same_rows(run(text), [(1, ", t(min() AS d) AS ("), (2, ", t(min() AS d) AS (")])


@since("4.1", "a quote is doubled inside of quotes")
def test_names_in_double_quotes_are_names_where_spark_takes_them_for_such(
    spark: SparkSession, run: Callable[[str], Rows]
) -> None:
    spark.conf.set("spark.sql.ansi.doubleQuotedIdentifiers", "true")
    text = """WITH RECURSIVE "t"("n", min() AS "a ""b", min_by("a ""b") AS "c") AS (
        SELECT 1, 2, 3 UNION SELECT n + 1, "a ""b", c FROM t WHERE n < 2) SELECT n, `a "b`, c FROM t"""
    assert_same_rows(run(text), [(1, 2, 3), (2, 2, 3)])


@pytest.mark.parametrize(
    "text",
    [
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t",
        pytest.param(
            "WITH RECURSIVE t(n) MAX RECURSION LEVEL 7 AS (SELECT 1 UNION ALL SELECT n FROM t, t u) SELECT * FROM t",
            marks=LEVELS,
        ),
        "WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT * FROM a UNION ALL SELECT 1) SELECT * FROM b",
        "WITH RECURSIVE a AS (SELECT 1 UNION SELECT 2) SELECT * FROM a",
        "WITH a AS (SELECT 1 UNION SELECT 2) SELECT recursive, 'WITH RECURSIVE t(min() AS x)' FROM a",
        "SELECT recursive FROM t -- WITH RECURSIVE t(min() AS x) AS (",
        "CREATE VIEW v AS WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n FROM t) SELECT * FROM t",
    ],
)
def test_what_spark_does_itself_is_parsed_as_spark_parses_it(spark: SparkSession, text: str) -> None:
    own = spark._jvm.org.apache.spark.sql.execution.SparkSqlParser()  # type: ignore[union-attr]
    ours = spark._jsparkSession.sessionState().sqlParser()
    assert ours.getClass().getSimpleName() == "RecursionParser"
    assert ours.parsePlan(text).equals(own.parsePlan(text))


def test_a_later_cte_hides_a_table_of_its_name_only_where_both_read_each_other(run: Callable[[str], Rows]) -> None:
    text = """WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT src FROM few JOIN t ON n = dst),
        few AS (SELECT n FROM t) SELECT count(*) FROM few"""
    with pytest.raises(AnalysisException, match=r"AMBIGUOUS_REFERENCE.*`few`.`n`, `t`.`n`"):  # as the standard has it
        run(text)
    assert run(text.replace("few AS (SELECT n FROM t)", "few AS (SELECT 5)")) == [(1,)]
