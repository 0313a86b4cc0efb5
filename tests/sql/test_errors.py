"""What is wrong with a recursive query: the code, the place in the text, and what is allowed instead."""

# ruff: noqa: E501 - a text stands in one line, so that a place in it can be seen

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.errors import AnalysisException, ParseException, QueryExecutionException
from spark_versions import since

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The text with «» around what the message has to point at, the code, and a part of what it says.
WRONG = {
    "a head's aggregate has an argument": (
        "WITH RECURSIVE t(n, «min(d) AS d») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD_ARGUMENT",
        "write min() AS d; the branches supply its values",
    ),
    "a head's aggregate has an expression for an argument": (
        "WITH RECURSIVE t(n, min(«d + 1») AS d) AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD_ARGUMENT",
        "write min() without an argument",
    ),
    "min_by without the column that decides": (
        "WITH RECURSIVE t(n, «min_by() AS d») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD_ARGUMENT",
        "name one, as in min_by(dist) AS d",
    ),
    "min_by follows what is not aggregated": (
        "WITH RECURSIVE t(n, «min_by(n) AS d») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_MIN_BY_ORDER",
        "'d' follows 'n'",
    ),
    "witnesses": (
        "WITH RECURSIVE t(n, «mcount(d) AS d») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD_ARGUMENT",
        "use df.recursive_agg or Datalog, which support it",
    ),
    "a set without a limit": (
        "WITH RECURSIVE t(n, «collect_set() AS d») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD_ARGUMENT",
        "write the largest number of elements that a set may have: collect_set(10) AS d",
    ),
    "a set of at most no elements": (
        "WITH RECURSIVE t(n, «collect_set(0) AS d») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD_ARGUMENT",
        "collect_set(0) in a head has no limit",
    ),
    "a set with a column in place of its limit": (
        "WITH RECURSIVE t(n, «collect_set(n) AS d») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD_ARGUMENT",
        "collect_set(10) AS d",
    ),
    "a set without a limit in a clause": (
        "WITH RECURSIVE t(n, d) USING KEY (n, «collect_set(d)») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD_ARGUMENT",
        "collect_set(d, 10)",
    ),
    "a set of values without an order": (
        "WITH RECURSIVE t(n, «collect_set(2) AS d») AS (SELECT 1, map(1, 1) UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_AGGREGATOR_TYPE",
        "elements of map<int,int> have no order",
    ),
    "a set of numbers and of arrays of them": (
        "WITH RECURSIVE t(n, collect_set(2) AS d) AS («SELECT 1, array(array(1))» UNION SELECT n, 1 FROM t) SELECT * FROM t",
        "PARALAGG_SQL_TYPES",
        "array<array<int>>",
    ),
    "a path without the column that decides": (
        "WITH RECURSIVE t(n, min() AS d, «path() AS p») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_PATH",
        "name it, as in path(d) AS p",
    ),
    "hops along a sum": (
        "WITH RECURSIVE t(n, sum() AS d, «hops(d) AS p») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_PATH",
        "follows 'd', no minimum or maximum",
    ),
    "a path with the name of a column": (
        "WITH RECURSIVE t(n, min() AS d, «path(d) AS n») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_PATH",
        "has a column 'n', which path('d') computes",
    ),
    "a branch supplies a path": (
        "WITH RECURSIVE t(n, min() AS d, path(d) AS p) AS («SELECT 1, 1, array(1)» UNION SELECT n, d, p FROM t) SELECT * FROM t",
        "PARALAGG_SQL_ARITY",
        "p is computed afterwards",
    ),
    "a path of a row with two parents": (
        "WITH RECURSIVE t(a, b, path() AS p) AS (SELECT 1, 1 UNION «SELECT x.a, y.b FROM t x JOIN t y ON x.b = y.a») SELECT * FROM t",
        "PARALAGG_PATH",
        "no single parent",
    ),
    "an aggregate without a name": (
        "WITH RECURSIVE t(n, «min()») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD",
        "write an aggregate there as min() AS dist",
    ),
    "an unknown aggregate": (
        "WITH RECURSIVE t(n, «least() AS d») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_UNKNOWN_AGGREGATE",
        "'least' is not an aggregate for the column 'd'",
    ),
    "a mean": (
        "WITH RECURSIVE t(n, «avg() AS d») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_NOT_LINEAR",
        "a mean of means is not a mean",
    ),
    "an aggregate of the wrong type": (
        "WITH RECURSIVE t(n, «sum() AS d») AS (SELECT 1, 'a' UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_AGG_TYPE",
        "sum does not support the column 'd' of type string",
    ),
    "CYCLE": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n FROM t) «CYCLE» n SET x USING path SELECT n FROM t",
        "PARALAGG_SQL_CLAUSE",
        "UNION derives no row twice",
    ),
    "SEARCH": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n FROM t) «search» BREADTH FIRST BY n SET x, u AS (TABLE t) TABLE u",
        "PARALAGG_SQL_CLAUSE",
        "write hops() AS steps",
    ),
    "USING KEY without an aggregate": (
        "WITH RECURSIVE t(n, d) «USING KEY (n)» AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "must compare its d by < or > with that of the key in recurring.t",
    ),
    "USING KEY without an aggregate, beside a comparison with another key": (
        (
            "WITH RECURSIVE t(n, d) «USING KEY (n)» AS (SELECT 1, 1 UNION "
            "SELECT t.n + 1, t.d FROM t JOIN recurring.t old ON old.n = t.n WHERE t.d < old.d) SELECT * FROM t"
        ),
        "PARALAGG_SQL_USING_KEY",
        "would depend on the order of evaluation",
    ),
    "USING KEY without an aggregate, where lesser values lead to greater ones": (
        (
            "WITH RECURSIVE t(n, d) USING KEY (n) AS (SELECT 1, 1 UNION "
            "«SELECT t.n, 9 - t.d FROM t JOIN recurring.t old ON old.n = t.n WHERE 9 - t.d < old.d») SELECT * FROM t"
        ),
        "PARALAGG_NOT_MONOTONE",
        "9 - d gives",
    ),
    "USING KEY without an aggregate or columns": (
        "WITH RECURSIVE t «using  key (n)» AS (SELECT 1 AS n, 1 AS d UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "has no aggregate for d",
    ),
    "USING KEY omits a column": (
        "WITH RECURSIVE t(n, d, p) «USING KEY (n, min(d))» AS (SELECT 1, 1, 1 UNION SELECT n, d, n FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "min(p), or min_by(p, d) for the p of the row with the least d",
    ),
    "USING KEY has a name that is no column": (
        "WITH RECURSIVE t(n, d) USING KEY (n, «min(e)») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "its columns are n, d",
    ),
    "USING KEY has a key that is no column": (
        "WITH RECURSIVE t USING KEY («m», min(d)) AS (SELECT 1 AS n, 1 AS d UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "USING KEY lists m, which is no column of t",
    ),
    "USING KEY lists a column twice": (
        "WITH RECURSIVE t(n, d) USING KEY (n, d, «min(D)») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "lists the column d twice",
    ),
    "USING KEY aggregates an expression": (
        "WITH RECURSIVE t(n, d) USING KEY (n, «min(d + 1)») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "compute values in the branches",
    ),
    "USING KEY has an alias": (
        "WITH RECURSIVE t(n, d) USING KEY (n, «min(d) AS z») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "aggregates d into z",
    ),
    "USING KEY has an expression as a key": (
        "WITH RECURSIVE t(n, d) USING KEY («n + 1», min(d)) AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "is neither a column nor an aggregate of a column",
    ),
    "USING KEY beside aggregates in the head": (
        "WITH RECURSIVE t(n, min() AS d) «USING KEY (n, min(d))» AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "write the aggregates in one of the two",
    ),
    "USING KEY counts": (
        "WITH RECURSIVE t(n, d) USING KEY (n, «count(d)») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_USING_KEY",
        "select 1 in the branches and write sum(d)",
    ),
    "USING KEY has an aggregate of the first row": (
        "WITH RECURSIVE t(n, d) USING KEY (n, «first(d)») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_UNKNOWN_AGGREGATE",
        "'first' is not an aggregate for the column 'd'",
    ),
    "USING KEY with min_by of one column": (
        "WITH RECURSIVE t(n, d) USING KEY (n, «arg_min(d)») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD_ARGUMENT",
        "name one, as in min_by(d, dist)",
    ),
    "USING KEY with min of two columns": (
        "WITH RECURSIVE t(n, d) USING KEY (n, «min(d, n)») AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_HEAD_ARGUMENT",
        "write min(d)",
    ),
    "a step that is not monotone under USING KEY": (
        "WITH RECURSIVE t(n, d) USING KEY (n, min(d)) AS (SELECT 1, 1 UNION «SELECT n, -d FROM t») SELECT * FROM t",
        "PARALAGG_NOT_MONOTONE",
        "-d gives",
    ),
    "a column that is a key and aggregated": (
        "WITH RECURSIVE t(d, «min() AS d») AS (SELECT 1, 1 UNION SELECT d, d FROM t) SELECT * FROM t",
        "PARALAGG_KEY_AGGREGATED",
        "both a key and aggregated",
    ),
    "two columns of one name": (
        "WITH RECURSIVE «t(a, a) AS (SELECT 1, 2 UNION SELECT a, a FROM t)» TABLE t",
        "PARALAGG_COLUMN_TWICE",
        "two columns 'a'",
    ),
    "an aggregated column that makes a key": (
        "WITH RECURSIVE t(n, min() AS d) AS (SELECT 1, 1 UNION «SELECT d, d FROM t») SELECT * FROM t",
        "PARALAGG_DEPENDENT_AS_KEY",
        "which min aggregates in this recursion",
    ),
    "a join on an aggregated column": (
        "WITH RECURSIVE t(n, min() AS d) AS (SELECT 1, 1 UNION «SELECT dst, w FROM t JOIN few ON d = src») SELECT * FROM t",
        "PARALAGG_JOIN_ON_DEPENDENT",
        "join on a key column",
    ),
    "too few columns in the base": (
        "WITH RECURSIVE t(n, min() AS d) AS («SELECT 1» UNION SELECT n, d FROM t) SELECT * FROM t",
        "PARALAGG_SQL_ARITY",
        "a branch of t has 1 column, and t has 2 columns",
    ),
    "too many columns in a step": (
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION «SELECT n, n FROM t») SELECT * FROM t",
        "PARALAGG_SQL_ARITY",
        "the first branch has 1 column",
    ),
    "types that have nothing in common": (
        "WITH RECURSIVE t(n) AS («SELECT 1» UNION SELECT array(n) FROM t) SELECT * FROM t",
        "PARALAGG_SQL_TYPES",
        "column 1 of t is int in one branch and array<int> in another",
    ),
    "a type that grows in each round": (
        "WITH RECURSIVE t(n) AS (SELECT CAST(1 AS DECIMAL(5, 2)) UNION «SELECT n + n FROM t») SELECT * FROM t",
        "PARALAGG_SQL_TYPES",
        "cast it in the branch that reads the recursion",
    ),
    "no base, no union": (
        "WITH RECURSIVE t(n) AS (SELECT n + 1 FROM «t») SELECT * FROM t",
        "PARALAGG_SQL_NO_BASE",
        "add a branch that does not read it: SELECT … UNION SELECT … FROM t",
    ),
    "no base, though there is a union": (
        "WITH RECURSIVE t(n) AS (SELECT n + 1 FROM «t» UNION SELECT n FROM t) SELECT * FROM t",
        "PARALAGG_SQL_NO_BASE",
        "every branch of t reads the recursion",
    ),
    "branches that EXCEPT combines": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n + 1 FROM «t» WHERE n < 3 EXCEPT SELECT 3) SELECT * FROM t",
        "PARALAGG_SQL_NO_BASE",
        "EXCEPT combines branches of t, which only UNION can do in a recursion",
    ),
    "no base in a mutual recursion": (
        "WITH RECURSIVE a(n) AS (SELECT n FROM «b» UNION SELECT n FROM a), b(n) AS (SELECT n FROM a) SELECT * FROM a",
        "PARALAGG_SQL_NO_BASE",
        "every branch of a reads the recursion",
    ),
    "in a subquery expression": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT n + 1 FROM t WHERE n < (SELECT max(n) FROM «t»)) SELECT * FROM t",
        "PARALAGG_SQL_PLACE",
        "in a subquery expression",
    ),
    "in EXISTS": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT src FROM few WHERE EXISTS (SELECT 1 FROM «t» WHERE n = dst)) TABLE t",
        "PARALAGG_SQL_PLACE",
        "in a subquery expression",
    ),
    "on the null side of an outer join": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT dst FROM few LEFT JOIN «t» ON n = src) SELECT * FROM t",
        "PARALAGG_SQL_PLACE",
        "cannot be read in an outer join",
    ),
    "under GROUP BY": (
        "WITH RECURSIVE t(n, d) AS (SELECT 1, 1 UNION SELECT n, max(d) FROM «t» GROUP BY n) SELECT * FROM t",
        "PARALAGG_SQL_PLACE",
        "aggregate in the head of the CTE: t(key, min() AS value)",
    ),
    "under an aggregate of all rows": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION «SELECT max(n) FROM t») SELECT * FROM t",
        "PARALAGG_STEP_UNSUPPORTED",
        "because SQL queries run only on the Spark engine",
    ),
    "under LIMIT": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION (SELECT n FROM «t» LIMIT 1)) SELECT * FROM t",
        "PARALAGG_SQL_PLACE",
        "limit the result",
    ),
    "under ORDER BY": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION (SELECT n + 1 FROM «t» ORDER BY n)) SELECT * FROM t",
        "PARALAGG_SQL_PLACE",
        "order the result",
    ),
    "under a window function": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT rank() OVER (ORDER BY n) FROM «t») SELECT * FROM t",
        "PARALAGG_SQL_PLACE",
        "under a window function",
    ),
    "in a WITH of its own": (
        "WITH RECURSIVE t(n) AS (SELECT 1 UNION (WITH u AS (SELECT * FROM «t») SELECT n FROM u)) SELECT * FROM t",
        "PARALAGG_SQL_PLACE",
        "in a WITH of its own",
    ),
    "in a recursion inside": (
        (
            "WITH RECURSIVE t(n) AS (SELECT 1 UNION (WITH RECURSIVE u(n) AS (SELECT n FROM «t» UNION SELECT n FROM u) "
            "SELECT n FROM u)) SELECT * FROM t"
        ),
        "PARALAGG_SQL_PLACE",
        "in a WITH of its own",
    ),
    "UNION ALL in a mutual recursion": (
        "WITH RECURSIVE a(n) AS (SELECT 1 UNION SELECT n FROM b), b(n) AS («SELECT 2 UNION ALL SELECT n FROM a») TABLE a",
        "PARALAGG_SQL_UNION_ALL",
        "write UNION",
    ),
    "a step that is not monotone": (
        "WITH RECURSIVE t(n, min() AS d) AS (SELECT 1, 1 UNION SELECT 2, 2 UNION «SELECT n, -d FROM t») SELECT * FROM t",
        "PARALAGG_NOT_MONOTONE",
        "-d gives",
    ),
    "a threshold on a sum": (
        (
            "WITH RECURSIVE owns(c, d, sum() AS s) AS (SELECT src, dst, w FROM few UNION "
            "«SELECT o.c, f.dst, f.w FROM owns o JOIN few f ON o.d = f.src WHERE o.s > 50») SELECT * FROM owns"
        ),
        "PARALAGG_NOT_LINEAR",
        "because SQL has none",
    ),
    "a different value each time": (
        "WITH RECURSIVE t(n) AS (SELECT 1.0D UNION «SELECT rand() FROM t») SELECT * FROM t",
        "PARALAGG_NONDETERMINISTIC",
        "so the step has no fixpoint",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_error_has_its_place(spark: SparkSession, views: None, name: str) -> None:  # noqa: ARG001 - made once
    marked, code, said = WRONG[name]
    text = marked.replace("«", "").replace("»", "")
    start, width = marked.index("«"), marked.index("»") - marked.index("«") - 1
    with pytest.raises(AnalysisException) as caught:
        spark.sql(text)
    message = str(caught.value).split("JVM stacktrace")[0]
    assert caught.value.getCondition() == code
    assert message.startswith(f"[{code}]")
    assert said in message
    assert f"== SQL (line 1, position {start + 1}) ==" in message
    assert f"; line 1 pos {start}" in message
    _, shown, mark = message[message.index("== SQL") :].splitlines()[:3]
    assert mark.count("^") == width
    assert shown[mark.index("^") :][:width] == text[start : start + width]
    assert "\ue000" not in message


def test_lines_are_counted_and_the_head_is_shown_as_it_was_written(spark: SparkSession) -> None:
    text = "WITH RECURSIVE\n  t(n, min() AS d) AS (\n    SELECT 1, 1\n    UNION SELECT n FROM t)\nSELECT * FROM t"
    with pytest.raises(AnalysisException) as caught:
        spark.sql(text)
    assert "== SQL (line 4, position 11) ==\n" in str(caught.value)


def test_what_spark_finds_wrong_it_says_itself(spark: SparkSession, views: None) -> None:  # noqa: ARG001 - made once
    head = "WITH RECURSIVE t(n, min() AS d) AS (SELECT 1, 1 UNION SELECT "
    for rest, condition, place in (
        ("n, x FROM t) SELECT * FROM t", "UNRESOLVED_COLUMN.WITH_SUGGESTION", 64),
        ("n, d FROM t JOIN nowhere) SELECT * FROM t", "TABLE_OR_VIEW_NOT_FOUND", 78),
        ("n, d FROM t) SELECT x FROM t", "UNRESOLVED_COLUMN.WITH_SUGGESTION", 81),
        ("n, d FROM recurring.u) SELECT * FROM t", "TABLE_OR_VIEW_NOT_FOUND", 71),
    ):
        with pytest.raises(AnalysisException) as caught:
            spark.sql(head + rest)
        assert caught.value.getCondition() == condition
        assert f"; line 1 pos {place}" in str(caught.value)


def test_a_text_that_cannot_be_parsed_is_shown_as_it_was_written(spark: SparkSession) -> None:
    text = "WITH RECURSIVE t(n, min() AS d) AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT ) FROM t"
    with pytest.raises(ParseException) as caught:
        spark.sql(text)
    assert f"== SQL ==\n{text}\n" in str(caught.value)
    assert "(line 1, pos 81)" in str(caught.value)


@since("4.1", "MAX RECURSION LEVEL")
def test_more_rounds_than_are_allowed_are_an_error(spark: SparkSession) -> None:
    text = (
        "WITH RECURSIVE t(n) MAX RECURSION LEVEL {} AS (SELECT 1 UNION SELECT n + 1 FROM t WHERE n < 6) SELECT * FROM t"
    )
    assert spark.sql(text.format(6)).count() == 6
    with pytest.raises(QueryExecutionException, match=r"PARALAGG_LIMIT_REACHED.*after 3 iterations"):
        spark.sql(text.format(3)).collect()
