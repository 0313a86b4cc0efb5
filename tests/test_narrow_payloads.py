"""Test values of edges at the limits of 32 bits: the Spark engine stores them in as few bytes as all tasks allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation
from rows import arrow_frame, assert_same_rows, rows_of

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

LEAST, GREATEST = -(1 << 31), (1 << 31) - 1
NARROW = [LEAST, -1, 0, 1, GREATEST]
BACKENDS = ["spark", "local"]


def values_along(spark: SparkSession, values: list[object], kind: str, value: str, backend: str) -> DataFrame:
    """Return the value of each edge at its end. Edges lead from their number, in any task, to 100 more."""
    rows = [(i, i + 100, v) for i, v in enumerate(values)]
    edges = spark.createDataFrame(rows, f"src bigint, dst bigint, w {kind}")
    kind_of_v = "double" if kind == "double" else "bigint"
    base = spark.createDataFrame([(i, None) for i in range(len(values))], f"node bigint, v {kind_of_v}")
    return base.recursive_agg(
        "node",
        {"v": "max"},
        step=lambda r: r.join(edges, r.node == edges.src).selectExpr("dst AS node", f"{value} AS v"),
        mode="iterate",
        backend=backend,
    )


def expected(values: Sequence[object]) -> list[tuple[object, ...]]:
    return [*((i, None) for i in range(len(values))), *((i + 100, v) for i, v in enumerate(values))]


@pytest.mark.parametrize(
    ("backend", "tasks", "one_task_rows"),
    [("spark", 1, 0), ("spark", 2, 1000), ("spark", 2, 0), ("spark", 7, 0), ("local", 1, 0)],
)
@pytest.mark.parametrize("other", [None, LEAST - 1, GREATEST + 1, (1 << 63) - 1], ids=str)
def test_values_are_those_of_the_edges(
    spark: SparkSession, backend: str, tasks: int, one_task_rows: int, other: int | None
) -> None:
    """The column is narrow in all tasks, or in none if one of them has a value beyond."""
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    spark.conf.set("spark.paralagg.oneTask.maxRows", one_task_rows)
    values = [*NARROW, other]
    df = values_along(spark, values, "bigint", "w", backend)
    assert_same_rows(rows_of(df), expected(values))


@pytest.mark.parametrize("backend", BACKENDS)
def test_arithmetic_is_that_of_the_type(spark: SparkSession, backend: str) -> None:
    """Products of narrow values do not wrap at 32 bits, and casts cut as Spark's."""
    df = values_along(spark, list(NARROW), "bigint", "w * w + w", backend)
    assert_same_rows(rows_of(df), expected([v * v + v for v in NARROW]))
    df = values_along(spark, [1, 2, 3], "int", "w * 3000000000", backend)
    assert_same_rows(rows_of(df), expected([3_000_000_000, 6_000_000_000, 9_000_000_000]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_doubles_keep_their_bits(spark: SparkSession, backend: str) -> None:
    values = [0.0, 5e-324, 1e-310, -1.5, float("inf")]  # the bits of the first three are few
    df = values_along(spark, list(values[:3]), "double", "w", backend)
    assert_same_rows(rows_of(df), expected(values[:3]))
    df = values_along(spark, list(values), "double", "w", backend)
    assert_same_rows(rows_of(df), expected(values))


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("beyond", [GREATEST, GREATEST + 1])
def test_one_carried_value_at_a_time(spark: SparkSession, tasks: int, beyond: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    weights = [GREATEST, 1, beyond, 5] * 10
    steps = {"src": range(40), "dst": range(1, 41), "w": weights}
    edges = arrow_frame(spark, pa.table({name: list(column) for name, column in steps.items()}))  # of known size
    base = spark.createDataFrame([(s, s, 0) for s in range(40)], "start bigint, node bigint, d bigint")
    df = base.recursive_agg(
        ["start", "node"],
        {"d": "min"},
        step=lambda r: r.join(edges, r.node == edges.src).selectExpr("start", "dst AS node", "d + w AS d"),
        backend="spark",
    )
    assert_same_rows(rows_of(df), [(s, n, sum(weights[s:n])) for s in range(40) for n in range(s, 41)])
    report = ra.report(df)
    assert report is not None
    assert report.form == "one carried value at a time"


@pytest.mark.parametrize("tasks", [1, 2])
@pytest.mark.parametrize("beyond", [GREATEST, GREATEST + 1])
def test_a_side_that_every_task_has(spark: SparkSession, tasks: int, beyond: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    edges = spark.createDataFrame([(i, i + 100, i % 2) for i in range(6)], "src bigint, dst bigint, kind bigint")
    kinds = F.broadcast(spark.createDataFrame([(0, LEAST), (1, beyond)], "k bigint, w bigint"))
    base = spark.createDataFrame([(i, None) for i in range(6)], "node bigint, v bigint")
    df = base.recursive_agg(
        "node",
        {"v": "max"},
        step=lambda r: (
            r.join(edges, r.node == edges.src)
            .join(kinds, edges.kind == kinds.k)
            .select(edges.dst.alias("node"), kinds.w.alias("v"))
        ),
        mode="iterate",
        backend="spark",
    )
    assert_same_rows(rows_of(df), expected([LEAST, beyond] * 3))
