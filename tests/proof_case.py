"""Run a case of the proof: a step whose value improves late, by an engine and by its definition.

The base has ``first`` at key 1 and ``later`` at key 3; edges 3 -> 4 -> 5 -> 1 copy values, so ``later`` comes to key 1
after three rounds, and key 2 gets the expression of key 1. A step that is not monotone gives key 2 another row then.
"""

# ruff: noqa: ANN401  (options of a call)

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WORDS = {
    "agg": "max", "type": "double", "first": "1.0D", "later": "8.0D", "filter": None, "w": "NULL", "carried": False,
    "ansi": "true", "zone": "UTC",
}  # fmt: skip
REFUSALS = (
    "PARALAGG_NOT_PROVED",
    "PARALAGG_NOT_MONOTONE",
    "PARALAGG_ASSUMPTION_VIOLATED",
    "OVERFLOW",
    "PARALAGG_EXPRESSION_UNPORTABLE",
)
"""What ends a step that is not sound: the proof, a guard, or an overflow that the proof rests on."""


def rows_of_all(spark: SparkSession, cases: list[dict[str, Any]], agg: str, **options: Any) -> dict[str, str]:
    """Return what key 2 has for each case without a filter, in one recursion with a column for each of them."""
    parts = [{**WORDS, **case} for case in cases]
    [(ansi, zone)] = {(p["ansi"], p["zone"]) for p in parts}
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    spark.conf.set("spark.sql.session.timeZone", zone)
    ends = ("first", "later") if agg == "max" else ("later", "first")
    names = [f"v{n}" for n in range(len(parts))]
    starts = [", ".join(f"cast({p[e]} as {p['type']}) as {v}" for v, p in zip(names, parts, strict=True)) for e in ends]
    base = spark.sql(f"select 1L as k, {starts[0]} union all select 3L, {starts[1]}")
    edges = spark.createDataFrame([(3, 4), (4, 5), (5, 1)], "a long, b long")
    others = ", ".join(f"{p['w']} as w{n}" for n, p in enumerate(parts))
    last = spark.sql(f"select 1L as a, 2L as b, {others}")
    exprs = [re.sub(r"\b([vw])\b", rf"\g<1>{n}", p["expr"]) for n, p in enumerate(parts)]
    values = [F.expr(e).cast(p["type"]).alias(v) for e, p, v in zip(exprs, parts, names, strict=True)]

    def step(r: DataFrame) -> DataFrame:
        copied = r.join(edges, r.k == edges.a).select(F.col("b").alias("k"), *names)
        return copied.unionByName(r.join(last, r.k == last.a).select(F.col("b").alias("k"), *values))

    result = base.recursive_agg("k", dict.fromkeys(names, agg), step=step, name="r", **options)
    row = result.selectExpr("k", *(f"cast({v} as string) {v}" for v in names)).filter("k = 2").first()
    return {e: repr(None if row is None else row[v]) for e, v in zip(exprs, names, strict=True)}


def by_definition(spark: SparkSession, case: dict[str, Any]) -> list[Any]:
    """Return the rows of a case by its definition."""
    return rows(spark, case, mode="iterate", max_iterations=20, backend="dataframe")


def refused_or_right(spark: SparkSession, case: dict[str, Any], **options: Any) -> None:
    """Fail unless a case is refused with a code, or has the rows of its definition."""
    try:
        result = rows(spark, case, **options)
    except Exception as refused:  # noqa: BLE001 - with one of the codes
        message = str(refused)
        assert any(code in message for code in REFUSALS), message
    else:
        assert result == by_definition(spark, case)


def rows(spark: SparkSession, case: dict[str, Any], **options: Any) -> list[Any]:
    case = {**WORDS, **case}
    spark.conf.set("spark.sql.ansi.enabled", case["ansi"])
    spark.conf.set("spark.sql.session.timeZone", case["zone"])
    type_, carried = case["type"], ["s"] if case["carried"] else []
    values = [f"cast({case[c]} as {type_}) as v" for c in ("first", "later")]
    base = spark.sql(f"select 1L as k, {values[0]}, 2 as s union all select 3L, {values[1]}, 9")
    edges = spark.createDataFrame([(3, 4), (4, 5), (5, 1)], "a long, b long")
    last = spark.sql(f"select 1L as a, 2L as b, {case['w']} as w")

    def step(r: DataFrame) -> DataFrame:
        copied = r.join(edges, r.k == edges.a).select(F.col("b").alias("k"), "v", *carried)
        made = r.join(last, r.k == last.a)
        made = made.filter(case["filter"]) if case["filter"] else made
        value = F.expr(case["expr"]).cast(type_).alias("v")
        return copied.unionByName(made.select(F.col("b").alias("k"), value, *carried))

    aggs: dict[str, Any] = {"v": case["agg"]}
    if carried:
        aggs["s"] = (ra.min_by if case["agg"] == "min" else ra.max_by)("v")
    made = base.select("k", "v", *carried).recursive_agg("k", aggs, step=step, name="r", **options)
    return [repr(row) for row in made.selectExpr("k", "cast(v as string) v", *carried).filter("k = 2").collect()]
