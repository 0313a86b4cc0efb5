"""Run a driver with a few MB for execution: the memory manager refuses large recursions, small ones run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probes import left_after
from queries import chain, chain_total, total
from stage import print_facts, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def too_large(spark: SparkSession) -> dict[str, Any]:
    """A relation outgrows the memory."""
    base = spark.range(1000).selectExpr("id as x", "id as y", "0L as hops")
    df = base.recursive_agg(
        ["x", "y"],
        {"hops": "min"},
        step=lambda r: r.where("y < 1000").selectExpr("x", "y + 1 as y", "hops + 1 as hops"),
        backend="spark",
    )
    return refused(spark, df)


def too_large_to_load(spark: SparkSession) -> dict[str, Any]:
    """The inputs exceed the memory at once."""
    return refused(spark, chain(spark, 2_000_000, backend="spark"))


def refused(spark: SparkSession, df: DataFrame) -> dict[str, Any]:
    """Return the error, and whether the session still works."""
    try:
        df.count()
    except Exception as problem:  # noqa: BLE001 - the text is the fact
        raised = str(problem)
    else:
        raised = ""
    return {
        "raised": raised[:600],
        "left": left_after(spark),
        "next_is_right": total(chain(spark, 20, backend="spark")) == chain_total(20),
    }


if __name__ == "__main__":
    spark = session("local[2]", {"spark.driver.memory": "700m", "spark.memory.fraction": "0.03"})
    print_facts(spark, too_large, too_large_to_load)
    spark.stop()
