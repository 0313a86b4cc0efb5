"""What Catalyst knows of a fixpoint: where its rows are, how many there may be, which columns its inputs need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from plans import all_pairs, edges, executed, optimized, sorted_rows, tree
from rows import frame
from spark_versions import KNOWS_SIZES

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession


def exchanges(df: DataFrame) -> list[str]:
    return [line.strip() for line in executed(df) if "Exchange" in line]


@pytest.fixture
def partitioned(spark: SparkSession) -> SparkSession:
    spark.conf.set("spark.sql.shuffle.partitions", 3)
    return spark


@pytest.mark.parametrize("aqe", ["true", "false"])
def test_a_join_on_the_keys_moves_the_other_side_alone(partitioned: SparkSession, aqe: str) -> None:
    partitioned.conf.set("spark.sql.adaptive.enabled", aqe)
    names = frame(partitioned, "node bigint, name string", [(1, "one"), (7, "seven")])
    found = tree(partitioned).join(names.hint("merge"), "node")
    assert sorted_rows(found) == [(1, 2.0, 7, "one"), (7, 0.0, 7, "seven")]
    assert len(exchanges(found)) == 1
    assert "hashpartitioning(node, 3)" in exchanges(found)[0]


def test_a_join_of_two_fixpoints_on_their_keys_moves_nothing(partitioned: SparkSession) -> None:
    one, other = tree(partitioned), tree(partitioned).toDF("node", "d", "p")
    found = one.join(other.hint("merge"), "node")
    assert [row[1] == row[3] for row in sorted_rows(found)] == [True] * 4
    assert exchanges(found) == []


def test_inputs_are_read_by_the_columns_that_are_used(spark: SparkSession, tmp_path: Path) -> None:
    wide = edges(spark).selectExpr("*", "'x' AS note", "src AS copy")
    wide.write.parquet(str(tmp_path / "edges"))
    e = spark.read.parquet(str(tmp_path / "edges"))
    found = frame(spark, "node bigint", [(7,)]).recursive_agg(
        "node", step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node")), backend="spark"
    )
    assert any("ReadSchema: struct<src:bigint,dst:bigint>" in line for line in executed(found))
    assert sorted_rows(found) == [(1,), (2,), (3,), (7,)]


def test_sizes_are_bounds(spark: SparkSession) -> None:
    def bytes_of(df: DataFrame) -> int:
        return int(df._jdf.queryExecution().optimizedPlan().stats().sizeInBytes())

    one_row = 1 + len(edges(spark).collect())  # base rows and edges
    assert bytes_of(tree(spark)) <= one_row * (8 * 3 + 8) or not KNOWS_SIZES
    # A closure may have a row for each pair.
    assert bytes_of(all_pairs(spark)) > 10 * bytes_of(edges(spark))


def test_a_small_result_is_broadcast(spark: SparkSession) -> None:
    big = (
        spark.range(1000)
        .withColumnRenamed("id", "node")
        .hint("shuffle_replicate_nl")
        .unionByName(spark.range(10).withColumnRenamed("id", "node"))
    )
    found = big.join(tree(spark), "node")
    assert any("BroadcastHashJoin" in line for line in executed(found))
    assert len(sorted_rows(found)) == 8


def test_one_row_relations_are_known_as_such(spark: SparkSession) -> None:
    total = frame(spark, "n bigint", [(1,), (2,)]).recursive_agg([], {"n": "max"}, step=lambda d: d, backend="spark")
    assert not any("Limit" in line for line in optimized(total.limit(5)))
    assert sorted_rows(total.limit(5)) == [(2,)]
