"""local[2]: what people do with a result afterwards, and with the confs as they were."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes import left_after
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from queries import chain, chain_total, total
from stage import session, tell

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LENGTH = 30
PAIRS = [(i, i) for i in range(LENGTH + 1)]


def a_chain(spark: SparkSession) -> DataFrame:
    """Node i at distance i."""
    return chain(spark, LENGTH, backend="spark")


def pairs(df: DataFrame) -> list[tuple[int, ...]]:
    """Sorted rows."""
    return sorted(tuple(row) for row in df.collect())


def limits(spark: SparkSession) -> dict[str, bool]:
    """`limit`, `take`, `first`, `isEmpty`, `orderBy().limit`."""
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
    """Union of two fixpoints, a self-join of one, coalesce, repartition, an RDD, a local iterator."""
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
    """Cache, local checkpoint, Parquet."""
    df = a_chain(spark).cache()
    cached = pairs(df) == PAIRS and pairs(df.where("dist > 3")) == PAIRS[4:]
    df.unpersist(blocking=True)
    path = str(Path("written.parquet").absolute())
    a_chain(spark).write.parquet(path)
    checkpointed = a_chain(spark).localCheckpoint()
    is_checkpointed = pairs(checkpointed) == PAIRS
    checkpointed._jdf.queryExecution().toRdd().unpersist(False)  # noqa: FBT003 - Scala's parameter has no name here
    return {"cached": cached, "parquet": pairs(spark.read.parquet(path)) == PAIRS, "checkpointed": is_checkpointed}


def sql(spark: SparkSession) -> dict[str, bool]:
    """A temporary view, a scalar subquery, IN, EXISTS, a CTE used twice, an insert."""
    a_chain(spark).createOrReplaceTempView("paths")

    def one(query: str) -> Any:  # noqa: ANN401 - a value of any type
        return (spark.sql(query).first() or [None])[0]

    spark.sql("CREATE TABLE kept (node BIGINT, dist BIGINT) USING parquet")
    spark.sql("INSERT INTO kept SELECT * FROM paths")
    return {
        "view": one("SELECT sum(dist) FROM paths WHERE node > 28") == 59,
        "scalar subquery": one("SELECT count(*) FROM range(100) WHERE id > (SELECT max(dist) FROM paths)") == 69,
        "in": one("SELECT count(*) FROM range(100) WHERE id IN (SELECT node FROM paths)") == LENGTH + 1,
        "exists": one("SELECT count(*) FROM range(9) r WHERE EXISTS (SELECT 1 FROM paths p WHERE p.node = r.id)") == 9,
        "cte": one("WITH p AS (SELECT * FROM paths) SELECT count(*) FROM p a JOIN p b ON a.node = b.dist")
        == LENGTH + 1,
        "insert": pairs(spark.table("kept")) == PAIRS,
    }


def join_on_the_key(spark: SparkSession) -> dict[str, Any]:
    """The fixpoint's rows are where the join wants them: the other side alone is shuffled."""
    names = spark.range(LENGTH + 1).selectExpr("id as node", "concat('n', id) as name")
    found = {}
    for aqe in ("true", "false"):
        spark.conf.set("spark.sql.adaptive.enabled", aqe)
        df = a_chain(spark).join(names, "node")
        right = sorted(tuple(r) for r in df.collect()) == [(i, i, f"n{i}") for i in range(LENGTH + 1)]
        plan = df._jdf.queryExecution().executedPlan().toString()
        grouped = a_chain(spark).groupBy("node").agg(F.bit_or("dist"))  # a max would be no aggregate any more
        right = right and pairs(grouped) == PAIRS
        plans = [plan, grouped._jdf.queryExecution().executedPlan().toString()]
        found[f"aqe={aqe}"] = {"right": right, "above": [above_fixpoint(p) for p in plans]}
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    return found


def above_fixpoint(plan: str) -> list[str]:
    """Names of the operators above the fixpoint, the nearest first, in the plan's first (final) tree."""
    lines = plan.partition("== Initial Plan ==")[0].splitlines()
    depths = [len(line) - len(line.lstrip(" :+-*()0123456789")) for line in lines]
    at = next(i for i, line in enumerate(lines) if "Fixpoint" in line)
    found, depth = [], depths[at]
    for i in range(at - 1, -1, -1):
        if depths[i] < depth:
            found.append(lines[i].strip(" :+-*()0123456789").split()[0].split("[")[0])
            depth = depths[i]
    return found


def left(spark: SparkSession) -> dict[str, Any]:
    """After all of that."""
    return left_after(spark)


if __name__ == "__main__":
    spark = session("local[2]")
    tell(spark, limits, shapes, stored, sql, join_on_the_key, left)
    spark.stop()
