"""``ra.collect_set``: the least elements that reach a key, on both executors of Spark, and its errors."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

DICE = random.Random(18)  # noqa: S311 - no secret
EDGES = [(DICE.randrange(30), DICE.randrange(30)) for _ in range(45)]


def oracle(limit: int) -> list[tuple[int, list[int]]]:
    """Return the least vertices that reach each vertex, itself among them."""
    reach = {v: {v} for edge in EDGES for v in edge}
    for _ in reach:
        for a, b in EDGES:
            reach[b] |= reach[a]
    return sorted((v, sorted(r)[:limit]) for v, r in reach.items())


def ancestors(base: DataFrame, edges: DataFrame, limit: int, **options: Any) -> DataFrame:  # noqa: ANN401
    return base.recursive_agg(
        "id",
        {"seen": ra.collect_set(limit=limit)},
        step=lambda d: d.join(edges, d.id == edges.src).selectExpr("dst AS id", "seen"),
        **options,
    )


@pytest.fixture
def edges(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame(EDGES, "src long, dst long")


@pytest.mark.parametrize("limit", [1, 3, 100])
@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_least_elements_of_the_spark_engine(edges: DataFrame, limit: int, partitions: int) -> None:
    base = edges.selectExpr("src AS id").union(edges.select("dst")).distinct().withColumn("seen", F.col("id"))
    found = ancestors(base.repartition(partitions), edges.repartition(partitions), limit, backend="spark")
    assert dict(found.dtypes)["seen"] == "array<bigint>"
    assert sorted(map(tuple, found.collect())) == oracle(limit)


def test_least_elements_of_plain_dataframes(edges: DataFrame) -> None:
    base = edges.selectExpr("src AS id").union(edges.select("dst")).distinct().withColumn("seen", F.col("id"))
    found = ancestors(base, edges, 3, backend="dataframe")
    assert sorted(map(tuple, found.collect())) == oracle(3)


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_arrays_of_a_base_become_sets(spark: SparkSession, backend: str) -> None:
    base = spark.sql("SELECT 1L AS id, array('z', null, 'b', 'z', 'a') AS seen UNION ALL SELECT 9L, null")
    edges = spark.createDataFrame([(1, 2), (2, 1), (2, 3)], "src long, dst long")
    rows = {r.id: r.seen for r in ancestors(base, edges, 2, backend=backend).collect()}
    assert rows == {1: ["a", "b"], 2: ["a", "b"], 3: ["a", "b"], 9: None}


def test_elements_of_a_step_widen_those_of_the_base(spark: SparkSession) -> None:
    edges = spark.createDataFrame([(1, 2, 5), (2, 3, 1 << 40), (3, 1, 7)], "src long, dst long, tag long")
    found = spark.sql("SELECT 1L AS id, 9 AS seen").recursive_agg(
        "id",
        {"seen": ra.collect_set(limit=2)},
        step=lambda d: d.join(edges, d.id == edges.src).selectExpr("dst AS id", "tag AS seen"),
        backend="spark",
    )
    assert sorted(map(tuple, found.collect())) == [(1, [7, 9]), (2, [5]), (3, [1 << 40])]


def test_it_is_a_lattice_and_is_maintained(spark: SparkSession, edges: DataFrame) -> None:
    half = spark.createDataFrame(EDGES[:20], "src long, dst long")
    rest = spark.createDataFrame(EDGES[20:], "src long, dst long")
    base = edges.selectExpr("src AS id").union(edges.select("dst")).distinct().withColumn("seen", F.col("id"))
    new = ra.maintain(
        ancestors(base, half, 3).localCheckpoint(),
        keys="id",
        aggs={"seen": ra.collect_set(limit=3)},
        sources={"edges": edges, "base": base},
        inserted={"edges": rest},
        base=lambda t: t["base"],
        step=lambda d, t: d.join(t["edges"], d.id == t["edges"].src).selectExpr("dst AS id", "seen"),
    )
    assert new.kind == "incremental", new.reason
    assert sorted(map(tuple, new.rows.collect())) == oracle(3)
    new.free()


@pytest.mark.parametrize("limit", [0, -1, "3", True, 2.5, None])
def test_limits_that_are_none(limit: Any) -> None:  # noqa: ANN401
    with pytest.raises(ra.UsageError, match="limit=") as caught:
        ra.collect_set(limit=limit)
    assert caught.value.code == "PARALAGG_AGGREGATOR"


@pytest.mark.parametrize("agg", ["collect_set", ra.collect_set, F.collect_set])
def test_the_name_alone_is_no_aggregate(spark: SparkSession, agg: Any) -> None:  # noqa: ANN401
    with pytest.raises(ra.UsageError, match=r"ra.collect_set.limit=…") as caught:
        spark.range(1).withColumn("seen", F.col("id")).recursive_agg("id", {"seen": agg}, step=lambda d: d)
    assert caught.value.code == "PARALAGG_UNKNOWN_AGGREGATE"


def test_elements_without_an_order_are_refused(spark: SparkSession) -> None:
    base = spark.sql("SELECT 1 AS id, map(1, 2) AS seen")
    with pytest.raises(ra.UsageError, match="MAP<INT, INT>") as caught:
        base.recursive_agg("id", {"seen": ra.collect_set(limit=2)}, step=lambda d: d)
    assert caught.value.code == "PARALAGG_AGGREGATOR_TYPE"


def test_sets_of_arrays(spark: SparkSession) -> None:
    base = spark.sql("SELECT 1 AS id, array(array(2), array(1, 3), array(1)) AS seen")
    found = base.recursive_agg("id", {"seen": ra.collect_set(limit=2)}, step=lambda d: d)
    assert [r.seen for r in found.collect()] == [[[1], [1, 3]]]


def test_types_without_samples_need_some(spark: SparkSession) -> None:
    def merged(old: Column, new: Column) -> Column:
        return F.map_from_entries(F.array_sort(F.array_union(F.map_entries(old), F.map_entries(new))))

    own = ra.aggregator("own", merged)
    base = spark.sql("SELECT 1 AS id, map(1, 2) AS v")
    with pytest.raises(ra.UsageError, match="there are no samples of map<int,int>") as caught:
        base.recursive_agg("id", {"v": own}, step=lambda d: d)
    assert caught.value.code == "PARALAGG_AGGREGATOR_TYPE"
    assert "samples=" in str(caught.value.hint)


NESTED: list[tuple[str, Callable[[Any, Any], Any]]] = [
    ("struct(1 AS a, 'x' AS b)", F.greatest),
    ("X'61'", F.greatest),
    ("array(struct(1L AS a))", lambda old, new: F.sort_array(F.array_union(old, new))),
]


@pytest.mark.parametrize(("value", "combine"), NESTED)
def test_own_aggregators_over_nested_types(
    spark: SparkSession, value: str, combine: Callable[[Any, Any], Any], capfd: pytest.CaptureFixture[str]
) -> None:
    own = ra.aggregator("own", combine)
    base = spark.sql(f"SELECT 1 AS id, {value} AS v")
    found = base.recursive_agg("id", {"v": own}, step=lambda d: d.selectExpr("id + 1 AS id", "v").where("id < 3"))
    assert [r.v for r in found.collect()] == [base.first().v] * 2  # type: ignore[union-attr]
    assert "DATATYPE_MISMATCH" not in capfd.readouterr().err
    report = ra.report(found)
    assert report is not None
    assert report.backend == "spark"
