"""Codes for the declaration of a relation: ``keys``, ``aggs`` and user-defined aggregators."""

from __future__ import annotations

from pyspark_paralagg.codes.error_code import ErrorCode

RELATION = (
    ErrorCode(
        "PARALAGG_KEY_MISSING",
        "UsageError",
        cause="`keys` names a column that the base does not have, or contains something other than column names.",
        remedy="Name columns of the base. Add a computed key to the base as a column first.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("nod", {"dist": "min"}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_KEY_TWICE",
        "UsageError",
        cause="`keys` names a column twice.",
        remedy="Name each key once.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg(["node", "node"], {"dist": "min"}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_KEY_TYPE",
        "UsageError",
        cause="A key is a map or a variant, or contains one. Spark cannot group by these types.",
        remedy="Use columns of other types as keys, such as a field of the map.",
        example="""
            base = spark.sql("SELECT map('a', 1) AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_KEY_AGGREGATED",
        "UsageError",
        cause="A column is in both `keys` and `aggs`. In SQL, the head of the CTE names it twice: plain and "
        "aggregated.",
        remedy="Remove it from `keys` or from `aggs`. In SQL, rename one of the two columns.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg(["node", "dist"], {"dist": "min"}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_COLUMN_TWICE",
        "UsageError",
        cause="The base has two columns of one name, or `aggs` names a column twice.",
        remedy="Rename or drop one of the columns; name each column once in `aggs`.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist, 1D AS dist")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_COLUMN_UNDECLARED",
        "UsageError",
        cause="The base has a column that is neither a key nor aggregated.",
        remedy="Add the column to `keys` or `aggs`, or drop it from the base.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist, 'a' AS label")
            base.recursive_agg("node", {"dist": "min"}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_AGG_COLUMN_MISSING",
        "UsageError",
        cause="`aggs` names a column that the base does not have, as an aggregated column or as a witness.",
        remedy="Name columns of the base, or add the column to the base.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dits": "min"}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_AGG_TYPE",
        "UsageError",
        cause="An aggregate does not support the type of its column, such as a sum of strings.",
        remedy="Cast the column in the base and in the step, or use another aggregate.",
        example="""
            base = spark.sql("SELECT 1L AS node, 'a' AS label")
            base.recursive_agg("node", {"label": "sum"}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_UNKNOWN_AGGREGATE",
        "UsageError",
        cause="`aggs`, the head of a rule or the head of a recursive CTE names an unknown aggregate. "
        "A Column such as `F.min(...)` in `aggs` raises the same error.",
        remedy='Name the aggregate in quotes, `"min"`, or use `ra.min_by(...)`, `ra.mcount(...)` and so on. '
        "In a Datalog text, write `$MIN(x)`.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "mim"}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_MIN_BY_ORDER",
        "UsageError",
        cause="`ra.min_by(c)` needs the column `c` aggregated by `min` in the same relation, `ra.max_by(c)` by `max`. "
        "The relation aggregates `c` in another way or not at all.",
        remedy='Aggregate both columns: `aggs={"dist": "min", "parent": ra.min_by("dist")}`.',
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist, 1L AS parent")
            aggs = {"dist": "max", "parent": ra.min_by("dist")}
            base.recursive_agg("node", aggs, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_PATH",
        "UsageError",
        cause="A column of `ra.path` or `ra.hops`, or of `$PATH` or `$HOPS` in a text, is not defined. It follows a "
        "column that is no minimum or maximum. Or the base has a column of its name. Or a branch of the step reads the "
        "relation twice, or another one of the recursion. Or a limit ends the run while parents still change. Or a "
        "rule reads the column.",
        remedy="Do what the message says. Often the path belongs into a recursion of its own.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist")
            base.recursive_agg("node", {"dist": "min", "route": ra.path("cost")}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_PATH_UNSUPPORTED",
        "UnsupportedError",
        cause="Plain DataFrames were to run a recursion with `ra.path` or `ra.hops`, and its step has an operator that "
        "combines rows, such as a window. Or the session has no jar of this package.",
        remedy="Rewrite the step as the hint says, so that an engine takes it.",
        example="""
            base = spark.sql("SELECT 1L AS node")
            base.recursive_agg("node", {"n": ra.hops()}, step=lambda r: r.limit(5), mode="iterate")
        """,
    ),
    ErrorCode(
        "PARALAGG_WHY",
        "UsageError",
        cause="`ra.why` or `ra.why_not` cannot answer. The DataFrame is no result of a recursion, or a query of SQL "
        "reads several. A Delta table may have other rows than its program gives. Or the keys are "
        "wrong. Or several columns have derivations of their own. Or the result has no such row (`why_not`: has one).",
        remedy="Pass the DataFrame that the call returned, and a value for each key.",
        example="""
            base = spark.sql("SELECT 1L AS node")
            ra.why(base.recursive_agg("node", step=lambda r: r), node=2)
        """,
    ),
    ErrorCode(
        "PARALAGG_WHY_UNSUPPORTED",
        "UnsupportedError",
        cause="`ra.why` or `ra.why_not` was asked about a result that only plain DataFrames, or only Spark, can "
        "compute. The engines explain rows, but none that come from numbers of `autoinc()`.",
        remedy="Rewrite the step as the message says, so that an engine takes it.",
        example="""
            base = spark.sql("SELECT 1L AS node")
            ra.why(base.recursive_agg("node", step=lambda r: r, backend="dataframe"), node=1)
        """,
    ),
    ErrorCode(
        "PARALAGG_WITNESS",
        "UsageError",
        cause="The columns of `ra.mcount`, `ra.msum` or `ra.h_index` are invalid. A witness is missing, is a key or "
        "equals the value, the base has the result column, or another aggregate uses a supplied column.",
        remedy="Name at least one witness that is not a key. Remove the result column from base and step.",
        example="""
            base = spark.sql("SELECT 1L AS node, 2L AS friend")
            base.recursive_agg("node", {"n": ra.mcount("node")}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_AGGREGATOR",
        "UsageError",
        cause="An argument of `ra.aggregator` is wrong: the name is already in use or not an identifier, neither "
        "`combine` nor "
        "`improves` is given, or `columns`, `identity` and `samples` do not match.",
        remedy="Correct the argument that the message names.",
        example="""
            from pyspark.sql import functions as F
            ra.aggregator("min", F.least)
        """,
    ),
    ErrorCode(
        "PARALAGG_AGGREGATOR_COLUMNS",
        "UsageError",
        cause="`aggs` gives an aggregate the wrong number of columns. Built-in aggregates take one column.",
        remedy="Name each column separately, or use `ra.aggregator(..., columns=(...))` with that number of columns.",
        example="""
            base = spark.sql("SELECT 1L AS node, 0D AS dist, 1D AS cost")
            base.recursive_agg("node", {("dist", "cost"): "min"}, step=lambda r: r)
        """,
    ),
    ErrorCode(
        "PARALAGG_AGGREGATOR_RESULT",
        "UsageError",
        cause="A function of `ra.aggregator` does not return a Column, returns other columns than `columns`, or fails "
        "on the sample values.",
        remedy="Return one Column, or a dict with a Column for each name. "
        "Give `samples` if the failing values never occur.",
        example="""
            ra.aggregator("mine", lambda old, new: 5)
        """,
    ),
    ErrorCode(
        "PARALAGG_AGGREGATOR_TYPE",
        "UsageError",
        cause="A function of `ra.aggregator` is not defined for the type of its columns, or returns another type.",
        remedy="Return the type of the arguments (`.cast(...)` helps); `improves` returns a boolean.",
        example="""
            bits = ra.aggregator("bits", lambda old, new: old.bitwiseOR(new))
            base = spark.sql("SELECT 1L AS node, 'a' AS label")
            base.recursive_agg("node", {"label": bits}, step=lambda r: r)
        """,
    ),
)
