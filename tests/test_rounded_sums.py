"""Values that are linear in a sum but for a rounding: each round computes them from whole sums, on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rows import frame

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# The sum of node 4 has parts that arrive in two rounds: by 1 -> 2 -> 4 and 3 -> 4.
EDGES = [(1, 2), (2, 4), (3, 4), (4, 5), (5, 6), (4, 6)]
STARTS = {
    "bigint": [(1, "9007199254740993"), (3, "-9007199254740991"), (2, "16777217")],
    "double": [(1, "100000001"), (3, "-100000000"), (2, "0.05")],
    "decimal(18,2)": [(1, "16777217.25"), (3, "-1000000.13"), (2, "0.07")],
}
ROUNDED = [
    ("bigint", "cast(cast(v AS double) AS bigint)"),
    ("bigint", "cast(cast(v AS float) AS bigint)"),
    ("double", "cast(cast(v AS float) AS double)"),
    ("double", "round(v * 0.5, 1)"),
    ("double", "cast(cast(v AS bigint) AS double)"),
    ("double", "cast(cast(v AS decimal(18,1)) AS double)"),
    ("decimal(18,2)", "cast(v * cast(0.75 AS decimal(4,2)) AS decimal(18,2))"),
    ("decimal(18,2)", "cast(v / 3 AS decimal(18,2))"),
    ("decimal(18,2)", "cast(cast(v AS double) AS decimal(18,2))"),
    ("decimal(18,2)", "cast(round(v, 1) AS decimal(18,2))"),
]
EXACT = [
    ("double", "v * 0.5"),
    ("decimal(18,2)", "cast(v * 2 AS decimal(18,2))"),
    ("decimal(18,2)", "cast(v * cast(2 AS decimal(3,0)) AS decimal(18,2))"),
    ("decimal(18,2)", "cast(cast(cast(v AS decimal(20,2)) AS decimal(18,2)) + v AS decimal(18,2))"),
]


def result(spark: SparkSession, type_: str, value: str, backend: str, mode: str = "auto") -> DataFrame:
    """Return the sums of a graph in which ``value`` flows along the edges."""
    edges = frame(spark, "src bigint, dst bigint", EDGES)
    base = frame(spark, "node bigint, v string", STARTS[type_]).selectExpr("node", f"cast(v AS {type_}) AS v")

    def step(r: DataFrame) -> DataFrame:
        return r.join(edges, r.node == edges.src).selectExpr("dst AS node", f"{value} AS v")

    return base.recursive_agg("node", {"v": "sum"}, step=step, backend=backend, mode=mode)


@pytest.mark.slow("three engines; the definition takes several jobs a round")
@pytest.mark.parametrize(("type_", "value"), ROUNDED)
def test_each_round_computes_whole_values(spark: SparkSession, type_: str, value: str) -> None:
    expected = sorted(map(tuple, result(spark, type_, value, "dataframe", "iterate").collect()))
    for backend in ("spark", "local"):
        try:
            rows = result(spark, type_, value, backend)
        except ra.UnsupportedError as refusal:
            assert (backend, refusal.code) == ("local", "PARALAGG_NOT_PORTABLE")  # noqa: PT017 - some are for Spark only
            continue
        assert sorted(map(tuple, rows.collect())) == expected, backend
        assert "v is linear only up to rounding, so each round computes all rows from whole values" in str(
            ra.explain(rows)
        )


@pytest.mark.parametrize(("type_", "value"), EXACT)
def test_what_loses_nothing_runs_on_differences(spark: SparkSession, type_: str, value: str) -> None:
    rows = result(spark, type_, value, "spark")
    assert "stratum 1, accumulating" in str(ra.explain(rows))
    expected = result(spark, type_, value, "spark", "iterate")
    assert sorted(map(tuple, rows.collect())) == sorted(map(tuple, expected.collect()))


def test_what_is_not_linear_is_still_refused(spark: SparkSession) -> None:
    for value in ("round(v, 1) + 1", "round(v * v, 1)"):
        with pytest.raises(ra.VerificationError) as caught:
            result(spark, "double", value, "spark")
        assert caught.value.code == "PARALAGG_NOT_LINEAR"
