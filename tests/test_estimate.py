"""``ra.estimate``: rows of the inputs, bytes of a task; what it cannot estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EDGES = 3000


def distances(spark: SparkSession, kind: str = "bigint", backend: str = "spark", length: int = EDGES) -> DataFrame:
    edges = spark.range(length).selectExpr(
        f"CAST(id AS {kind}) AS src", f"CAST(id + 1 AS {kind}) AS dst", "1L AS w", "'unread' AS note"
    )
    base = spark.sql(f"SELECT CAST(1L AS {kind}) AS node, 0L AS dist")
    return base.recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.w).alias("dist")
        ),
        assume="w >= 0",
        backend=backend,
    )


def test_inputs_have_their_rows_and_the_columns_that_are_read(spark: SparkSession) -> None:
    estimate = ra.estimate(distances(spark).where("dist < 9"))
    assert [(i.columns, i.rows, i.bytes) for i in estimate.inputs] == [
        (("node", "dist"), 1, 16),
        (("src", "dst", "w"), EDGES, 24 * EDGES),
    ]
    assert estimate.tasks
    assert estimate.bytes_per_task
    assert estimate.index_bytes_per_task
    assert 24 * EDGES < estimate.bytes_per_task * estimate.tasks < 50 * EDGES
    assert estimate.index_bytes_per_task < estimate.bytes_per_task
    assert (estimate.spilled, estimate.strings, estimate.fits) == (0, 0, True)
    assert set(estimate.row_bytes) == {"r"}
    assert f"(src, dst, w): {EDGES:,} rows, 1 MiB" in repr(estimate)
    assert "(node, dist): 1 row, 1 MiB" in repr(estimate)


def test_strings_are_counted_once(spark: SparkSession) -> None:
    estimate = ra.estimate(distances(spark, "string"))
    assert estimate.strings
    each = 12 + 4  # of at most four digits
    assert 0.8 * EDGES * each < estimate.strings < 1.2 * 2 * EDGES * each
    assert "strings: 1 MiB in every executor" in repr(estimate)


def test_an_input_that_another_recursion_computes_is_not_counted(spark: SparkSession) -> None:
    near = distances(spark)
    df = near.select("node").recursive_agg("node", step=lambda r: r.selectExpr("node % 7 AS node"), backend="spark")
    before = ra.report(near)
    assert [i.rows for i in ra.estimate(df).inputs] == [None]
    assert "(node): the result of another recursion" in repr(ra.estimate(df))
    assert ra.report(near) == before  # it did not run


def test_ranks_have_inputs_only(spark: SparkSession) -> None:
    estimate = ra.estimate(distances(spark, backend="local"))
    assert (estimate.backend, [i.rows for i in estimate.inputs]) == ("local", [1, EDGES])
    assert (estimate.bytes_per_task, estimate.fits) == (None, None)
    assert repr(estimate).splitlines()[0] == "local: 2 inputs"


@pytest.mark.parametrize("backend", [None, "dataframe"])
def test_without_an_engine_there_is_no_estimate(spark: SparkSession, backend: str | None) -> None:
    df = spark.range(3) if backend is None else distances(spark, backend=backend, length=2)
    with pytest.raises(ra.UsageError, match="PARALAGG_NO_ESTIMATE"):
        ra.estimate(df)
