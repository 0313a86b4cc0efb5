"""Paths and hops as columns of a result: on each engine the same, against a search in Python."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

import pyspark_paralagg as ra
from pyspark_paralagg.api import routes as api_routes
from pyspark_paralagg.backends import path_search
from pyspark_paralagg.session import workers

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

    Edge = tuple[Any, Any, int]

pytestmark = pytest.mark.rotates(runs=3)

ENGINES = ("spark", "local", "python", "mpi", "dataframe")
CYCLES = [(1, 2, 7), (2, 3, 1), (1, 3, 9), (3, 4, 0), (4, 3, 0), (4, 5, 0), (5, 6, 2), (3, 6, 2), (6, 6, 0), (7, 1, 1)]


def shortest(edges: DataFrame) -> Callable[[DataFrame], DataFrame]:
    return lambda d: d.join(edges, d.node == edges.src).select(
        edges.dst.alias("node"), (d.dist + edges.weight).alias("dist")
    )


def expected(edges: list[Edge], sources: dict[Any, int]) -> dict[Any, tuple[int, list[Any]]]:
    """Return distance and route of each node: the least distance, then the fewest hops, then the smallest parent."""
    best = {node: (dist, 0) for node, dist in sources.items()}
    for _ in range(len(edges) + len(sources)):
        for u, v, w in edges:
            if u in best:
                best[v] = min(best.get(v, (1 << 60, 0)), (best[u][0] + w, best[u][1] + 1))
    routes: dict[Any, list[Any]] = {}
    for node in sorted(best, key=lambda n: best[n][1]):
        before = [u for u, v, w in edges if v == node and u in best and (best[u][0] + w, best[u][1] + 1) == best[node]]
        routes[node] = [*routes[min(before)], node] if best[node][1] else [node]
    return {node: (dist, routes[node]) for node, (dist, _) in best.items()}


def found(df: DataFrame) -> dict[Any, tuple[int, list[Any]]]:
    rows = df.collect()
    assert all(r.legs == len(r.route) - 1 for r in rows)
    assert len({r.node for r in rows}) == len(rows)
    return {r.node: (r.dist, r.route) for r in rows}


def routes(base: DataFrame, edges: DataFrame, **options: Any) -> DataFrame:  # noqa: ANN401 - of recursive_agg
    aggs = {"route": ra.path("dist"), "dist": "min", "legs": ra.hops("dist")}
    return base.recursive_agg("node", aggs, step=shortest(edges), **options)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("partitions", "number"), [(1, "bigint"), (7, "bigint"), (7, "double")])
def test_routes_are_those_of_a_search(spark: SparkSession, engine: str, partitions: int, number: str) -> None:
    """Two edges of weight 0 form a cycle, a node has an edge to itself, two ways are equally long.

    The recursion itself finds the routes of whole numbers. Sums of doubles may be equal by rounding.
    """
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long").repartition(partitions)
    base = spark.createDataFrame([(1, 0), (4, 20), (9, 5)], "node long, dist long")
    base = base.withColumn("dist", F.col("dist").cast(number))
    df = routes(base, edges.withColumn("weight", F.col("weight").cast(number)), backend=engine)
    assert df.dtypes == [("node", "bigint"), ("route", "array<bigint>"), ("dist", number), ("legs", "bigint")]
    assert found(df) == expected(CYCLES, {1: 0, 4: 20, 9: 5})


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("number", ["long", "double"])
def test_random_graphs(spark: SparkSession, seed: int, number: str) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    nodes = [f"n{n}" for n in range(30)]
    drawn = [(rng.choice(nodes), rng.choice(nodes), rng.choice((0, 0, 1, 2, 5))) for _ in range(90)]
    edges = spark.createDataFrame(drawn, "src string, dst string, weight long").withColumn(
        "weight", F.col("weight").cast(number)
    )
    base = spark.createDataFrame([("n0", 0), ("n1", 3)], "node string, dist long").withColumn(
        "dist", F.col("dist").cast(number)
    )
    assert found(routes(base, edges)) == expected(drawn, {"n0": 0, "n1": 3})


@pytest.mark.parametrize("engine", ENGINES)
def test_sets_have_paths_of_fewest_steps(spark: SparkSession, engine: str) -> None:
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    reach = spark.sql("SELECT 1L AS node").recursive_agg(
        "node",
        {"n": ra.hops(), "route": ra.path()},
        step=lambda r: r.join(edges, r.node == edges.src).select(edges.dst.alias("node")),
        backend=engine,
    )
    unweighted = expected([(u, v, 1) for u, v, _ in CYCLES], {1: 0})
    assert {r.node: (r.n, r.route) for r in reach.collect()} == unweighted


@pytest.mark.parametrize("engine", ENGINES)
def test_several_keys_and_columns_along_the_way(spark: SparkSession, engine: str) -> None:
    """One search finds three keys and two columns: the widest route by legs, with capacity and line of each leg."""
    lines = [("a", "b", 5, "x"), ("a", "b", 5, "w"), ("b", "c", 3, "y"), ("a", "c", 3, "z"), ("c", "d", 9, "x")]
    edges = spark.createDataFrame(lines, "src string, dst string, width long, line string")
    base = spark.sql("SELECT 'a' AS stop, DATE'2026-01-01' AS day, 0 AS legs, 99L AS width, '' AS line")

    def step(r: DataFrame) -> DataFrame:
        return r.join(edges, (r.stop == edges.src) & (r.legs < 3)).select(
            edges.dst.alias("stop"),
            r.day,
            (r.legs + 1).alias("legs"),
            F.least(r.width, edges.width).alias("width"),
            edges.line.alias("line"),
        )

    widest = base.recursive_agg(
        ["stop", "day", "legs"],
        {
            "width": "max",
            "line": ra.max_by("width"),
            "route": ra.path("width"),
            "way": ra.path("width", columns=["stop", "width", "line"]),
        },
        step=step,
        backend=engine,
    )
    rows = {(r.stop, r.legs): r for r in widest.collect()}
    assert set(rows) == {("a", 0), ("b", 1), ("c", 1), ("c", 2), ("d", 2), ("d", 3)}
    assert [tuple(x) for x in rows["d", 3].way] == [("a", 99, ""), ("b", 5, "w"), ("c", 3, "y"), ("d", 3, "x")]
    assert [(x.stop, str(x.day), x.legs) for x in rows["d", 2].route] == [
        ("a", "2026-01-01", 0),
        ("c", "2026-01-01", 1),
        ("d", "2026-01-01", 2),
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_columns_that_only_the_step_has(spark: SparkSession, engine: str) -> None:
    """Of parallel legs from one parent the values of one leg stay together, also where one of them is null."""
    legs = [("a", "b", 2, "x", 9), ("a", "b", 2, "w", 7), ("b", "c", 1, None, 5), ("c", "d", 1, "z", None)]
    edges = spark.createDataFrame(legs, "src string, dst string, weight long, line string, track int")
    dist = spark.sql("SELECT 'a' AS node, 0 AS dist").recursive_agg(
        "node",
        {
            "dist": "min",
            "lines": ra.path("dist", columns=["line"]),
            "way": ra.path("dist", columns=["node", "line", "track"]),
        },
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.weight).alias("dist"), "line", edges.track.alias("TRACK")
        ),
        backend=engine,
    )
    rows = {r.node: (r.dist, r.lines, [tuple(x) for x in r.way]) for r in dist.collect()}
    assert rows["d"] == (
        4,
        [None, "w", None, "z"],
        [("a", None, None), ("b", "w", 7), ("c", None, 5), ("d", "z", None)],
    )
    assert dist.columns == ["node", "dist", "lines", "way"]


def test_all_pairs_and_deep_graphs(spark: SparkSession) -> None:
    chain = spark.range(2000).selectExpr("id AS src", "id + 1 AS dst")
    base = spark.sql("SELECT 0L AS node")
    deep = base.recursive_agg(
        "node", {"route": ra.path()}, step=lambda r: r.join(chain, r.node == chain.src).select(chain.dst.alias("node"))
    )
    last = deep.where("node = 2000").collect()
    assert [r.route for r in last] == [list(range(2001))]

    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    pairs = edges.selectExpr("src", "dst", "weight AS dist").recursive_agg(
        ["src", "dst"],
        {"dist": "min", "route": ra.path("dist", columns="dst")},
        step=lambda p: p.join(edges, p.dst == edges.src).select(
            p.src, edges.dst, (p.dist + edges.weight).alias("dist")
        ),
    )
    assert {(r.src, r.dst): r.route for r in pairs.collect()}[7, 6] == [1, 2, 3, 6]


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_a_limit_of_rows(spark: SparkSession, engine: str) -> None:
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    base = spark.sql("SELECT 1L AS node, 0L AS dist")
    short = {"dist": "min", "route": ra.path("dist", limit=5)}
    assert (
        max(len(r.route) for r in base.recursive_agg("node", short, step=shortest(edges), backend=engine).collect())
        == 5
    )
    short["route"] = ra.path("dist", limit=4)
    with pytest.raises(Exception, match=r"\[PARALAGG_PATH_TOO_LONG\] the path route of .* has 5 rows"):
        base.recursive_agg("node", short, step=shortest(edges), backend=engine).collect()


@pytest.mark.parametrize("engine", ENGINES)
def test_null_keys_have_paths(spark: SparkSession, engine: str) -> None:
    """The row before may have a null key, and so may the row itself; null is the largest parent."""
    base = spark.sql("SELECT CAST(NULL AS BIGINT) AS node")

    def step(r: DataFrame) -> DataFrame:
        return r.selectExpr("coalesce(node + 1, 5L) AS node").where("node < 7")

    reach = base.recursive_agg("node", {"route": ra.path(), "n": ra.hops()}, step=step, backend=engine)
    assert {r.node: (r.n, r.route) for r in reach.collect()} == {
        None: (0, [None]),
        5: (1, [None, 5]),
        6: (2, [None, 5, 6]),
    }


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("number", "recursions"), [("bigint", 1), ("double", 2)])
def test_several_keys_with_nulls(spark: SparkSession, engine: str, number: str, recursions: int) -> None:
    """Rows that differ in which key is null are different parents, and stay so beside zero and the empty string."""
    steps = [
        ((1, "a", 1), (None, "b", 1)),
        ((1, "a", 1), (2, None, None)),
        ((1, "a", 1), (0, "", 0)),
        ((None, "b", 1), (3, None, 3)),
        ((2, None, None), (3, None, 3)),
        ((0, "", 0), (None, None, None)),
        ((None, None, None), (None, "", 0)),
        ((2, None, None), (None, "", 0)),
    ]
    columns = [f"{side}{n} {t}" for side in "fk" for n, t in enumerate(("int", "string", "bigint"))]
    edges = spark.createDataFrame([(*a, *b) for a, b in steps], ", ".join(columns))

    def step(r: DataFrame) -> DataFrame:
        return r.join(edges, r.k0.eqNullSafe(edges.f0) & r.k1.eqNullSafe(edges.f1) & r.k2.eqNullSafe(edges.f2)).select(
            edges.k0, edges.k1, edges.k2, (r.d + 1).alias("d")
        )

    base = spark.sql(f"SELECT 1 AS k0, 'a' AS k1, 1L AS k2, CAST(0 AS {number}) AS d")
    df = base.recursive_agg(["k0", "k1", "k2"], {"d": "min", "route": ra.path("d")}, step=step, backend=engine)
    if engine in {"spark", "local", "mpi"}:  # the recursion finds hops and all keys, or one search over its rows
        assert df._jdf.queryExecution().analyzed().toString().count("RecursiveAggregate") == recursions
    found = df.collect()
    assert {(r.k0, r.k1, r.k2): [tuple(x) for x in r.route[1:]] for r in found} == {
        (1, "a", 1): [],
        (None, "b", 1): [(None, "b", 1)],
        (2, None, None): [(2, None, None)],
        (0, "", 0): [(0, "", 0)],
        (3, None, 3): [(2, None, None), (3, None, 3)],
        (None, None, None): [(0, "", 0), (None, None, None)],
        (None, "", 0): [(2, None, None), (None, "", 0)],
    }


def test_a_relation_may_have_the_name_of_another_and_its_path(spark: SparkSession) -> None:
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    base = spark.createDataFrame([(1, 0)], "node long, dist long")
    relations = {
        "r": ra.relation(base=base, keys="node", aggs={"dist": "min", "route": ra.path("dist")}),
        "r_route": ra.relation(base=base.select("node"), keys="node"),
    }
    found = ra.recursive(
        relations,
        lambda r, r_route: {
            "r": shortest(edges)(r),
            "r_route": r_route.join(edges, r_route.node == edges.src).select(edges.dst.alias("node")),
        },
    )
    assert {r.node: (r.dist, r.route) for r in found["r"].collect()} == expected(CYCLES, {1: 0})
    assert found["r_route"].count() == found["r"].count()


@pytest.mark.parametrize("engine", ["spark", "local", "dataframe"])
def test_a_null_value_has_no_path(spark: SparkSession, engine: str) -> None:
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    base = spark.sql("SELECT 7L AS node, CAST(NULL AS BIGINT) AS dist UNION ALL SELECT 3, 0")
    df = routes(base, edges.where("src != 7"), backend=engine)
    with pytest.raises(Exception, match=r"\[PARALAGG_PATH_LOST\] 1 rows have no parent"):
        df.collect()


def test_explain_and_report(spark: SparkSession) -> None:
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    df = routes(spark.sql("SELECT 1L AS node, 0L AS dist"), edges)
    df.collect()
    assert ra.report(df).backend == "spark"
    assert "route_from_node" in ra.explain(df)


@pytest.mark.parametrize(
    ("aggs", "says"),
    [
        ({"dist": "min", "route": ra.path("cost")}, "no minimum or maximum"),
        ({"dist": "sum", "route": ra.path("dist")}, "no minimum or maximum"),
        ({"dist": "min", "route": ra.path()}, "names no column that decides"),
        ({"dist": "min", "n": ra.hops()}, "names no column that decides"),
        ({"dist": "min", "route": ra.path("dist", columns=["line"])}, "neither the relation nor the step has"),
        ({"dist": "min", "route": ra.path("dist", limit=0)}, "limit=0"),
        ({"dist": "min", "route": ra.path("dist", limit=10**12)}, "limit=1000000000000"),
        ({"dist": "min", "route": ra.path("dist", limit=1.5)}, "limit=1.5"),
        ({"dist": "min", "route": ra.path("dist", limit="5")}, "limit='5'"),
        ({"dist": ra.path()}, "the base has a column"),
    ],
)
def test_a_trace_that_is_not_defined(spark: SparkSession, aggs: dict[str, Any], says: str) -> None:
    base = spark.sql("SELECT 1L AS node, 0L AS dist")
    with pytest.raises(ra.UsageError, match=says) as e:
        base.recursive_agg("node", aggs, step=lambda r: r)
    assert e.value.code == "PARALAGG_PATH"


def test_rows_without_a_single_parent(spark: SparkSession) -> None:
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    pairs = edges.selectExpr("src", "dst", "weight AS dist")
    with pytest.raises(ra.UsageError, match="no single parent") as e:
        pairs.recursive_agg(
            ["src", "dst"],
            {"dist": "min", "route": ra.path("dist")},
            step=_doubled,
        )
    assert e.value.code == "PARALAGG_PATH"
    with pytest.raises(ra.UsageError, match="parents may have changed"):
        routes(spark.sql("SELECT 1L AS node, 0L AS dist"), edges, max_iterations=3, on_limit="return")


def _doubled(p: DataFrame) -> DataFrame:
    second = p.toDF("mid", "end", "more")
    return p.join(second, p.dst == second.mid).selectExpr("src", "end AS dst", "dist + more AS dist")


TEXT = """
.decl road(x: number, y: number, w: number)
.decl dist(node: number, route: path, dist: number, legs: number)
road(x, y, w) :- edge(x, y, w), w < 1000.
dist(x, $PATH(0), 0, $HOPS()) :- start(x).
dist(y, $PATH(d + w), $MIN(d + w), $HOPS()) :- dist(x, _, d, _), road(x, y, w).
far(x, d) :- dist(x, _, d, _), d > 4.
.assume edge.weight >= 0
"""


@pytest.mark.parametrize("engine", ENGINES)
def test_a_text_has_the_same_paths(spark: SparkSession, engine: str) -> None:
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    relations = ra.datalog(spark, TEXT, edge=edges, start=spark.sql("SELECT 1L AS x"), backend=engine)
    df = relations["dist"]
    assert df.columns == ["node", "route", "dist", "legs"]
    assert found(df) == expected(CYCLES, {1: 0})
    assert {r.x: r.d for r in relations["far"].collect()} == {
        node: dist for node, (dist, _) in expected(CYCLES, {1: 0}).items() if dist > 4
    }


def test_a_path_that_no_rule_of_a_text_gives_has_its_line(spark: SparkSession) -> None:
    text = "r(x, y, $PATH()) :- edge(x, y, _).\nr(x, z, $PATH()) :- r(x, y, _), r(y, z, _)."
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    relations = ra.datalog(spark, text, edge=edges)
    with pytest.raises(ra.UsageError, match=r"no single parent.*line 2, column 1"):
        _ = relations["r"]


def test_plain_dataframes_follow_steps_that_no_engine_runs(spark: SparkSession) -> None:
    """A Python function, an array that is exploded, a groupBy with the minimum, and a branch without the relation."""
    plus = F.udf(lambda a, b: a + b, "long")
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    ends = edges.groupBy("src").agg(F.collect_list(F.struct("dst", "weight")).alias("ends"))
    base = spark.sql("SELECT 4L AS node, 20L AS dist")

    def step(d: DataFrame) -> DataFrame:
        legs = d.join(ends, d.node == ends.src).select("dist", F.explode("ends").alias("leg"))
        rows = legs.select(F.col("leg.dst").alias("node"), plus("dist", "leg.weight").alias("dist"))
        return rows.groupBy("node").agg(F.min("dist").alias("dist")).distinct().union(spark.sql("SELECT 1L, 0L"))

    aggs = {"route": ra.path("dist"), "dist": "min", "legs": ra.hops("dist")}
    df = base.recursive_agg("node", aggs, step=step, mode="iterate")
    assert ra.report(df).backend == "dataframe"
    assert found(df) == expected(CYCLES, {1: 0, 4: 20})


@pytest.mark.parametrize(
    ("step", "code", "says"),
    [
        (lambda p, _: _doubled(p), "PARALAGG_PATH", "no single parent"),
        (lambda p, e: e.join(p, e.src == p.dst, "left_semi").toDF("src", "dst", "dist"), "PARALAGG_PATH", "SEMI"),
        (lambda p, _: p.limit(5), "PARALAGG_PATH_UNSUPPORTED", "Limit"),
        (lambda p, _: p.groupBy("src", "dst").agg(F.max("dist").alias("dist")), "PARALAGG_PATH_UNSUPPORTED", "max"),
    ],
)
def test_plain_dataframes_refuse_steps_without_a_row_before(
    spark: SparkSession, step: Callable[[DataFrame, DataFrame], DataFrame], code: str, says: str
) -> None:
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    pairs = edges.toDF("src", "dst", "dist")
    aggs = {"dist": "min", "route": ra.path("dist")}
    with pytest.raises((ra.UsageError, ra.UnsupportedError), match=says) as e:
        pairs.recursive_agg(["src", "dst"], aggs, step=lambda p: step(p, edges), backend="dataframe", mode="iterate")
    assert e.value.code == code


def test_plain_dataframes_need_final_rows_and_the_jar(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    base = spark.sql("SELECT 1L AS node, 0L AS dist")
    with pytest.raises(ra.UsageError, match="parents may have changed"):
        routes(base, edges, backend="dataframe", max_iterations=3, on_limit="return")
    monkeypatch.setattr(path_search, "shim_if_there", lambda _: None)
    with pytest.raises(ra.UnsupportedError, match="this session lacks") as e:
        routes(base, edges, backend="dataframe")
    assert e.value.code == "PARALAGG_PATH_UNSUPPORTED"


def test_python_workers_make_the_arrays(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    edges = spark.createDataFrame(CYCLES, "src long, dst long, weight long")
    base = spark.sql("SELECT 1L AS node, 0L AS dist")
    monkeypatch.setattr(api_routes, "shim_if_there", lambda _: None)  # as a session without the jar
    assert found(routes(base, edges)) == expected(CYCLES, {1: 0})
    monkeypatch.setitem(workers._KNOWN, spark, {"error": "ModuleNotFoundError: No module named 'pyarrow'"})
    with pytest.raises(ra.EnvironmentProblem, match="pyarrow") as missing:
        routes(base, edges)
    assert missing.value.code == "PARALAGG_PATH_WORKERS"
