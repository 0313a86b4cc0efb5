"""Outer joins that keep the rows of the relation's side, and operators without a meaning in a recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rows import frame

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    Step = Callable[[DataFrame], DataFrame]

# Node 2 has two tolls and node 3 none; a null joins nothing.
ROADS = [(1, 2, 4), (2, 3, 5), (3, 4, 1), (1, 4, 50)]
TOLLS = [(2, 100), (2, 70), (None, 5), (4, None)]


def steps(spark: SparkSession) -> dict[str, Step]:
    """Return steps that add the toll of the reached node, if it has one."""
    roads = frame(spark, "src bigint, dst bigint, w bigint", ROADS)
    tolls = frame(spark, "n bigint, fee bigint", TOLLS)

    def reached(r: DataFrame) -> DataFrame:
        return r.join(roads, r.k == roads.src).selectExpr("dst", "d + w AS d")

    def select(joined: DataFrame) -> DataFrame:
        return joined.selectExpr("dst AS k", "d + coalesce(fee, 0) AS d")

    return {
        "left": lambda r: select(reached(r).join(tolls, tolls.n == reached(r).dst, "left")),
        "right": lambda r: select(tolls.join(reached(r), [tolls.n == reached(r).dst, tolls.fee > 80], "right")),
        "null": lambda r: reached(r).join(tolls, tolls.n == reached(r).dst, "left").selectExpr(
            "dst AS k", "if(fee IS NULL, d, d + 1000) AS d"
        ),
        "order": lambda r: select(
            reached(r).orderBy("d").repartition(3).join(tolls.hint("broadcast"), tolls.n == reached(r).dst, "left")
        ).sortWithinPartitions("k").coalesce(1),
    }  # fmt: skip


@pytest.mark.slow("three engines; the definition takes several jobs a round")
@pytest.mark.parametrize("kind", ["left", "right", "null", "order"])
def test_rows_are_those_of_the_definition(spark: SparkSession, kind: str) -> None:
    base = frame(spark, "k bigint, d bigint", [(1, 0)])
    step = steps(spark)[kind]

    def rows(aggregate: str, backend: str, mode: str) -> list[tuple[int, ...]]:
        result = base.recursive_agg("k", {"d": aggregate}, step=step, backend=backend, mode=mode)
        return sorted(map(tuple, result.collect()))

    expected = rows("min", "dataframe", "iterate")
    assert rows("min", "spark", "auto") == rows("min", "local", "auto") == expected
    # An addend beside the sum has no proof, but a row that matches twice counts twice.
    assert rows("sum", "spark", "iterate") == rows("sum", "dataframe", "iterate")


@pytest.mark.parametrize("kind", ["left", "right", "outer"])
def test_rows_of_the_other_side_are_not_filled_up(spark: SparkSession, kind: str) -> None:
    roads = frame(spark, "src bigint, dst bigint, w bigint", ROADS)

    def step(r: DataFrame) -> DataFrame:
        joined = r.join(roads, r.k == roads.src, kind) if kind != "left" else roads.join(r, r.k == roads.src, kind)
        return joined.selectExpr("dst AS k", "d + w AS d")

    with pytest.raises(ra.UnsupportedError, match="outer join") as caught:
        frame(spark, "k bigint, d bigint", [(1, 0)]).recursive_agg("k", {"d": "min"}, step=step)
    assert caught.value.code == "PARALAGG_STEP_UNSUPPORTED"
