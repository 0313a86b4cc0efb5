"""Use results in typical ways on local[2], and check that the confs are unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes import left_after
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from queries import chain, chain_total, total
from stage import print_facts, session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LENGTH = 30
PAIRS = [(i, i) for i in range(LENGTH + 1)]


def a_chain(spark: SparkSession) -> DataFrame:
    """Return a fixpoint with node i at distance i."""
    return chain(spark, LENGTH, backend="spark")


def pairs(df: DataFrame) -> list[tuple[int, ...]]:
    """Return the sorted rows."""
    return sorted(tuple(row) for row in df.collect())


def limits(spark: SparkSession) -> dict[str, bool]:
    """Check `limit`, `take`, `first`, `isEmpty`, `orderBy().limit`."""
    df = a_chain(spark)
    return {
        "limit": len(set(pairs(df.limit(7))) & set(PAIRS)) == 7,
        "take": len({tuple(r) for r in df.take(5)} & set(PAIRS)) == 5,
        "first": tuple(df.first() or ()) in PAIRS,
        "is not empty": not df.isEmpty(),
        "top": pairs(df.orderBy(F.desc("dist")).limit(2)) == PAIRS[-2:],
        "limit of a limit": len(pairs(df.limit(9).where("dist >= 0").limit(3))) == 3,
    }


def shapes(spark: SparkSession) -> dict[str, bool]:
    """Check a union of two fixpoints, a self-join, coalesce, repartition, an RDD, a local iterator."""
    df = a_chain(spark)
    return {
        "union": pairs(df.union(a_chain(spark))) == sorted(PAIRS + PAIRS),
        "union with itself": pairs(df.union(df)) == sorted(PAIRS + PAIRS),
        "self-join": total(df.alias("l").join(df.alias("r"), "node").select("node", F.col("l.dist")))
        == chain_total(LENGTH),
        "coalesce": pairs(df.coalesce(1)) == PAIRS,
        "repartition": pairs(df.repartition(5)) == PAIRS,
        "rdd": sorted(tuple(r) for r in df.rdd.collect()) == PAIRS,
        "iterator": sorted(tuple(r) for r in df.toLocalIterator()) == PAIRS,
        "twice": pairs(df) == pairs(df) == PAIRS,
        "fixpoint of a fixpoint": total(df.where("node < 5")) == chain_total(4),
    }


def stored(spark: SparkSession) -> dict[str, Any]:
    """Check cache, local checkpoint, Parquet."""
    df = a_chain(spark).cache()
    cached = pairs(df) == PAIRS and pairs(df.where("dist > 3")) == PAIRS[4:]
    df.unpersist(blocking=True)
    path = str(Path("written.parquet").absolute())
    a_chain(spark).write.parquet(path)
    checkpointed = a_chain(spark).localCheckpoint()
    is_checkpointed = pairs(checkpointed) == PAIRS
    checkpointed._jdf.queryExecution().logical().rdd().unpersist(False)  # noqa: FBT003 - Scala's parameter has no name
    return {"cached": cached, "parquet": pairs(spark.read.parquet(path)) == PAIRS, "checkpointed": is_checkpointed}


def sql(spark: SparkSession) -> dict[str, bool]:
    """Check a temporary view, a scalar subquery, IN, EXISTS, a CTE used twice, an insert."""
    a_chain(spark).createOrReplaceTempView("paths")

    def first(query: str) -> Any:  # noqa: ANN401 - a value of any type
        return (spark.sql(query).first() or [None])[0]

    spark.sql("CREATE TABLE kept (node BIGINT, dist BIGINT) USING parquet")
    spark.sql("INSERT INTO kept SELECT * FROM paths")
    return {
        "view": first("SELECT sum(dist) FROM paths WHERE node > 28") == 59,
        "scalar subquery": first("SELECT count(*) FROM range(100) WHERE id > (SELECT max(dist) FROM paths)") == 69,
        "in": first("SELECT count(*) FROM range(100) WHERE id IN (SELECT node FROM paths)") == LENGTH + 1,
        "exists": first("SELECT count(*) FROM range(9) r WHERE EXISTS (SELECT 1 FROM paths p WHERE p.node = r.id)")
        == 9,
        "cte": first("WITH p AS (SELECT * FROM paths) SELECT count(*) FROM p a JOIN p b ON a.node = b.dist")
        == LENGTH + 1,
        "insert": pairs(spark.table("kept")) == PAIRS,
    }


def join_on_the_key(spark: SparkSession) -> dict[str, Any]:
    """Join on the key: only the other side is shuffled."""
    names = spark.range(LENGTH + 1).selectExpr("id as node", "concat('n', id) as name")
    facts = {}
    for aqe in ("true", "false"):
        spark.conf.set("spark.sql.adaptive.enabled", aqe)
        df = a_chain(spark).join(names, "node")
        right = sorted(tuple(r) for r in df.collect()) == [(i, i, f"n{i}") for i in range(LENGTH + 1)]
        plan = df._jdf.queryExecution().executedPlan().toString()
        grouped = a_chain(spark).groupBy("node").agg(F.bit_or("dist"))  # Spark would remove a max
        right = right and pairs(grouped) == PAIRS
        plans = [plan, grouped._jdf.queryExecution().executedPlan().toString()]
        facts[f"aqe={aqe}"] = {"right": right, "above": [above_fixpoint(p) for p in plans]}
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    return facts


def above_fixpoint(plan: str) -> list[str]:
    """Return the operators above the fixpoint, the nearest first, in the plan's first (final) tree."""
    lines = plan.partition("== Initial Plan ==")[0].splitlines()
    depths = [len(line) - len(line.lstrip(" :+-*()0123456789")) for line in lines]
    at = next(i for i, line in enumerate(lines) if "Fixpoint" in line)
    operators, depth = [], depths[at]
    for i in range(at - 1, -1, -1):
        if depths[i] < depth:
            operators.append(lines[i].strip(" :+-*()0123456789").split()[0].split("[")[0])
            depth = depths[i]
    return operators


def left(spark: SparkSession) -> dict[str, Any]:
    """Return what all these leave."""
    return left_after(spark)


if __name__ == "__main__":
    spark = session("local[2]")
    print_facts(spark, limits, shapes, stored, sql, join_on_the_key, left)
    spark.stop()
