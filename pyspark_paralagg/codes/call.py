"""Codes for calls: the step, options, assumptions, reports and progress."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import IN_SPARK, ErrorCode

CALL = (
    ErrorCode(
        "PARALAGG_BAD_OPTION",
        "UsageError",
        cause="An option has a value that it does not accept, such as `max_iterations=0` or an unknown `backend`. "
        "An argument that is not a Spark DataFrame raises the same error.",
        remedy="Give a value that the hint lists. `tolerance` needs a `sum` or `count` column.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r, max_iterations=0)
        """,
    ),
    ErrorCode(
        "PARALAGG_INITIAL_SCHEMA",
        "UsageError",
        cause="The column names or types of `initial` differ from those of the base.",
        remedy="Select and cast the columns of `initial` to those of the base.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r, initial=base.select("node"))
        """,
    ),
    ErrorCode(
        "PARALAGG_STEP_COLUMNS_MISSING",
        "UsageError",
        cause="The DataFrame that the step returns lacks a column of the relation.",
        remedy="End the step with a `select` of the relation's columns; use `alias` to rename.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r.select("node"))
        """,
    ),
    ErrorCode(
        "PARALAGG_STEP_COLUMNS_EXTRA",
        "UsageError",
        cause="The DataFrame that the step returns has a column that the relation does not have, or two columns of one "
        "name.",
        remedy="End the step with a `select` of the relation's columns.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r.selectExpr("*", "1 AS hops"))
        """,
    ),
    ErrorCode(
        "PARALAGG_STEP_COLUMNS_TYPE",
        "UsageError",
        cause="The types of a column in step and relation differ, and neither has all values of the other. Otherwise "
        "both get the wider type, as in `UNION`.",
        remedy="Cast the column in the step, or give the base the type of the step.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r.selectExpr("node", "string(dist) AS dist"))
        """,
    ),
    ErrorCode(
        "PARALAGG_STEP_PARAMETERS",
        "UsageError",
        cause="`ra.recursive` passes relations to the step by parameter name, and a parameter does not have the name "
        "of a relation.",
        remedy="Name the parameters of the step after the relations, or use `**relations`.",
        example="""
            base = spark.sql("SELECT 1L AS node")
            ra.recursive({"a": ra.relation(base, keys="node")}, step=lambda a, b: {"a": b})
        """,
    ),
    ErrorCode(
        "PARALAGG_STEP_RESULT",
        "UsageError",
        cause="The step does not return a DataFrame. For `ra.recursive`, it does not return a dict of one DataFrame "
        "for each relation.",
        remedy="Return the DataFrame. For `ra.recursive`, return a dict with every relation and no other name.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: None)
        """,
    ),
    ErrorCode(
        "PARALAGG_REFERENCE_OUTSIDE_STEP",
        IN_SPARK,
        cause="The step runs an action, such as `count`, on the DataFrame that stands for the relation. "
        "That DataFrame has no rows while the plan is built.",
        remedy="Only build a DataFrame in the step. Run actions on the result.",
        example="""
            base = spark.range(3)
            base.recursive_agg("id", step=lambda r: r.limit(r.count()))
        """,
    ),
    ErrorCode(
        "PARALAGG_ASSUME_SYNTAX",
        "UsageError",
        cause="`assume` contains something other than comparisons of a column with a number.",
        remedy='Write the column on the left: `assume="w >= 0"`. It also accepts `>`, `<=`, `<` and a list of '
        "conditions.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r, assume="0 <= w")
        """,
    ),
    ErrorCode(
        "PARALAGG_ASSUME_COLUMN",
        "UsageError",
        cause="`assume` or `.assume` names a column that no joined DataFrame or input has.",
        remedy="Name a column of a DataFrame that the step joins with, as it is called there.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r, assume="w >= 0", backend="spark")
        """,
    ),
    ErrorCode(
        "PARALAGG_GRAPH_COLUMN",
        "UsageError",
        cause="A DataFrame of edges, vertices or sources that is passed to `ra.graph` lacks a column, or the column "
        "has another type: both ends of an edge and all ids have one type, and a weight is a number.",
        remedy='Pass the names of the columns, such as `src="follower"`, or cast the column that the error names.',
        example="""
            edges = spark.sql("SELECT 1L AS src, 2L AS dst")
            ra.graph.shortest_paths(edges, sources=1, weight="km")
        """,
    ),
    ErrorCode(
        "PARALAGG_NO_ITERATIONS",
        "UsageError",
        cause="`report.plot()` needs counts for each iteration, but the run has none. "
        "Runs that use bitmaps or process one value at a time do not count iterations.",
        remedy="Print the report: its text has the times.",
        tested_by="tests/test_report.py::test_a_report_without_iterations_says_so",
    ),
    ErrorCode(
        "PARALAGG_NO_ESTIMATE",
        "UsageError",
        cause="No engine of this package runs a recursion in `df`. There is none, it runs on plain DataFrames, or the "
        "session is one of Spark Connect.",
        remedy="`ra.explain(df)` says what runs the recursion.",
        example="ra.estimate(spark.range(3))",
    ),
    ErrorCode(
        "PARALAGG_NO_MATPLOTLIB",
        "EnvironmentProblem",
        cause="`report.plot()` needs matplotlib, which is not installed.",
        remedy="`pip install 'pyspark-paralagg[plots]'`",
        tested_by="tests/test_report.py::test_without_matplotlib_the_extra_is_named",
    ),
    ErrorCode(
        "PARALAGG_NO_SESSION",
        "UsageError",
        cause="`ra.progress()` or `ra.free_indexes()` finds no active Spark session.",
        remedy="Start a session first, or pass it: `ra.progress(spark=spark)`, `ra.free_indexes(spark)`.",
        tested_by="tests/test_progress.py::test_a_wrong_conf_and_no_session_are_said",
    ),
)
