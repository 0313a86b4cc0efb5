"""Test quotients by zero without ANSI mode: they are null, also where no input has a null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from rows import assert_same_rows, rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACKENDS = ["spark", "local", "mpi", "dataframe"]


@pytest.fixture
def without_ansi(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.sql.ansi.enabled", "false")
    return spark


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("query", "rows"),
    [
        (("sum", "double", "rank / n"), [(1, 8.0), (2, None), (3, None), (4, 8.0)]),
        (("sum", "bigint", "rank % n"), [(1, 8), (2, None), (3, None), (4, 0)]),
        (("sum", "bigint", "rank div n"), [(1, 8), (2, None), (3, None), (4, 8)]),
        (("min", "double", "rank / n"), [(1, 8.0), (2, None), (3, None), (4, 8.0)]),
        (("max", "bigint", "pmod(rank, n)"), [(1, 8), (2, None), (3, None), (4, 0)]),
    ],
)
def test_quotients_by_zero_are_null(
    without_ansi: SparkSession, backend: str, query: tuple[str, str, str], rows: list[tuple[Any, ...]]
) -> None:
    aggregate, kind, value = query
    edges = without_ansi.createDataFrame([(1, 2, 0), (2, 3, 1), (1, 4, 1)], "src bigint, dst bigint, n bigint")
    base = without_ansi.createDataFrame([(1, 8)], "node bigint, rank bigint").selectExpr(
        "node", f"cast(rank as {kind}) as rank"
    )
    df = base.recursive_agg(
        "node",
        {"rank": aggregate},
        step=lambda r: r.join(edges, r.node == edges.src).selectExpr("dst as node", f"{value} as rank"),
        mode="iterate",
        max_iterations=4,
        on_limit="return",
        backend=backend,
    )
    assert_same_rows(rows_of(df), rows)
