"""``ra.collect_set``: the least elements that reach a key, on all executors that have arrays or texts of them."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

import pyspark_paralagg as ra
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

pytestmark = pytest.mark.rotates(runs=3)

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


def on_ranks(spark: SparkSession, ranks: int) -> str:
    """Set the number of ranks; return the backend."""
    pytest.importorskip("numba", reason="the MPI engine needs numba")
    if ranks == 1:
        return "local"
    pytest.importorskip("mpi4py", reason="ranks need mpi4py")
    spark.conf.set(conf.MPI_RANKS.name, str(ranks))
    spark.conf.set(conf.MPI_OVERSUBSCRIBE.name, "true")
    return "mpi"


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("ranks", [1, 2, 7])
def test_least_elements_on_ranks(spark: SparkSession, edges: DataFrame, ranks: int) -> None:
    base = edges.selectExpr("src AS id").union(edges.select("dst")).distinct().withColumn("seen", F.col("id"))
    for limit in (1, 3, 100):
        found = ancestors(base, edges, limit, backend=on_ranks(spark, ranks))
        assert dict(found.dtypes)["seen"] == "array<bigint>"
        assert sorted(map(tuple, found.collect())) == oracle(limit)
        report = ra.report(found)
        assert report is not None
        assert report.backend == on_ranks(spark, ranks)


ELEMENTS = {
    "string": "decode(unhex('00'), 'utf-8') || tag", "double": "nullif(tag, 9) - 6.5D", "float": "float(tag - 6.5)",
    "date": "date_add(date'1969-12-31', tag - 6)", "int": "int(tag - 6)", "timestamp": "timestamp_seconds(tag - 6)",
    "decimal(10,2)": "decimal(tag - 6.5)", "boolean": "tag > 6",
}  # fmt: skip


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("ranks", [1, 2, 7])
def test_types_of_elements_on_ranks(spark: SparkSession, ranks: int) -> None:
    """All types at once; each edge adds its element, and copies those of its source. Some elements are null."""
    rows = [(1, 2, 5), (2, 3, 40), (3, 1, 7), (4, 1, 2), (4, 4, 9), (5, 3, 6)]
    values = [f"cast({value} AS {type_}) AS c{n}" for n, (type_, value) in enumerate(ELEMENTS.items())]
    edges = spark.createDataFrame(rows, "src long, dst long, tag int").selectExpr("src", "dst", *values)
    names = [f"c{n}" for n in range(len(ELEMENTS))]

    def step(d: DataFrame) -> DataFrame:
        joined = d.join(edges.withColumnsRenamed({c: f"e{c}" for c in names}), d.id == F.col("src"))
        added = [f"CASE WHEN e{c} IS NOT NULL THEN array(e{c}) END AS {c}" for c in names]
        return joined.selectExpr("dst AS id", *added).union(joined.selectExpr("dst AS id", *names))

    def collected(backend: str) -> list[Any]:
        base = edges.selectExpr("src AS id", *names)
        aggs = {c: ra.collect_set(limit=3) for c in names}
        return sorted(map(repr, base.recursive_agg("id", aggs, step=step, backend=backend).collect()))

    expected = collected("dataframe")
    assert collected(on_ranks(spark, ranks)) == expected
    if ranks == 1:
        assert collected("spark") == expected


def test_a_set_beside_a_sum_on_ranks(spark: SparkSession) -> None:
    """Values that add up: a kernel that is suspended for a merge of sets adds no row twice."""
    edges = spark.createDataFrame([(1, 2), (1, 3), (2, 4), (3, 4), (4, 5), (3, 5)], "src long, dst long")
    aggs: dict[str, Any] = {"ways": "sum", "seen": ra.collect_set(limit=2)}
    for backend in ("dataframe", on_ranks(spark, 1), on_ranks(spark, 2)):
        found = spark.sql("SELECT 1L AS id, 1L AS ways, 'a' AS seen").recursive_agg(
            "id",
            aggs,
            step=lambda d: d.join(edges, d.id == edges.src).selectExpr("dst AS id", "ways", "seen"),
            backend=backend,
            mode="iterate",
        )
        assert sorted(map(tuple, found.collect())) == [(n, w, ["a"]) for n, w in enumerate([1, 1, 1, 2, 3], 1)]


def test_python_workers_have_no_sets(edges: DataFrame) -> None:
    with pytest.raises(ra.UnsupportedError, match="array<bigint> cannot run inside the loop") as caught:
        ancestors(edges.selectExpr("src AS id", "src AS seen"), edges, 3, backend="python")
    assert caught.value.code == "PARALAGG_STEP_UNSUPPORTED"
    assert 'backend="spark"' in str(caught.value.hint)


@pytest.mark.parametrize("value", ["array(1)", "struct(1 AS a)", "X'61'"])
def test_nested_elements_on_ranks_are_refused(spark: SparkSession, value: str) -> None:
    base = spark.sql(f"SELECT 1 AS id, array({value}) AS seen")
    with pytest.raises(ra.UnsupportedError, match="has no sets of") as caught:
        base.recursive_agg("id", {"seen": ra.collect_set(limit=2)}, step=lambda d: d, backend=on_ranks(spark, 1))
    assert caught.value.code == "PARALAGG_NOT_PORTABLE"
    assert 'backend="spark"' in str(caught.value.hint)


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
    with pytest.raises(ra.UsageError, match="elements of map<int,int> have no order") as caught:
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
