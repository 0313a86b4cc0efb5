"""A sum of two columns, one of which may be null: refused unless no null can take the other one's value with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rows import frame

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BASE = [(1, 1, None), (0, 1, 5)]  # m of node 1 arrives later than its n
EDGES = [(0, 1, 0), (1, 2, 10)]


def weights(spark: SparkSession, m: str, backend: str, mode: str, nulls: str = "") -> DataFrame:
    """Return for each node the number n of its paths, and the sum m of their weights; columns have no ``nulls``."""
    edges = frame(spark, f"src bigint, dst bigint, w bigint {nulls}", EDGES)
    base = frame(spark, f"node bigint, n bigint {nulls}, m bigint {nulls}", BASE[1:] if nulls else BASE)
    return base.recursive_agg(
        "node",
        {"n": "sum", "m": "sum"},
        step=lambda d: d.join(edges, d.node == edges.src).selectExpr("dst AS node", "n", f"{m} AS m"),
        backend=backend,
        mode=mode,
    )


@pytest.mark.parametrize("m", ["m + n * w", "n * w - m", "coalesce(m, 0) + n * w"])
@pytest.mark.parametrize("backend", ["spark", "local"])
def test_a_null_that_takes_another_sum_with_it_is_refused(spark: SparkSession, backend: str, m: str) -> None:
    with pytest.raises(ra.VerificationError, match=r"=null.* but their sum") as caught:
        weights(spark, m, backend, "auto").collect()
    assert caught.value.code == "PARALAGG_NOT_LINEAR"
    assert "write coalesce(..., 0) around each of m, n" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("m", "nulls"),
    [("coalesce(m, 0) + coalesce(n, 0) * w", ""), ("m + n * w", "NOT NULL"), ("2 * m - m", ""), ("m + 0", "")],
)
@pytest.mark.parametrize("backend", ["spark", "local"])
def test_without_such_nulls_it_is_proved(spark: SparkSession, backend: str, m: str, nulls: str) -> None:
    found = weights(spark, m, backend, "auto", nulls).collect()
    plain = weights(spark, m, "dataframe", "iterate", nulls).collect()
    assert sorted(found, key=str) == sorted(plain, key=str)
