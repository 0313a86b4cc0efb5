"""Test which steps are warned of: those that ignore their relation, and joins without a condition."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest
from rows import frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    Step = Callable[[DataFrame], DataFrame]


@pytest.fixture
def warned(
    spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> Callable[[Callable[[DataFrame, DataFrame], DataFrame]], list[str]]:
    edges = frame(spark, "src bigint, dst bigint", [(n, n + 1) for n in range(2_000)])
    base = spark.sql("SELECT 0L AS node")

    def warned(step: Callable[[DataFrame, DataFrame], DataFrame]) -> list[str]:
        with caplog.at_level(logging.WARNING, "pyspark_paralagg"):
            base.recursive_agg("node", step=lambda r: step(r, edges), name="reach")
        return [record.getMessage() for record in caplog.records]

    return warned


def test_a_step_that_ignores_its_argument(warned: Callable[..., list[str]]) -> None:
    [message] = warned(lambda _, edges: edges.selectExpr("dst AS node"))
    assert message.startswith("the step does not read reach, so nothing recurses")


def test_a_join_without_a_condition(warned: Callable[..., list[str]]) -> None:
    [message] = warned(lambda r, edges: r.crossJoin(edges).select(edges.dst.alias("node")))
    assert message.startswith("step of reach joins reach with in1 without a condition, so each row with each")


def test_no_doubt_about_a_join_and_about_parameters(warned: Callable[..., list[str]], spark: SparkSession) -> None:
    step = spark.sql("SELECT 1L AS step")
    assert warned(lambda r, edges: r.join(edges, r.node == edges.src).select(edges.dst.alias("node"))) == []
    assert warned(lambda r, _: r.crossJoin(step).where("node < 9").select((r.node + step.step).alias("node"))) == []
