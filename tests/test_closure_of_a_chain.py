"""Non-linear closure doubles its paths: log₂ many iterations on the Spark engine, and one that finds nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@pytest.mark.parametrize("edges", [250, 500])
def test_a_chain_is_closed_in_logarithmically_many_iterations(spark: SparkSession, edges: int) -> None:
    def step(path: DataFrame) -> DataFrame:
        p, q = path.alias("p"), path.alias("q")
        return p.join(q, F.col("p.y") == F.col("q.x")).select(F.col("p.x").alias("x"), F.col("q.y").alias("y"))

    chain = spark.range(edges).select(F.col("id").alias("x"), (F.col("id") + 1).alias("y"))
    closure = chain.recursive_agg(["x", "y"], step=step, backend="spark")
    assert closure.count() == edges * (edges + 1) // 2
    report = ra.report(closure)
    assert report is not None
    assert report.iterations == (edges - 1).bit_length() + 1
