"""Test that arguments of a wrong type are errors with a code at the call."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession


@pytest.fixture
def base(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([(1, 0)], "node bigint, dist bigint")


def distances(base: DataFrame, **options: Any) -> DataFrame:  # noqa: ANN401 - of recursive_agg
    aggs = {"dist": "min", **options.pop("aggs", {})}
    return base.recursive_agg("node", aggs=aggs, step=lambda d: d, **options)


@pytest.mark.parametrize(
    ("call", "code", "message"),
    [
        (lambda _: ra.explain(3), "PARALAGG_BAD_OPTION", "df is a int, not a Spark DataFrame"),
        (lambda _: ra.report(None), "PARALAGG_BAD_OPTION", "df is a NoneType, not a Spark DataFrame"),
        (lambda _: ra.why(3, node=1), "PARALAGG_WHY", "df is a int, not a Spark DataFrame"),
        (lambda _: ra.why_not("dist", node=1), "PARALAGG_WHY", "df is a str, not a Spark DataFrame"),
        (lambda df: ra.why(distances(df), [1]), "PARALAGG_BAD_OPTION", "row is a list"),
        (lambda df: ra.why(distances(df), node=1, limit="a"), "PARALAGG_BAD_OPTION", "limit is a str"),
        (lambda _: ra.configure(3), "PARALAGG_BAD_OPTION", "builder is a int"),
        (lambda df: ra.configure(df.sparkSession), "PARALAGG_BAD_OPTION", "builder is a pyspark.SparkSession"),
        (lambda _: ra.datalog("p(1).", "p(1)."), "PARALAGG_BAD_OPTION", "spark is a str"),
        (lambda df: ra.datalog(df.sparkSession, None), "PARALAGG_BAD_OPTION", "text is a NoneType"),
        (lambda df: distances(df, name=3), "PARALAGG_BAD_OPTION", "name is a int"),
        (lambda df: ra.recursive({"a": ra.relation(df, keys=["node", "dist"])}, lambda a: a, name=["a"]),
         "PARALAGG_BAD_OPTION", "name is a list"),
        (lambda df: distances(df, aggs={"legs": ra.hops(["dist"])}), "PARALAGG_PATH",
         "hops(['dist']) takes names of columns, not ['dist']"),
        (lambda df: distances(df, aggs={"route": ra.path("dist", columns=3)}), "PARALAGG_PATH",
         "path('dist') takes names of columns, not 3"),
        (lambda df: distances(df, aggs={"route": ra.path("dist", columns=["node", 3])}), "PARALAGG_PATH",
         "path('dist') takes names of columns, not 3"),
    ],
)  # fmt: skip
def test_an_argument_of_a_wrong_type(base: DataFrame, call: Callable[[Any], Any], code: str, message: str) -> None:
    with pytest.raises(ra.UsageError) as caught:
        call(base)
    assert (caught.value.code, caught.value.message) == (code, message)
