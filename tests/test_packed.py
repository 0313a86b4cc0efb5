"""Arrays, structs, bytes and wide decimals as keys and values on engines: the rows of plain DataFrames."""

from __future__ import annotations

import random
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation
from spark_versions import since

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.rotates(runs=3)

ENGINES = ("spark", "local", "mpi")
EDGES = [(1, 2, 4), (2, 3, 5), (3, 1, 1), (3, 4, 1), (1, 4, 20), (4, 4, 0)]
TYPES = {
    "array<double>": lambda dice: _some(
        dice, lambda: dice.choice([0.0, -0.0, 1.5, -1.5, 1e300, float("nan"), float("-inf")])
    ),
    "struct<a:int,b:string,c:array<smallint>>": lambda dice: (
        dice.choice([None, -1, 0, 7]),
        dice.choice([None, "", "a", "a\0", "a\1b", "é", "z"]),
        _some(dice, lambda: dice.choice([-3, 0, 3])),
    ),
    "decimal(38,3)": lambda dice: Decimal(dice.choice([-1, 1]) * dice.randrange(10 ** dice.choice([1, 20, 37]))).scaleb(
        -3
    ),
    "binary": lambda dice: bytes(dice.choice([0, 1, 2, 255]) for _ in range(dice.randrange(4))),
    "struct<d:date,t:timestamp,f:float,y:boolean,l:bigint>": lambda dice: (
        date(dice.choice([1960, 2026]), 1, dice.randint(1, 9)),
        datetime(dice.choice([1960, 2026]), 1, 1, dice.randrange(24)),  # noqa: DTZ001 - of the session's zone
        dice.choice([None, -2.5, 0.0, 3.25]),
        dice.choice([None, True, False]),
        dice.choice([-(2**63), 0, 2**63 - 1]),
    ),
}


def _some(dice: random.Random, item: Any) -> list[Any]:  # noqa: ANN401 - a function
    return [item() if dice.random() < 0.8 else None for _ in range(dice.randrange(4))]


def rows(df: DataFrame) -> list[str]:
    """Return the rows; the loop has one zero."""
    return sorted(repr(row).replace("-0.0", "0.0") for row in df.collect())


def values(spark: SparkSession, type_: str) -> tuple[DataFrame, DataFrame]:
    """Return values of ``type_`` by node, and edges between nodes and between values."""
    dice = random.Random(type_)  # noqa: S311 - no secret
    drawn = [(n % 40, TYPES[type_](dice)) for n in range(120)]
    base = spark.createDataFrame(drawn, f"node long, v {type_}")
    pairs = spark.createDataFrame(
        [(TYPES[type_](dice), TYPES[type_](dice)) for _ in range(60)], f"a {type_}, b {type_}"
    )
    return base, pairs.union(base.selectExpr("v", "v")).union(base.limit(20).crossJoin(pairs.limit(1)).select("v", "b"))


@pytest.mark.parametrize("type_", TYPES)
@pytest.mark.parametrize("aggregator", ["min", "max"])
def test_the_least_and_the_greatest_of_any_type(spark: SparkSession, type_: str, aggregator: str) -> None:
    base, _ = values(spark, type_)
    edges = spark.range(80).selectExpr("id % 40 AS src", "(id * 7 + 3) % 40 AS dst")

    def found(backend: str) -> DataFrame:
        return base.recursive_agg(
            "node",
            {"v": aggregator},
            step=lambda r: r.join(edges, r.node == edges.src).select(edges.dst.alias("node"), r.v),
            backend=backend,
        )

    wanted = rows(found("dataframe"))
    assert found("spark").dtypes == [("node", "bigint"), ("v", type_)]
    for engine in ENGINES[:2]:
        assert rows(found(engine)) == wanted


@pytest.mark.parametrize("type_", [t for t in TYPES if "float" not in t and "double" not in t])
def test_values_of_any_type_are_keys_and_joined(spark: SparkSession, type_: str) -> None:
    base, pairs = values(spark, type_)

    def found(backend: str) -> DataFrame:
        return (
            base.limit(30)
            .select("v")
            .recursive_agg(
                "v", step=lambda r: r.join(pairs, r.v == pairs.a).select(pairs.b.alias("v")), backend=backend
            )
        )

    wanted = rows(found("dataframe"))
    for engine in ENGINES[:2]:
        assert rows(found(engine)) == wanted


@pytest.mark.parametrize("engine", ENGINES)
def test_a_value_is_carried(spark: SparkSession, engine: str) -> None:
    edges = spark.createDataFrame(EDGES, "src long, dst long, w long")
    base = spark.sql("SELECT 1L AS node, 0L AS dist, named_struct('x', array(1, null), 'y', 'of 1') AS origin")
    df = base.recursive_agg(
        "node",
        {"dist": "min", "origin": ra.min_by("dist")},
        step=lambda r: r.join(edges, r.node == edges.src).select(
            edges.dst.alias("node"), (r.dist + edges.w).alias("dist"), r.origin
        ),
        assume="w >= 0",
        backend=engine,
    )
    assert sorted((r.node, r.dist, r.origin.x, r.origin.y) for r in df.collect()) == [
        (n, d, [1, None], "of 1") for n, d in ((1, 0), (2, 4), (3, 9), (4, 10))
    ]
    assert ra.report(df).backend == engine


def test_a_step_computes_with_values(spark: SparkSession) -> None:
    """Sums of wide decimals, arrays that grow, fields of structs: any function of Spark, in the loop."""
    edges = spark.createDataFrame(EDGES, "src long, dst long, w long")
    base = spark.sql("SELECT named_struct('town', 1L) AS at, CAST(0 AS decimal(38,2)) AS cost, array(1L) AS route")
    df = base.recursive_agg(
        "at",
        {"cost": "min", "route": ra.min_by("cost")},
        step=lambda r: r.join(edges, r.at.town == edges.src).select(
            F.struct(edges.dst.alias("town")).alias("at"),
            (r.cost + edges.w.cast("decimal(28,2)") * 10).cast("decimal(38,2)").alias("cost"),
            F.concat(r.route, F.array(edges.dst)).alias("route"),
        ),
        mode="trust",
        backend="spark",
    )
    assert sorted((r["at"].town, r.cost, r.route) for r in df.collect()) == [
        (1, Decimal("0.00"), [1]),
        (2, Decimal("40.00"), [1, 2]),
        (3, Decimal("90.00"), [1, 2, 3]),
        (4, Decimal("100.00"), [1, 2, 3, 4]),
    ]


def test_lower_strata_other_columns_and_filters(spark: SparkSession) -> None:
    """A stratum reads packed rows of a lower one, a query only some columns, or rows with one key."""
    edges = spark.createDataFrame(EDGES, "src long, dst long, w long").selectExpr("array(src) AS a", "array(dst) AS b")
    start = spark.sql("SELECT array(2L) AS x")
    text = "reach(x) :- start(x). reach(y) :- reach(x), edge(x, y). twice(x, y) :- reach(x), edge(x, y)."
    text += " far(x, y) :- twice(x, y). far(x, z) :- far(x, y), twice(y, z)."
    relations = ra.datalog(spark, text, start=start, edge=edges)
    assert sorted(r[0] for r in relations["reach"].collect()) == [[1], [2], [3], [4]]
    far = relations["far"].toDF("x", "y")
    assert far.where("x = array(4L)").collect() == [([4], [4])]
    assert far.where("x[0] = 2").count() == 4
    assert far.select("y").distinct().count() == 4


@since("4.0", "Spark 3.5 parses no recursive query")
def test_sql(spark: SparkSession) -> None:
    spark.createDataFrame(EDGES, "src long, dst long, w long").createOrReplaceTempView("packed_edges")
    query = """
        WITH RECURSIVE r(at, min() AS d, min_by(d) AS since) AS (
            SELECT array(1L), 0L, named_struct('day', DATE'2026-01-01')
            UNION SELECT array(e.dst), r.d + e.w, r.since FROM r JOIN packed_edges e ON r.at = array(e.src))
        SELECT * FROM r ORDER BY d"""
    found = spark.sql(query)
    assert found.dtypes == [("at", "array<bigint>"), ("d", "bigint"), ("since", "struct<day:date>")]
    assert [(r["at"], r.d, r.since.day) for r in found.collect()] == [
        ([n], d, date(2026, 1, 1)) for n, d in ((1, 0), (2, 4), (3, 9), (4, 10))
    ]


@pytest.mark.parametrize(
    ("engine", "code"), [("local", "PARALAGG_NOT_PORTABLE"), ("python", "PARALAGG_STEP_UNSUPPORTED")]
)
def test_engines_outside_of_the_jvm_compute_no_values(spark: SparkSession, engine: str, code: str) -> None:
    edges = spark.createDataFrame(EDGES, "src long, dst long, w long")
    base = spark.sql("SELECT 1L AS node, array(1L) AS route")
    with pytest.raises(ra.UnsupportedError) as e:
        base.recursive_agg(
            ["node", "route"],
            step=lambda r: r.join(edges, r.node == edges.src).select(
                edges.dst.alias("node"), F.slice(F.concat(r.route, F.array(edges.dst)), 1, 3).alias("route")
            ),
            backend=engine,
        )
    assert e.value.code == code


@pytest.mark.parametrize("ansi", ["true", "false"])
@pytest.mark.parametrize(
    ("aggregator", "value"),
    [
        ("min", "d + w"),
        ("max", "d - w"),
        ("max", "d + w"),
        ("min", "greatest(d, w)"),
        ("min", "d * 2"),
        ("min", "-d"),
        ("min", "100 - d"),
        ("max", "d * w"),
    ],
)
def test_wide_decimals_are_proved_as_narrow_ones(spark: SparkSession, aggregator: str, value: str, ansi: str) -> None:
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    edges = spark.createDataFrame([e for e in EDGES if e[:2] != (3, 1)], "src long, dst long, w long")

    def outcome(type_: str) -> list[tuple[int, Decimal]] | str:
        typed = edges.withColumn("w", F.col("w").cast(type_))
        base = spark.createDataFrame([(1, -5)], "node long, d long").withColumn("d", F.col("d").cast(type_))
        with_step = base.recursive_agg(
            "node",
            {"d": aggregator},
            step=lambda r: r.join(typed.where("src != dst"), F.col("node") == F.col("src")).selectExpr(
                "dst AS node", f"cast({value} AS {type_}) AS d"
            ),
            backend="spark",
        )
        return sorted((r.node, r.d) for r in with_step.collect())

    def verdict(type_: str) -> list[tuple[int, Decimal]] | str:
        try:
            return outcome(type_)
        except ra.VerificationError:
            return "refused"

    assert verdict("decimal(30,2)") == verdict("decimal(18,2)")
