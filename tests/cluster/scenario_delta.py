"""Write a result to a Delta table, and run a recursion over that table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from lake import delta_session
from queries import chain, chain_total, paths, total
from stage import print_facts

if TYPE_CHECKING:
    from typing import Any

    from pyspark.sql import SparkSession


def delta(spark: SparkSession) -> dict[str, Any]:
    """Write a table, read it, run a recursion over it."""
    path = str(Path("paths.delta").absolute())
    chain(spark, 30, backend="spark").write.format("delta").save(path)
    stored = spark.read.format("delta").load(path)
    edges = stored.selectExpr("node as src", "node + 1 as dst", "1L as w")
    recursed = paths(stored.where("node = 0"), edges, backend="spark")
    return {"kept": total(stored) == chain_total(30), "again": total(recursed) == chain_total(31)}


if __name__ == "__main__":
    spark = delta_session()
    print_facts(spark, delta)
    spark.stop()
