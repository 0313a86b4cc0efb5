"""Proofs of single rows: on each engine, checked step by step against the data, and against a search for depth."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    Edge = tuple[int, int, int]

pytestmark = pytest.mark.rotates(runs=3)

ENGINES = ("spark", "local", "python", "mpi")
CYCLES = [(1, 2, 7), (2, 3, 1), (1, 3, 9), (3, 4, 0), (4, 3, 0), (4, 5, 0), (5, 6, 2), (3, 6, 2), (6, 6, 0), (7, 1, 1)]
TEXT = """
.decl dist(x: number, d: number) .decl far(x: number) .decl total(s: number) .decl big(s: number)
.decl even(x: number) .decl odd(x: number)
dist(x, 0) :- start(x).
dist(y, $MIN(d + w)) :- dist(x, d), edge(x, y, w), !closed(y).
far(x) :- dist(x, d), d > 7.
total($SUM(d)) :- dist(_, d).
big(s) :- total(s), far(x), s > x.
even(1).
odd(y) :- even(x), edge(x, y, _).
even(y) :- odd(x), edge(x, y, _).
"""


def distances(spark: SparkSession, edges: list[Edge], engine: str, name: str = "dist") -> DataFrame:
    roads = spark.createDataFrame(edges, "src long, dst long, weight long").alias("roads")
    start = spark.createDataFrame([(1, 0)], "node long, dist long")
    return start.recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(roads, d.node == roads.src).select(
            roads.dst.alias("node"), (d.dist + roads.weight).alias("dist")
        ),
        name=name,
        backend=engine,
    )


def least_depths(edges: list[Edge]) -> dict[int, tuple[int, int]]:
    """Return distance and the fewest edges of a shortest way from node 1, by node."""
    best = {1: (0, 0)}
    for _ in edges:
        for u, v, w in edges:
            if u in best:
                best[v] = min(best.get(v, (1 << 60, 0)), (best[u][0] + w, best[u][1] + 1))
    return best


def check_way(proof: ra.Proof, edges: list[Edge]) -> int:
    """Check each step of a proof of ``dist``; return its length."""
    steps = 0
    while proof.rule != "base of dist":
        before, road = proof.premises
        assert (road.name, proof.rule) == ("roads", "step of dist")
        assert tuple(road.row.values()) in edges
        assert road.row["src"] == before.row["node"]
        assert proof.row == {"node": road.row["dst"], "dist": before.row["dist"] + road.row["weight"]}
        proof, steps = before, steps + 1
    assert (proof.row, proof.premises) == ({"node": 1, "dist": 0}, ())
    return steps


@pytest.mark.parametrize("engine", ENGINES)
def test_a_proof_rests_on_rows_of_the_inputs(spark: SparkSession, engine: str) -> None:
    """Edges of weight 0 form a cycle that must not prove itself."""
    df = distances(spark, CYCLES, engine)
    for node in (4, 6):
        proof = ra.why(df, node=node)
        assert proof.row["dist"] == least_depths(CYCLES)[node][0]
        assert check_way(proof, CYCLES) == least_depths(CYCLES)[node][1]


@pytest.mark.parametrize("seed", range(3))
def test_proofs_have_the_least_depth(spark: SparkSession, seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - no secret
    edges = [(rng.randrange(1, 25), rng.randrange(1, 25), rng.choice((0, 0, 1, 3))) for _ in range(70)]
    df = distances(spark, edges, "spark").cache()
    best = least_depths(edges)
    assert {r.node: r.dist for r in df.collect()} == {node: d for node, (d, _) in best.items()}
    deepest = max(best, key=lambda node: best[node][1])
    proof = ra.why(distances(spark, edges, "spark"), node=deepest)
    assert check_way(proof, edges) == best[deepest][1]
    assert proof.depth == best[deepest][1] + 1


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_both_sides_of_a_join_with_itself_are_proved(spark: SparkSession, engine: str) -> None:
    """A chain of 9 links by doubling has a proof of depth 4 and not of 9."""
    links = [(n, n + 1) for n in range(9)]
    base = spark.createDataFrame(links, "a long, b long")

    def step(r: DataFrame) -> DataFrame:
        x, y = r.alias("x"), r.alias("y")
        return x.join(y, F.col("x.b") == F.col("y.a")).select(F.col("x.a").alias("a"), F.col("y.b").alias("b"))

    proof = ra.why(base.recursive_agg(["a", "b"], step=step, name="reach", backend=engine), {"a": 0, "b": 9})
    leaves = {tuple(p.row.values()) for p in proof.rows() if p.rule == "base of reach"}
    assert leaves == set(links)
    assert proof.depth == 5
    for p in proof.rows():
        if p.premises:
            assert [p.row["a"], p.row["b"]] == [p.premises[0].row["a"], p.premises[1].row["b"]]
            assert p.premises[0].row["b"] == p.premises[1].row["a"]


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_a_sum_lists_its_contributions(spark: SparkSession, engine: str) -> None:
    rows = [("car", "wheel", 4), ("car", "engine", 1), ("wheel", "bolt", 5), ("engine", "bolt", 9), ("car", "bolt", 2)]
    parts = spark.createDataFrame([*rows, ("car", "bolt", 2)], "part string, sub string, n long").alias("parts")
    base = spark.sql("SELECT 'car' AS part, 1L AS n")
    need = base.recursive_agg(
        "part",
        {"n": "sum"},
        step=lambda r: r.join(parts, r.part == parts.part).select(parts.sub.alias("part"), (r.n * parts.n).alias("n")),
        name="need",
        backend=engine,
    )
    proof = ra.why(need, part="bolt")
    assert proof.row == {"part": "bolt", "n": 33}
    assert [(p.row["n"], p.times) for p in proof.premises] == [(20, 1), (9, 1), (2, 2)]
    assert [q.row for q in proof.premises[0].premises] == [
        {"part": "wheel", "n": 4},
        {"part": "wheel", "sub": "bolt", "n": 5},
    ]
    assert "of 4 contributions" in str(proof)


def test_a_carried_column_is_proved_with_its_order(spark: SparkSession) -> None:
    """``via`` is the line of the last leg; the way over line 2 has the least time and the least line."""
    legs = spark.createDataFrame(
        [("a", "b", 5, 3), ("a", "b", 5, 2), ("b", "c", 1, 9)], "s string, t string, m int, l int"
    )
    base = spark.sql("SELECT 'a' AS stop, 0 AS minutes, 0 AS via")
    best = base.recursive_agg(
        "stop",
        {"minutes": "min", "via": ra.min_by("minutes")},
        step=lambda r: r.join(legs, r.stop == legs.s).select(
            legs.t.alias("stop"), (r.minutes + legs.m).alias("minutes"), legs.l.alias("via")
        ),
    )
    proof = ra.why(best, stop="b")
    assert proof.row == {"stop": "b", "minutes": 5, "via": 2}
    assert proof.premises[1].row["l"] == 2


def test_a_row_of_two_minima_needs_the_column(spark: SparkSession) -> None:
    base = spark.sql("SELECT * FROM VALUES (1L, 5L, 1L), (1L, 2L, 9L) AS b(k, lo, hi)")
    df = base.recursive_agg("k", {"lo": "min", "hi": "max"}, step=lambda r: r, name="r")
    with pytest.raises(ra.UsageError, match="several columns of 'r' have derivations of their own: lo, hi"):
        ra.why(df, k=1)
    assert ra.why(df, k=1, of="hi").row == {"k": 1, "lo": 2, "hi": 9}
    with pytest.raises(ra.UsageError, match="'k' is no column of 'r' that has derivations of its own") as e:
        ra.why(df, k=1, of="k")
    assert e.value.hint == "use one of lo, hi"


@pytest.fixture(scope="module")
def text(spark_session: SparkSession) -> ra.Relations:
    spark = spark_session
    edges = spark.createDataFrame(
        [(1, 2, 3), (2, 3, 4), (3, 1, 0), (1, 3, 9), (3, 4, 1), (4, 9, 1)], "x long, y long, w long"
    )
    start, closed = spark.createDataFrame([(1,)], "x long"), spark.createDataFrame([(9,)], "x long")
    return ra.datalog(spark, TEXT, edge=edges, start=start, closed=closed)


def test_a_proof_crosses_the_recursions_of_a_text(text: ra.Relations) -> None:
    proof = ra.why(text["big"], s=18)
    by_name: dict[str, list[dict[str, Any]]] = {}
    for p in proof.rows():
        by_name.setdefault(p.name, []).append(p.row)
    assert by_name["far"] == [{"x": 4}]
    assert {"x": 1, "y": 2, "w": 3} in by_name["edge"]
    assert {"x": 1, "y": 3, "w": 9} not in by_name["edge"]
    assert by_name["start"] == [{"x": 1}]
    total = next(p for p in proof.premises if p.name == "total")
    assert [c.row for c in total.premises] == [{"s": 8}, {"s": 7}, {"s": 3}, {"s": 0}]
    dist = next(p for p in proof.rows() if p.row == {"x": 4, "d": 8} and p.rule)
    assert (dist.rule, dist.absent) == ("line 5, column 1", ("closed",))


def test_two_relations_that_read_each_other(text: ra.Relations) -> None:
    proof = ra.why(text["even"], x=4)
    names = [(p.name, *p.row.values()) for p in proof.rows() if p.name != "edge"]
    assert names == [("even", 4), ("odd", 3), ("even", 1)]


def test_a_structure_is_shown_as_its_text(spark: SparkSession) -> None:
    source = """
    .type List = [head: number, tail: List]
    .decl lists(l: List, n: number)
    lists(nil, 0).
    lists([n, l], n + 1) :- lists(l, n), n < 2.
    .decl long(l: List) .output long
    long(l) :- lists(l, 2).
    """
    relations = ra.datalog(spark, source)
    proof = ra.why(relations["long"], l="[1, [0, nil]]")
    assert proof.row == {"l": "[1, [0, nil]]"}
    assert proof.premises[0].row == {"l": "[1, [0, nil]]", "n": 2}
    with pytest.raises(ra.UsageError, match="the key 'l' has 'x' at character 1"):
        ra.why(relations["long"], l="x")


def test_why_not_names_what_each_rule_lacks(text: ra.Relations, spark: SparkSession) -> None:
    absence = ra.why_not(text["dist"], x=9)
    first, second = absence.failures
    assert (first.atom, first.conditions) == ("start", ("x = 9",))
    assert (second.atom, second.is_excluded, second.rows, second.before) == ("closed", True, 1, ("edge", "dist"))
    assert "but closed has rows with" in str(absence)
    unreached = ra.why_not(distances(spark, [*CYCLES, (8, 9, 1)], "spark"), node=9)
    failure = unreached.failures[1]
    assert (failure.rule, failure.atom, failure.before, failure.rows) == ("step of dist", "dist", ("roads",), 1)
    with pytest.raises(ra.UsageError, match="there is a row dist"):
        ra.why_not(text["dist"], x=4)


@pytest.mark.parametrize("engine", ["spark", "local"])
def test_rows_with_paths(spark: SparkSession, engine: str) -> None:
    """The recursion itself finds the paths of whole numbers and of sets."""
    roads = spark.createDataFrame(CYCLES, "src long, dst long, weight long").alias("roads")
    start = spark.createDataFrame([(1, 0)], "node long, dist long")

    def step(d: DataFrame) -> DataFrame:
        joined = d.join(roads, d.node == roads.src)
        return joined.select(roads.dst.alias("node"), *([d.dist + roads.weight] if "dist" in d.columns else []))

    traced = start.recursive_agg(
        "node", {"dist": "min", "route": ra.path("dist")}, step=lambda d: step(d).toDF("node", "dist"), backend=engine
    )
    assert ra.why(traced, node=6).premises == ra.why(distances(spark, CYCLES, engine, "r"), node=6).premises
    assert "has no row with" in str(ra.why_not(traced, node=99))
    reach = start.select("node").recursive_agg("node", {"route": ra.path()}, step=step, backend=engine)
    assert ra.why(reach, node=6).row == {"node": 6}
    roads.createOrReplaceTempView("roads_of_why")
    ways = spark.sql(
        "WITH RECURSIVE sp(node, min() AS dist, path(dist) AS route) AS (SELECT 1L, 0L UNION ALL "
        "SELECT r.dst, sp.dist + r.weight FROM sp JOIN roads_of_why r ON r.src = sp.node) SELECT * FROM sp"
    )
    assert ra.why(ways, node=6).row == ra.why(traced, node=6).row


def test_why_not_speaks_of_columns_and_of_relations_of_the_text(spark: SparkSession) -> None:
    source = """
    .decl edge(from: number, to: number, w: number) .input edge
    .decl total(node: number, n: number)
    .decl same(a: number, b: number) eqrel
    total(x, n) :- edge(x, _, _), n = sum w : edge(x, _, w).
    far(y) :- total(x, n), edge(x, y, w), w > n.
    same(x, y) :- edge(x, y, _).
    fixed(x, 7) :- edge(x, _, _).
    """
    edges = spark.createDataFrame([(1, 2, 3), (2, 3, 4)], "from long, to long, w long")
    found = ra.datalog(spark, source, edge=edges)
    assert str(ra.why_not(found["far"], y=2)).splitlines()[1:] == [
        "  line 6, column 5: total has no row with node = edge.from AND edge.w > n for the 1 row of edge"
    ]
    lines = str(ra.why_not(found["total"], node=1, n=4)).splitlines()
    assert lines[1].endswith("sum has no row with edge.from = x AND w = 4 for the 1 row of edge")
    assert lines[2].endswith("derives only rows with n = 0")
    [fixed] = ra.why_not(found["fixed"], x=1, c1=8).failures
    assert (fixed.atom, fixed.conditions) == (None, ("c1 = 7",))
    lines = str(ra.why_not(found["same"], a=1, b=7)).splitlines()
    assert len(lines) == len(set(lines))
    assert "@" not in "".join(lines)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"node": 99}, "there is no row dist\\(node=99\\)"),
        ({"nod": 4}, "'dist' has no key 'nod'"),
        ({}, "the key 'node' of 'dist' is not given"),
        ({"node": "x"}, "'x' is no value of the key 'node', which is bigint"),
        ({"node": None}, "None is no value of the key 'node'"),
    ],
)
def test_wrong_rows(spark: SparkSession, given: dict[str, Any], message: str) -> None:
    with pytest.raises(ra.UsageError, match=message) as problem:
        ra.why(distances(spark, CYCLES, "local"), given)
    assert problem.value.code == "PARALAGG_WHY"


def test_what_cannot_be_asked(spark: SparkSession) -> None:
    df = distances(spark, CYCLES, "spark")
    with pytest.raises(ra.UsageError, match="explains rows of recursive_agg"):
        ra.why(df.where("dist > 1"), node=4)
    with pytest.raises(ra.UnsupportedError) as refused:
        ra.why(distances(spark, CYCLES, "dataframe"), node=4)
    assert refused.value.code == "PARALAGG_WHY_UNSUPPORTED"
    with pytest.raises(ra.FixpointError) as large:
        ra.why(df, node=6, limit=2)
    assert large.value.code == "PARALAGG_WHY_LARGE"
    limited = spark.sql("SELECT 1L AS node").recursive_agg(
        "node", step=lambda r: r, max_iterations=2, on_limit="return"
    )
    with pytest.raises(ra.UsageError, match="a limit of 2 iterations"):
        ra.why(limited, node=1)


@pytest.mark.parametrize(
    ("algorithm", "keys", "proof"),
    [
        (
            lambda e: ra.graph.shortest_paths(e, [1], "km"),
            {"source": 1, "id": 3},
            (
                "shortest_paths(source=1, id=3, distance=6)   by step of shortest_paths\n"
                "  shortest_paths(source=1, id=2, distance=5)   by step of shortest_paths\n"
                "    shortest_paths(source=1, id=1, distance=0)   by base of shortest_paths\n"
                "    edges(src=1, dst=2, weight=5)\n"
                "  edges(src=2, dst=3, weight=1)"
            ),
        ),
        (
            lambda e: ra.graph.widest_paths(e, [1], "km"),
            {"source": 1, "id": 4},
            (
                "widest_paths(source=1, id=4, width=2)   by step of widest_paths\n"
                "  widest_paths(source=1, id=3, width=9)   by base of widest_paths\n"
                "  edges(src=3, dst=4, weight=2)"
            ),
        ),
        (
            ra.graph.k_core,
            {"id": 2},
            (
                "k_core(id=2, core=2)   of 1 contribution\n"
                "  k_core(id=2, degree=2, core=2, neighbour=2)   by base of k_core"
            ),
        ),
    ],
)
def test_graph_algorithms_of_one_recursion(
    spark: SparkSession, algorithm: Callable[[DataFrame], DataFrame], keys: dict[str, int], proof: str
) -> None:
    edges = spark.createDataFrame(
        [(1, 2, 5), (2, 3, 1), (1, 3, 9), (3, 4, 2), (4, 1, 7)], "src long, dst long, km long"
    )
    assert str(ra.why(algorithm(edges), keys)) == proof
    assert str(ra.why_not(algorithm(edges), keys | {"id": 9})).startswith("there is no row")


@pytest.mark.parametrize(
    ("algorithm", "says"),
    [
        (ra.graph.strongly_connected_components, "several recursions"),
        (ra.graph.label_propagation, "replaces all values"),
        (ra.graph.hits, "replaces all values"),
        (ra.graph.triangle_count, "not a recursion"),
        (ra.graph.clustering, "not a recursion"),
    ],
)
def test_graph_algorithms_that_are_not_one_recursion(
    spark: SparkSession, algorithm: Callable[[DataFrame], DataFrame], says: str
) -> None:
    result = algorithm(spark.createDataFrame([(1, 2), (2, 1)], "src long, dst long"))
    for ask in (ra.why, ra.why_not):
        with pytest.raises(ra.UnsupportedError, match=rf"rows of ra\.graph\..*{says}") as e:
            ask(result, id=1)
        assert e.value.code == "PARALAGG_WHY_UNSUPPORTED"


def test_pictures_and_data(spark: SparkSession) -> None:
    proof = ra.why(distances(spark, CYCLES, "local"), node=3)
    assert str(proof).splitlines()[:2] == [
        "dist(node=3, dist=8)   by step of dist",
        "  dist(node=2, dist=7)   by step of dist",
    ]
    assert proof.show(levels=1).splitlines()[1] == "  ... 3 more levels: show(levels=None)"
    assert proof.mermaid().splitlines()[:2] == ["flowchart BT", '  r0["dist(node=3, dist=8)   by step of dist"]']
    data = json.loads(json.dumps(proof.to_dict()))
    assert data["rows"][0]["row"] == {"node": 3, "dist": 8}
    assert "<details open><summary>dist(node=3" in proof._repr_html_()


def test_the_command_explains_a_row_without_spark(tmp_path: Path) -> None:
    (tmp_path / "p.dl").write_text(
        '.decl edge(x: symbol, y: symbol)\n.input edge\n.decl reach(x: symbol)\nreach("a").\n'
        "reach(y) :- reach(x), edge(x, y).\n.output reach\n",
        encoding="utf-8",
    )
    (tmp_path / "edge.facts").write_text("a\tb\nb\tc, d\n", encoding="utf-8")

    def run(*options: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "pyspark_paralagg", "run", "p.dl", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)  # noqa: S603 - fixed
        return done.returncode, done.stdout, done.stderr

    assert run("--why", 'reach("c, d")')[:2] == (
        0,
        (
            "reach(x='c, d')   by p.dl, line 5, column 1\n"
            "  reach(x='b')   by p.dl, line 5, column 1\n"
            "    reach(x='a')   by facts of reach\n"
            "    edge(x='a', y='b')\n"
            "  edge(x='b', y='c, d')\n"
        ),
    )
    assert run("--why-not", "reach(z)")[1].splitlines()[2] == '  p.dl, line 5, column 1: edge has no row with y = "z"'
    assert "PARALAGG_WHY: the text has no relation 'rech'" in run("--why", "rech(b)")[2]
    assert run("--why", "reach(b, 3)")[0] == 2
    assert not (tmp_path / "reach.csv").exists()
