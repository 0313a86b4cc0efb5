"""Test errors that a step raises itself, and those that texts with unsigned numbers raise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation
from rows import assert_same_rows, rows_of
from spark_versions import RAISED

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

BACKENDS = ["spark", "local", "mpi", "dataframe"]


def distances(spark: SparkSession, backend: str, limit: int, message: str | Column) -> DataFrame:
    edges = spark.createDataFrame([(1, 2, 3), (2, 3, 4), (3, 1, 5)], "src bigint, dst bigint, w bigint")

    def step(r: DataFrame) -> DataFrame:
        joined = r.join(edges, r.node == edges.src)
        d = F.when(r.d + edges.w > limit, F.raise_error(message)).otherwise(r.d + edges.w)
        return joined.select(edges.dst.alias("node"), d.alias("d"))

    base = spark.createDataFrame([(1, 0)], "node bigint, d bigint")
    return base.recursive_agg("node", {"d": "min"}, step=step, backend=backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_step_raises_its_error_where_it_is_reached(spark: SparkSession, backend: str) -> None:
    assert_same_rows(rows_of(distances(spark, backend, 100, "too far")), [(1, 0), (2, 3), (3, 7)])
    with pytest.raises(Exception, match=f"{RAISED}too far"):
        distances(spark, backend, 8, "too far").collect()


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_its_message_may_have_values(spark: SparkSession, backend: str) -> None:
    """The input that has the value must not raise the error when it is loaded."""
    message = F.concat(F.lit("too far from "), F.col("src").cast("string"))
    assert_same_rows(rows_of(distances(spark, backend, 100, message)), [(1, 0), (2, 3), (3, 7)])
    with pytest.raises(Exception, match=f"{RAISED}too far from 3"):
        distances(spark, backend, 8, message).collect()


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_an_error_in_place_of_a_text(spark: SparkSession, backend: str) -> None:
    """Texts of inputs are computed when these are loaded, but not with an error in them: node 4 is out of reach."""
    edges = spark.createDataFrame([(1, 2, 3, "a"), (4, 5, 9, "b")], "src bigint, dst bigint, w bigint, label string")

    def labels(limit: int) -> DataFrame:
        label = F.when(edges.w > limit, F.raise_error("too far")).otherwise(edges.label)
        base = spark.createDataFrame([(1, "")], "node bigint, label string")
        return base.recursive_agg(
            "node",
            {"label": "max"},
            step=lambda r: r.join(edges, r.node == edges.src).select(edges.dst.alias("node"), label.alias("label")),
            backend=backend,
        )

    assert_same_rows(rows_of(labels(8)), [(1, ""), (2, "a")])
    with pytest.raises(Exception, match=f"{RAISED}too far"):
        labels(2).collect()


def test_ranks_refuse_such_a_message(spark: SparkSession) -> None:
    message = F.concat(F.lit("too far from "), F.col("src").cast("string"))
    with pytest.raises(ra.errors.UnsupportedError, match="errors with constant messages only"):
        distances(spark, "local", 8, message).collect()


@pytest.mark.parametrize("backend", ["spark", "local", "dataframe"])
def test_unsigned_numbers_that_count_down(spark: SparkSession, backend: str) -> None:
    def counted(rule: str) -> list[tuple[object, ...]]:
        text = f".decl p(x: unsigned)\n{rule}\n.output p\n"
        return sorted(rows_of(ra.datalog(spark, text, backend=backend)["p"]))

    assert counted("p(x) :- x = range(1u - 1u, 2u).") == [(0,), (1,)]
    assert counted("p(2u). p(x - 1u) :- p(x), x > 0u.") == [(0,), (1,), (2,)]
    with pytest.raises(Exception, match=r"\[PARALAGG_DATALOG_UNSIGNED\] an unsigned number in line 2, column 10"):
        counted("p(2u). p(x - 1u) :- p(x), x < 9u.")
