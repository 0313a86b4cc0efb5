"""Expressions that have one value in a query have it in every iteration, on every engine: by kind of expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from spark_versions import SPARK

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

USER = "current_user()"
STABLE = [USER, "current_catalog()", "current_database()", "current_date()", "current_timezone()"]
STABLE += ["session_user()", "current_schema()", "DATE'today'"] if SPARK >= (4, 0) else []
CLOCK = {"current_timestamp()": "timestamp", "now()": "timestamp", "localtimestamp()": "timestamp_ntz"}
ENGINES = ["spark", "local", "python", "dataframe"]
needs_variables = pytest.mark.skipif(SPARK < (4, 0), reason="Spark 4.0 and later: session variables")


def labelled(spark: SparkSession, expression: str, kind: str, backend: str) -> list[tuple[Any, ...]]:
    """Return nodes along a chain, each with the expression's value in the iteration that derives it."""
    edges = spark.range(4).selectExpr("id AS src", "id + 1 AS dst")
    base = spark.sql(f"SELECT 0L AS node, CAST(NULL AS {kind}) AS label")
    step = lambda r: r.join(edges, r.node == edges.src).selectExpr("dst AS node", f"{expression} AS label")  # noqa: E731
    df = base.recursive_agg("node", {"label": "min"}, step=step, backend=backend)
    return sorted((row.node, row.label) for row in df.collect())


@pytest.mark.parametrize("backend", ENGINES)
@pytest.mark.parametrize("expression", STABLE)
def test_a_step_has_the_value_of_a_plain_query(spark: SparkSession, expression: str, backend: str) -> None:
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    plain = spark.sql(f"SELECT string({expression})").first()
    assert plain is not None
    assert labelled(spark, f"string({expression})", "string", backend) == [
        (0, None),
        *((n, plain[0]) for n in range(1, 5)),
    ]


@pytest.mark.parametrize("backend", ["spark", "local", "python"])
@pytest.mark.parametrize("expression", CLOCK)
def test_the_clock_stands_still_in_a_recursion(spark: SparkSession, expression: str, backend: str) -> None:
    labels = {label for node, label in labelled(spark, expression, CLOCK[expression], backend) if node}
    assert len(labels) == 1
    assert None not in labels


@pytest.fixture
def variable(spark: SparkSession) -> Iterator[SparkSession]:
    """Provide the session with a variable ``v`` of 5."""
    spark.sql("DECLARE OR REPLACE VARIABLE v INT DEFAULT 5")
    spark.range(4).selectExpr("id AS src", "id + 1 AS dst").createOrReplaceTempView("variable_edges")
    yield spark
    spark.sql("DROP TEMPORARY VARIABLE v")
    spark.catalog.dropTempView("variable_edges")


@needs_variables
@pytest.mark.parametrize("backend", ENGINES)
def test_a_step_has_the_value_that_a_variable_has_when_it_is_analysed(variable: SparkSession, backend: str) -> None:
    edges = variable.table("variable_edges")
    df = variable.sql("SELECT 0L AS node, 0L AS dist").recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda r: r.join(edges, r.node == edges.src).selectExpr("dst AS node", "dist + v AS dist"),
        backend=backend,
    )
    variable.sql("SET VAR v = 7")
    assert sorted(map(tuple, df.collect())) == [(n, 5 * n) for n in range(5)]


QUERIES = {
    "base": ("r(n) AS (SELECT bigint(v) UNION SELECT dst FROM r JOIN variable_edges ON n = src)", [2, 3, 4]),
    "filter": ("r(n) AS (SELECT 0L UNION SELECT dst FROM r JOIN variable_edges ON n = src WHERE dst <= v)", [0, 1, 2]),
    "value": (
        "r(n, min() AS d) AS (SELECT 0L, 0L UNION SELECT dst, d + v FROM r JOIN variable_edges ON n = src)",
        [0, 1, 2, 3, 4],
    ),
}


@needs_variables
@pytest.mark.parametrize("place", QUERIES)
def test_a_query_has_the_value_that_a_variable_has(variable: SparkSession, place: str) -> None:
    text, nodes = QUERIES[place]
    variable.sql("SET VAR v = 2")
    df: DataFrame = variable.sql(f"WITH RECURSIVE {text} SELECT * FROM r")  # noqa: S608 - of the texts above
    variable.sql("SET VAR v = 100")
    rows = sorted(map(tuple, df.collect()))
    assert [row[0] for row in rows] == nodes
    if place == "value":
        assert [row[1] for row in rows] == [2 * n for n in nodes]
