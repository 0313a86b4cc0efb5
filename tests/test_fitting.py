"""Columns of base, initial rows and step that differ in case, or in types of which one has all values of the other."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

ENGINES = ("spark", "local", "python", "dataframe")


@pytest.fixture
def edges(spark: SparkSession) -> DataFrame:
    return spark.sql("SELECT * FROM VALUES (1L, 2L, 7L), (2L, 3L, 1L), (1L, 3L, 9L) AS e(src, dst, weight)")


def shortest(edges: DataFrame) -> Callable[[DataFrame], DataFrame]:
    return lambda d: d.join(edges, d.node == edges.src).select(
        edges.dst.alias("node"), (d.dist + edges.weight).alias("dist")
    )


def rows(df: DataFrame) -> list[tuple[object, ...]]:
    return sorted(map(tuple, df.collect()), key=repr)


@pytest.mark.parametrize("engine", ENGINES)
def test_literals_of_the_base_are_as_wide_as_the_step(spark: SparkSession, edges: DataFrame, engine: str) -> None:
    base = spark.sql("SELECT 1 AS node, 0 AS dist")
    dist = base.recursive_agg("node", {"dist": "min"}, step=shortest(edges), backend=engine)
    assert dist.dtypes == [("node", "bigint"), ("dist", "bigint")]
    assert rows(dist) == [(1, 0), (2, 7), (3, 8)]


def test_a_narrower_step_is_cast(spark: SparkSession, edges: DataFrame) -> None:
    narrow = edges.selectExpr("int(src) AS src", "int(dst) AS dst", "int(weight) AS weight")
    dist = spark.sql("SELECT 1L AS node, 0L AS dist").recursive_agg("node", {"dist": "min"}, step=shortest(narrow))
    assert dist.dtypes == [("node", "bigint"), ("dist", "bigint")]
    assert rows(dist) == [(1, 0), (2, 7), (3, 8)]


def test_initial_rows_and_base_of_different_types(spark: SparkSession, edges: DataFrame) -> None:
    base, initial = spark.sql("SELECT 1 AS node, 0 AS dist"), spark.sql("SELECT 2L AS node, 5L AS dist")
    dist = base.recursive_agg("node", {"dist": "min"}, step=shortest(edges), initial=initial, mode="iterate")
    assert dist.dtypes == [("node", "bigint"), ("dist", "bigint")]
    assert rows(dist) == [(1, 0), (2, 7), (3, 8)]


def test_relations_of_a_mutual_recursion_widen_each_other(spark: SparkSession, edges: DataFrame) -> None:
    pair = ra.recursive(
        {
            "even": ra.relation(spark.sql("SELECT 1 AS node"), keys="node"),
            "odd": ra.relation(spark.sql("SELECT 99S AS node"), keys="node"),
        },
        step=lambda even, odd: {
            "even": odd.join(edges, odd.node == edges.src).select(edges.dst.alias("node")),
            "odd": even.join(edges, even.node == edges.src).select(edges.dst.alias("node")),
        },
    )
    assert {name: (df.dtypes, rows(df)) for name, df in pair.items()} == {
        "even": ([("node", "bigint")], [(1,), (3,)]),
        "odd": ([("node", "bigint")], [(2,), (3,), (99,)]),
    }


def test_integers_become_decimals_and_doubles(spark: SparkSession) -> None:
    base = spark.sql("SELECT 1 AS node, 100 AS price, 1 AS share")
    parts = spark.sql("SELECT 1 AS src, 2 AS dst, 0.25D AS part")
    found = base.recursive_agg(
        "node",
        {"price": "max", "share": "max"},
        step=lambda r: (
            r.join(parts, r.node == parts.src)
            .select("dst", (r.price + r.node).cast("decimal(14,2)"), r.share * parts.part)
            .toDF("node", "price", "share")
        ),
        mode="iterate",
    )
    assert found.dtypes == [("node", "int"), ("price", "decimal(14,2)"), ("share", "double")]
    assert rows(found) == [(1, Decimal("100.00"), 1.0), (2, Decimal("101.00"), 0.25)]


def test_a_type_that_would_lose_values_is_an_error(spark: SparkSession, edges: DataFrame) -> None:
    base = spark.sql("SELECT 1L AS node, 0L AS dist")
    with pytest.raises(ra.UsageError) as e:
        base.recursive_agg("node", {"dist": "min"}, step=shortest(edges.selectExpr("src", "dst", "double(weight)")))
    assert e.value.code == "PARALAGG_STEP_COLUMNS_TYPE"


@pytest.mark.parametrize("engine", ENGINES)
def test_names_are_compared_as_the_session_compares_them(spark: SparkSession, edges: DataFrame, engine: str) -> None:
    base = spark.sql("SELECT 1L AS NODE, 0L AS Dist")
    dist = base.recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).selectExpr("dst AS Node", "dist + weight AS DIST"),
        backend=engine,
    )
    assert dist.columns == ["node", "dist"]
    assert rows(dist) == [(1, 0), (2, 7), (3, 8)]


def test_names_in_aggregates_are_compared_so_too(spark: SparkSession, edges: DataFrame) -> None:
    base = spark.sql("SELECT 1L AS Node, 0L AS Dist, 'a' AS Label")
    found = base.recursive_agg(
        "node",
        {
            "dist": "min",
            "label": ra.min_by("DIST"),
            "legs": ra.hops("Dist"),
            "route": ra.path("DIST", columns=["NODE", "Legend"]),
        },
        step=lambda d: d.join(edges, d.node == edges.src).selectExpr(
            "dst AS node", "dist + weight AS dist", "label", "'x' AS legend"
        ),
    )
    assert found.columns == ["node", "dist", "label", "legs", "route"]
    assert [(r.node, r.label, r.legs, [x[0] for x in r.route]) for r in sorted(found.collect())] == [
        (1, "a", 0, [1]),
        (2, "a", 1, [1, 2]),
        (3, "a", 2, [1, 2, 3]),
    ]
    friends = spark.sql("SELECT 1L AS node, 2L AS who").recursive_agg(
        "node", {"n": ra.mcount("WHO")}, step=lambda f: f.where("n > 9").selectExpr("node", "node AS who")
    )
    assert rows(friends) == [(1, 1)]


def test_names_that_case_tells_apart(spark: SparkSession, edges: DataFrame) -> None:
    spark.conf.set("spark.sql.caseSensitive", "true")
    with pytest.raises(ra.UsageError) as e:
        spark.sql("SELECT 1L AS NODE, 0L AS dist").recursive_agg("node", {"dist": "min"}, step=shortest(edges))
    assert e.value.code == "PARALAGG_KEY_MISSING"
    assert "NODE" in str(e.value.hint)
    with pytest.raises(ra.UsageError) as e:
        spark.sql("SELECT 1L AS node, 0L AS dist, 1 AS a").recursive_agg(
            "node", {"dist": "min", "a": ra.min_by("DIST")}, step=lambda d: d
        )
    assert e.value.code == "PARALAGG_MIN_BY_ORDER"
