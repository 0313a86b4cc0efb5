"""Codes for recursive SQL. Spark raises them as `AnalysisException` with the place in the text."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import IN_SPARK, ErrorCode

SQL = (
    ErrorCode(
        "PARALAGG_SQL_CLAUSE",
        IN_SPARK,
        cause="A recursive CTE has the standard's clause `CYCLE` or `SEARCH`, whose columns keep every path to a row.",
        remedy="Leave `CYCLE` out, because `UNION` ends on cycles. Instead of `SEARCH`, order the result by "
        "`hops() AS steps` of the head. `path() AS way` in the head shows the way to each row.",
        example="""
            t = "t(n) AS (SELECT 1 UNION SELECT n FROM t) CYCLE n SET is_cycle USING path"
            spark.sql(f"WITH RECURSIVE {t} SELECT n FROM t")
        """,
    ),
    ErrorCode(
        "PARALAGG_SQL_HEAD",
        IN_SPARK,
        cause="The head of a CTE has an aggregate without a name.",
        remedy="Write `min() AS dist`.",
        example="""
            spark.sql("WITH RECURSIVE t(n, min()) AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t")
        """,
    ),
    ErrorCode(
        "PARALAGG_SQL_HEAD_ARGUMENT",
        IN_SPARK,
        cause="An aggregate in the head of a CTE has a wrong argument. `min()` takes none, `min_by(dist)` one column; "
        "aggregates with witnesses are not allowed in a head.",
        remedy="Write `min() AS dist`; the branches of the CTE supply the values. Write `min_by(dist) AS parent`.",
        example="""
            spark.sql("WITH RECURSIVE t(n, min(d) AS d) AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t")
        """,
    ),
    ErrorCode(
        "PARALAGG_SQL_USING_KEY",
        IN_SPARK,
        cause="A `USING KEY` clause does not give a row for each key. It omits a column, lists one twice, has an item "
        "that is no column, or has `count`, which counts rows in DuckDB.",
        remedy="List every column once, as a key or under an aggregate: `r(node, dist, parent) "
        "USING KEY (node, min(dist), min_by(parent, dist))`.",
        example="""
            spark.sql("WITH RECURSIVE t(n, d) USING KEY (n) AS (SELECT 1, 1 UNION SELECT n, d FROM t) SELECT * FROM t")
        """,
    ),
    ErrorCode(
        "PARALAGG_SQL_NO_BASE",
        IN_SPARK,
        cause="Every branch of a recursive CTE reads the recursion, so the recursion has no base rows.",
        remedy="Add a branch that does not read the CTE: `SELECT … UNION SELECT … FROM t`.",
        example="""
            spark.sql("WITH RECURSIVE t(n) AS (SELECT n + 1 FROM t UNION SELECT n FROM t) SELECT * FROM t")
        """,
    ),
    ErrorCode(
        "PARALAGG_SQL_ARITY",
        IN_SPARK,
        cause="The number of columns differs between a branch of a recursive CTE and its head or first branch.",
        remedy="Select one column for each column of the head, in its order.",
        example="""
            spark.sql("WITH RECURSIVE t(n, m) AS (SELECT 1 UNION SELECT n, m FROM t) SELECT * FROM t")
        """,
    ),
    ErrorCode(
        "PARALAGG_SQL_TYPES",
        IN_SPARK,
        cause="The branches of a recursive CTE give a column types without a common type. "
        "A type that grows in each iteration, such as a sum of decimals, raises the same error.",
        remedy="Cast the column in the branch that reads the recursion.",
        example="""
            spark.sql("WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT array(n) FROM t) SELECT * FROM t")
        """,
    ),
    ErrorCode(
        "PARALAGG_SQL_PLACE",
        IN_SPARK,
        cause="A CTE reads the recursion in an unsupported place: in a subquery expression, an outer join, a window, "
        "below `GROUP BY`, `ORDER BY` or `LIMIT`, or in a nested `WITH`.",
        remedy="Read it in `FROM` or an inner join. Aggregate in the head, sort and limit the result.",
        example="""
            query = "SELECT n + 1 FROM t ORDER BY n"
            spark.sql(f"WITH RECURSIVE t(n) AS (SELECT 1 UNION ({query})) SELECT * FROM t")
        """,
    ),
    ErrorCode(
        "PARALAGG_SQL_UNION_ALL",
        IN_SPARK,
        cause="CTEs that read each other use `UNION ALL`, which keeps every derivation of a row. "
        "A mutual recursion may have any number of them.",
        remedy="Write `UNION`, or aggregate in the head.",
        example="""
            a = "a(n) AS (SELECT 1 UNION SELECT n FROM b)"
            b = "b(n) AS (SELECT 2 UNION ALL SELECT n FROM a)"
            spark.sql(f"WITH RECURSIVE {a}, {b} SELECT * FROM a")
        """,
    ),
    ErrorCode(
        "PARALAGG_SQL_NOT_CONFIGURED",
        IN_SPARK,
        cause="The session was started without the extension and attached later by `ra.attach`. Such a session has the "
        "extension's parser but not its rules.",
        remedy="Run the query in `spark.newSession()`, or start the session with `ra.configure(builder)`.",
        tested_by="tests/test_session.py",
    ),
    ErrorCode(
        "PARALAGG_SQL_NO_RECURSION",
        IN_SPARK,
        cause="Spark 3.5 does not parse `WITH RECURSIVE`.",
        remedy="Use Spark 4.0 or later, or write the recursion as `df.recursive_agg` or as a Datalog text.",
        tested_by="tests/sql/test_old_spark.py",
    ),
    ErrorCode(
        "PARALAGG_SQL_COMPILER",
        IN_SPARK,
        cause="The Python process that compiles recursive queries does not start, ends, or returns an invalid answer.",
        remedy="Set `spark.paralagg.python` to a Python that has pyspark-paralagg when the application starts, "
        "or pass it to `ra.attach`.",
        tested_by="tests/sql/test_compiler.py",
    ),
)
