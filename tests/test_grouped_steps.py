"""A groupBy in a step whose result is changed or filtered: it means the same on rows, or is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rows import frame

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EDGES = [(1, 2, 4), (1, 2, 9), (2, 3, 1), (3, 4, None), (1, 4, 3), (4, 5, 2), (2, 5, 8)]
# The aggregate, what the step computes of the groups, and a filter on that.
SAME = [
    ("max", "greatest(max(least(v, w)), 3)", ""),
    ("min", "least(min(greatest(v, w)), 7)", ""),
    ("max", "max(least(v, w))", "x > 3"),
    ("min", "min(greatest(v, w))", "6 >= x"),
    ("max", "least(max(coalesce(w, 0)), 5)", ""),
    ("sum", "sum(v * w) * 2", ""),
    ("sum", "3 * sum(v)", ""),
]
REFUSED = [
    ("max", "least(max(least(v, w)), 5)", ""),  # of nulls it is 5, which no row had
    ("min", "greatest(min(v), 3)", ""),
    ("max", "max(v) + 1", ""),
    ("max", "max(v)", "x < 3"),
    ("min", "min(v)", "x > 3"),
    ("sum", "sum(v)", "x > 3"),
    ("sum", "sum(v) + 1", ""),
    ("sum", "sum(v) * sum(w)", ""),
]


def result(  # noqa: PLR0913, PLR0917 - a program, and how it runs
    spark: SparkSession, aggregate: str, value: str, having: str, backend: str, mode: str = "auto"
) -> DataFrame:
    """Return r(k, v) of a step that groups its rows."""
    edges = frame(spark, "src bigint, dst bigint, w bigint", EDGES)

    def step(r: DataFrame) -> DataFrame:
        joined = r.join(edges, r.k == edges.src)
        joined.createOrReplaceTempView("grouped_step")
        grouped = spark.sql(f"SELECT dst AS k, {value} AS x FROM grouped_step GROUP BY dst")  # noqa: S608 - see above
        return (grouped.filter(having) if having else grouped).withColumnRenamed("x", "v")

    base = frame(spark, "k bigint, v bigint", [(1, 6)])
    return base.recursive_agg("k", {"v": aggregate}, step=step, backend=backend, mode=mode)


@pytest.mark.slow("three engines; the definition takes several jobs a round")
@pytest.mark.parametrize(("aggregate", "value", "having"), SAME)
def test_rows_are_those_of_the_definition(spark: SparkSession, aggregate: str, value: str, having: str) -> None:
    plain = result(spark, aggregate, value, having, "dataframe", "iterate")
    expected = sorted(map(tuple, plain.collect()), key=str)
    for backend in ("spark", "local"):
        rows = result(spark, aggregate, value, having, backend)
        assert sorted(map(tuple, rows.collect()), key=str) == expected, backend


@pytest.mark.parametrize(("aggregate", "value", "having"), REFUSED)
def test_what_means_something_else_is_refused(spark: SparkSession, aggregate: str, value: str, having: str) -> None:
    with pytest.raises(ra.UnsupportedError) as caught:
        result(spark, aggregate, value, having, "spark")
    assert caught.value.code == "PARALAGG_STEP_UNSUPPORTED"


def test_a_sum_of_floats_keeps_its_type_below_a_factor(spark: SparkSession) -> None:
    edges = spark.sql("SELECT * FROM VALUES (1L, 2L), (2L, 3L), (1L, 3L) AS e(src, dst)")

    def step(r: DataFrame) -> DataFrame:
        joined = r.join(edges, r.k == edges.src).selectExpr("dst AS k", "cast(v AS float) AS v")
        joined.createOrReplaceTempView("grouped_floats")
        return spark.sql("SELECT k, sum(v) * 0.5D AS v FROM grouped_floats GROUP BY k")

    base = spark.sql("SELECT 1L AS k, 1D AS v")
    for backend in ("spark", "local"):
        rows = base.recursive_agg("k", {"v": "sum"}, step=step, backend=backend)
        assert sorted(map(tuple, rows.collect())) == [(1, 1.0), (2, 0.5), (3, 0.75)], backend
