"""``ra.graph`` against networkx on small random graphs, against the rules of LDBC Graphalytics, and its errors."""

from __future__ import annotations

import csv
import gzip
import json
import math
import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import pytest
from rows import assert_same_rows, frame, rows_of

import pyspark_paralagg as ra
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.graph import components
from pyspark_paralagg.graph.small import strong_components

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.rotates(runs=3)

DATA = Path(__file__).parents[2] / "shared" / "conformance"
SEEDS = [1, 2, 3]
STRONG = [None, "spark"]
"""Backends of strong components: without one the driver finishes few edges, so that no recursion runs here."""
EDGES = "src bigint, dst bigint, weight bigint"
ISOLATED = 99


def random_edges(seed: int, vertices: int = 14, edges: int = 26) -> list[tuple[int, int, int]]:
    """Return edges with self-loops, parallel ones, and both directions of some."""
    r = random.Random(seed)  # noqa: S311 - no secret
    found = [(r.randrange(vertices), r.randrange(vertices), r.randrange(1, 20)) for _ in range(edges)]
    return [*found, *((d, s, w) for s, d, w in found[:4]), *found[4:6], (3, 3, 1)]


def graphs(spark: SparkSession, seed: int) -> tuple[list[tuple[int, int, int]], DataFrame, DataFrame]:
    """Return edges as rows and as a DataFrame, which also has rows that are no edges, and vertices."""
    rows = random_edges(seed)
    no_edges = [(None, 1, 1), (2, None, 1)]
    return rows, frame(spark, EDGES, [*rows, *no_edges]), frame(spark, "id bigint", [(ISOLATED,), (1,), (None,)])


def digraph(rows: list[tuple[int, int, int]], *, directed: bool = True) -> nx.MultiGraph:
    g = nx.MultiDiGraph() if directed else nx.MultiGraph()
    g.add_node(ISOLATED)
    g.add_weighted_edges_from(rows)
    return g


def expect(found: DataFrame, expected: dict[Any, Any], rel: float = 1e-9) -> None:
    rows = rows_of(found)
    assert len(rows) == len(expected)
    assert dict(rows) == pytest.approx(expected, rel=rel, abs=1e-9) if expected else not rows


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("directed", [True, False])
def test_shortest_paths_are_those_of_networkx(spark: SparkSession, seed: int, directed: bool) -> None:  # noqa: FBT001
    rows, edges, _ = graphs(spark, seed)
    g = digraph(rows, directed=directed)
    sources = [rows[0][0], rows[1][1], ISOLATED]
    found = ra.graph.shortest_paths(edges, sources, "weight", directed=directed)
    assert found.columns == ["source", "id", "distance"]
    lengths = {s: nx.single_source_dijkstra_path_length(g, s) for s in set(sources)}
    assert_same_rows(rows_of(found), [(s, v, d) for s, to in lengths.items() for v, d in to.items()])
    hops = ra.graph.shortest_paths(edges, sources[:1], directed=directed)
    expected = nx.single_source_shortest_path_length(g, sources[0])
    assert_same_rows(rows_of(hops), [(sources[0], v, d) for v, d in expected.items()])
    expect(ra.graph.bfs(edges, sources[0], directed=directed), expected)
    near = {v: d for v, d in expected.items() if d <= 2}
    expect(ra.graph.bfs(edges, sources[0], directed=directed, max_depth=2), near)
    reached = ra.graph.reachability(edges, sources[:2], directed=directed)
    assert {v for (v,) in rows_of(reached)} == set(lengths[sources[0]]) | set(lengths[sources[1]])


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
def test_closure_is_that_of_networkx(spark: SparkSession, seed: int) -> None:
    rows, edges, _ = graphs(spark, seed)
    expected = nx.transitive_closure(nx.DiGraph(digraph(rows)), reflexive=False).edges
    assert_same_rows(rows_of(ra.graph.closure(edges)), list(expected))


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
def test_widest_paths_are_those_of_the_maximum_spanning_tree(spark: SparkSession, seed: int) -> None:
    rows, edges, _ = graphs(spark, seed)
    tree = nx.maximum_spanning_tree(digraph(rows, directed=False))
    source = rows[0][0]
    expected = []
    for v, path in nx.single_source_shortest_path(tree, source).items():
        steps = [max(d["weight"] for d in tree[a][b].values()) for a, b in pairwise(path)]
        expected += [(source, v, min(steps))] if steps else []
    assert_same_rows(rows_of(ra.graph.widest_paths(edges, source, "weight", directed=False)), expected)


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
def test_components_are_those_of_networkx(spark: SparkSession, seed: int) -> None:
    rows, edges, vertices = graphs(spark, seed)
    expected = {v: min(c) for c in nx.weakly_connected_components(digraph(rows)) for v in c}
    expect(ra.graph.connected_components(edges, vertices), expected)
    del expected[ISOLATED]
    expect(ra.graph.connected_components(edges), expected)


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
def test_pagerank_is_that_of_networkx(spark: SparkSession, seed: int) -> None:
    rows, edges, vertices = graphs(spark, seed)
    g = digraph(rows)
    plain = {
        a: nx.pagerank(digraph([(s, d, 1) for s, d, _ in rows]), alpha=a, tol=1e-13, max_iter=500) for a in (0.85, 0.5)
    }
    expect(ra.graph.pagerank(edges, vertices, tol=1e-11, max_iter=300), plain[0.85], 1e-7)
    expect(ra.graph.pagerank(edges, vertices, alpha=0.5, tol=1e-11, max_iter=300), plain[0.5], 1e-7)
    expect(
        ra.graph.pagerank(edges, vertices, weight="weight", tol=1e-11, max_iter=300),
        nx.pagerank(g, tol=1e-13, max_iter=500),
        1e-7,
    )
    wish = {rows[0][0]: 3.0, ISOLATED: 1.0}
    personal = ra.graph.pagerank(
        edges, vertices, personalization=wish | {12345: 7.0}, weight="weight", tol=1e-11, max_iter=300
    )
    expect(personal, nx.pagerank(g, personalization=wish, tol=1e-13, max_iter=500), 1e-7)


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
def test_triangles_are_those_of_networkx(spark: SparkSession, seed: int) -> None:
    rows, edges, vertices = graphs(spark, seed)
    g = simple(rows)
    expect(ra.graph.triangle_count(edges, vertices), nx.triangles(g))
    expect(ra.graph.clustering(edges, vertices), {v: float(c) for v, c in nx.clustering(g).items()})


def simple(rows: list[tuple[int, int, int]]) -> nx.Graph:
    g = nx.Graph(digraph(rows))
    g.remove_edges_from(list(nx.selfloop_edges(g)))
    return g


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("backend", STRONG)
@pytest.mark.parametrize("seed", SEEDS)
def test_strong_components_are_those_of_networkx(spark: SparkSession, seed: int, backend: str | None) -> None:
    rows, edges, vertices = graphs(spark, seed)
    expected = {v: min(c) for c in nx.strongly_connected_components(digraph(rows)) for v in c}
    expect(ra.graph.strongly_connected_components(edges, vertices, backend=backend), expected)


@pytest.mark.parametrize("few", [0, 20, 100])
def test_strong_components_of_few_edges_are_finished_in_the_driver(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    """Not at all, after a first round, or at once; ids are strings."""
    monkeypatch.setattr(components, "FEW_EDGES", few)
    names = [f"v{n}" for n in range(40)]
    pairs = [(names[n], names[n + 1 if n % 4 < 3 else n - 3]) for n in range(40)]  # circles of four
    pairs += [(names[n], names[n + 1]) for n in range(3, 39, 4)] + [("b", "a"), ("a", "b")]
    expected = {v: min(c) for c in nx.strongly_connected_components(nx.DiGraph(pairs)) for v in c}
    edges = spark.createDataFrame(pairs, "src string, dst string")
    assert dict(rows_of(ra.graph.strongly_connected_components(edges))) == expected


def test_strong_components_in_this_process_are_those_of_networkx() -> None:
    for seed in range(300):
        dice = random.Random(seed)  # noqa: S311 - reproducible
        n = dice.randrange(1, 14)
        edges = [(dice.randrange(n), dice.randrange(n)) for _ in range(dice.randrange(30))]
        expected = [sorted(c) for c in nx.strongly_connected_components(nx.DiGraph(edges)) if len(c) > 1]
        assert sorted(sorted(c) for c in strong_components(edges)) == sorted(expected), edges


@pytest.mark.parametrize("backend", STRONG)
def test_a_chain_of_strong_components(spark: SparkSession, backend: str | None) -> None:
    """Thirty pairs in a row: each round takes many of them at once."""
    pairs = [(2 * i, 2 * i + 1) for i in range(30)]
    rows = [e for a, b in pairs for e in ((a, b, 1), (b, a, 1), (b, b + 1, 1))]
    expected = {v: a for a, b in pairs for v in (a, b)} | {60: 60}
    expect(ra.graph.strongly_connected_components(frame(spark, EDGES, rows), backend=backend), expected)


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
def test_cores_are_those_of_networkx(spark: SparkSession, seed: int) -> None:
    rows, edges, vertices = graphs(spark, seed)
    expect(ra.graph.k_core(edges, vertices), nx.core_number(simple(rows)))


def test_cores_of_cliques_on_a_chain(spark: SparkSession) -> None:
    """Cliques of 2, 3, ..., 9 vertices: core numbers 1 to 8."""
    g, expected = nx.Graph(), {}
    for size in range(2, 10):
        clique = range(10 * size, 11 * size)
        g.add_edges_from((a, b) for a in clique for b in clique if a < b)
        g.add_edge(10 * size, 10 * size + 10 if size < 9 else 0)
        expected |= dict.fromkeys(clique, size - 1)
    expected |= {0: 1}
    assert nx.core_number(g) == expected
    expect(ra.graph.k_core(frame(spark, EDGES, [(a, b, 1) for a, b in g.edges])), expected)


def test_cores_of_a_dense_part_in_a_sparse_graph(spark: SparkSession) -> None:
    """Numbers fall in many iterations, those of the dense part late."""
    g = nx.barabasi_albert_graph(400, 3, seed=2)
    for vertices, probability in ((60, 0.6), (150, 0.15)):
        g.add_edges_from(nx.gnp_random_graph(vertices, probability, seed=2).edges)
    expect(ra.graph.k_core(frame(spark, EDGES, [(a, b, 1) for a, b in g.edges])), nx.core_number(g))


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
def test_hubs_and_authorities_are_the_limit_of_their_definition(spark: SparkSession, seed: int) -> None:
    rows, edges, vertices = graphs(spark, seed)
    g = digraph(rows)
    hub: dict[int, float] = dict.fromkeys(g, 1.0)
    for _ in range(3000):
        authority = {v: sum(hub[u] for u, _ in g.in_edges(v)) for v in g}
        hub = {v: sum(authority[u] for _, u in g.out_edges(v)) for v in g}
        hub = {v: h / sum(hub.values()) for v, h in hub.items()}
    whole = sum(authority.values())
    found = ra.graph.hits(edges, vertices, tol=1e-11, max_iter=3000)
    assert found.columns == ["id", "hub", "authority"]
    assert {v: h for v, h, _ in rows_of(found)} == pytest.approx(hub, abs=1e-8)
    assert {v: a for v, _, a in rows_of(found)} == pytest.approx({v: a / whole for v, a in authority.items()}, abs=1e-8)


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
def test_levels_are_the_generations_of_networkx(spark: SparkSession, seed: int) -> None:
    rows = [(s, d, w) for s, d, w in random_edges(seed) if s < d]
    expected = {v: i for i, level in enumerate(nx.topological_generations(digraph(rows))) for v in level}
    vertices = frame(spark, "id bigint", [(ISOLATED,)])
    expect(ra.graph.topological_order(frame(spark, EDGES, rows), vertices), expected)


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
def test_quantities_are_sums_over_paths(spark: SparkSession, seed: int) -> None:
    rows = [(s, d, w) for s, d, w in random_edges(seed) if s < d]
    edges = frame(spark, EDGES, rows)
    source = min(s for s, _, _ in rows)
    needed, cost = {source: 1}, {v: float(v) for v in digraph(rows) if v != ISOLATED}
    for s, d, w in sorted(rows):
        if s in needed:
            needed[d] = needed.get(d, 0) + needed[s] * w
    for s, d, w in sorted(rows, reverse=True):
        cost[s] += w * cost[d]
    found = ra.graph.bill_of_materials(edges, source, "weight")
    assert_same_rows(rows_of(found), [(source, v, q) for v, q in needed.items()])
    expect(ra.graph.roll_up(edges, {v: v for v in cost}, "weight"), cost)


def test_values_keep_whole_numbers(spark: SparkSession) -> None:
    large = 9_007_199_254_740_993  # 2^53 + 1, no double
    edges = frame(spark, "src bigint, dst bigint, quantity bigint", [(1, 2, 1), (1, 3, 2)])
    prices = frame(spark, "id bigint, value int", [(2, 5), (3, 7)])
    for values, expected in (({2: large}, {1: large, 2: large, 3: 0}), (prices, {1: 19, 2: 5, 3: 7})):
        found = ra.graph.roll_up(edges, values)
        assert found.dtypes == [("id", "bigint"), ("value", "bigint")]
        expect(found, expected)
    assert ra.graph.roll_up(edges, {2: large, 3: 0.5}).dtypes[1] == ("value", "double")


def test_a_cycle_has_no_order_and_no_quantities(spark: SparkSession) -> None:
    edges = frame(spark, EDGES, [(1, 2, 2), (2, 3, 1), (3, 2, 1)])
    for circular in (
        ra.graph.topological_order(edges),
        ra.graph.bill_of_materials(edges, 1, "weight"),
        ra.graph.roll_up(edges, {2: 1.0}, "weight"),
    ):
        with pytest.raises(Exception, match=r"PARALAGG_NO_FIXPOINT.*cycle"):
            circular.collect()


def propagated(rows: list[tuple[int, int, int]], rounds: int) -> dict[int, int]:
    """Return labels by the rules of CDLP: all at once, the least of the most frequent labels."""
    g = digraph(rows)
    label = {v: v for v in g}
    for _ in range(rounds):
        votes = {v: [label[u] for u in [*(s for s, _ in g.in_edges(v)), *(d for _, d in g.out_edges(v))]] for v in g}
        label = {v: min(votes[v], key=lambda x, v=v: (-votes[v].count(x), x)) if votes[v] else label[v] for v in g}
    return label


@pytest.mark.rotates(runs=5)
@pytest.mark.parametrize("seed", SEEDS)
def test_labels_follow_the_rules_of_cdlp(spark: SparkSession, seed: int) -> None:
    rows, edges, vertices = graphs(spark, seed)
    for rounds in (1, 4):
        expect(ra.graph.label_propagation(edges, vertices, max_iter=rounds), propagated(rows, rounds))


ALL = {
    "shortest_paths": lambda e, v: ra.graph.shortest_paths(e, v, "weight"),
    "bfs": ra.graph.bfs,
    "widest_paths": lambda e, v: ra.graph.widest_paths(e, v, "weight"),
    "reachability": ra.graph.reachability,
    "closure": lambda e, _: ra.graph.closure(e),
    "connected_components": ra.graph.connected_components,
    "strongly_connected_components": ra.graph.strongly_connected_components,
    "pagerank": ra.graph.pagerank,
    "hits": ra.graph.hits,
    "k_core": ra.graph.k_core,
    "bill_of_materials": lambda e, v: ra.graph.bill_of_materials(e.where("weight != 2"), v, "weight"),
    "topological_order": lambda e, v: ra.graph.topological_order(e.where("weight != 2"), v),
    "label_propagation": ra.graph.label_propagation,
    "triangle_count": ra.graph.triangle_count,
    "clustering": ra.graph.clustering,
}


SMALL = [(1, 2, 4), (2, 3, 1), (3, 1, 2), (3, 4, 5)]
"""Edges with one cycle, which the algorithms for acyclic graphs leave out."""


def small(spark: SparkSession, name: str) -> DataFrame:
    return ALL[name](frame(spark, EDGES, SMALL), frame(spark, "id bigint", [(1,)]))


@pytest.mark.parametrize("name", ALL)
def test_an_empty_graph_gives_no_rows(spark: SparkSession, name: str) -> None:
    empty = ALL[name](frame(spark, EDGES, []), frame(spark, "id bigint", []))
    assert rows_of(empty) == []


@pytest.mark.parametrize("name", ALL)
def test_ids_may_be_texts_and_columns_have_other_names(spark: SparkSession, name: str) -> None:
    numbers = small(spark, name)
    texts = frame(spark, "src string, dst string, weight bigint", [(f"n{s}", f"n{d}", w) for s, d, w in SMALL])
    found = ALL[name](texts, frame(spark, "node string", [("n1",)]))
    ids = {"source", "id", "src", "dst", "component", "label"}
    columns = [c in ids for c in numbers.columns]
    expected = [tuple(f"n{v}" if is_id else v for v, is_id in zip(r, columns, strict=True)) for r in rows_of(numbers)]
    assert found.columns == numbers.columns
    assert_same_rows(rows_of(found), expected)


def test_columns_are_named_by_arguments(spark: SparkSession) -> None:
    edges = frame(spark, "`from` bigint, `to` bigint", [(1, 2)])
    assert rows_of(ra.graph.closure(edges, src="from", dst="to")) == [(1, 2)]
    assert rows_of(ra.graph.bfs(edges, 2, src="to", dst="from")) == [(2, 0), (1, 1)]


def test_a_weight_is_null_or_negative(spark: SparkSession) -> None:
    edges = frame(spark, EDGES, [(1, 2, 5), (1, 3, 9), (3, 2, -6), (2, 4, None)])
    assert_same_rows(rows_of(ra.graph.shortest_paths(edges, 1, "weight")), [(1, 1, 0), (1, 2, 3), (1, 3, 9)])
    with pytest.raises(Exception, match="a weight is negative"):
        ra.graph.pagerank(edges, weight="weight").collect()
    circle = edges.union(frame(spark, EDGES, [(2, 3, 1)]))
    with pytest.raises(Exception, match="PARALAGG_NO_FIXPOINT"):
        ra.graph.shortest_paths(circle, 1, "weight").collect()


def test_types_of_distances_follow_the_weights(spark: SparkSession) -> None:
    edges = frame(spark, "src int, dst int, i int, f float", [(1, 2, 3, 0.5)])
    for weight, expected in (("i", "bigint"), ("f", "double")):
        found = ra.graph.shortest_paths(edges, 1, weight)
        assert dict(found.dtypes) == {"source": "int", "id": "int", "distance": expected}


@pytest.mark.rotates(runs=2)
@pytest.mark.parametrize("backend", ["local", "dataframe"])
def test_other_executors_give_the_same_rows(spark: SparkSession, backend: str) -> None:
    _, edges, vertices = graphs(spark, 1)
    for algorithm in (
        lambda b: ra.graph.shortest_paths(edges, 1, "weight", backend=b),
        lambda b: ra.graph.connected_components(edges, vertices, backend=b),
        lambda b: ra.graph.pagerank(edges, vertices, tol=None, max_iter=3, backend=b),
        lambda b: ra.graph.label_propagation(edges, vertices, max_iter=2, backend=b),
    ):
        assert_same_rows(rows_of(algorithm(backend)), rows_of(algorithm("spark")))


def test_a_wrong_argument_is_an_error_at_the_call(spark: SparkSession) -> None:
    edges = frame(spark, EDGES, [(1, 2, 3)])
    wrong: list[tuple[str, str, Any]] = [
        ("PARALAGG_GRAPH_COLUMN", "did you mean 'weight'", lambda: ra.graph.shortest_paths(edges, 1, "wieght")),
        ("PARALAGG_GRAPH_COLUMN", "no column 'from'", lambda: ra.graph.closure(edges, src="from")),
        ("PARALAGG_GRAPH_COLUMN", "is string", lambda: ra.graph.bfs(edges, frame(spark, "id string", []))),
        ("PARALAGG_GRAPH_COLUMN", "not a number", lambda: ra.graph.pagerank(texts(spark), weight="dst")),
        ("PARALAGG_BAD_OPTION", "alpha=1", lambda: ra.graph.pagerank(edges, alpha=1)),
        ("PARALAGG_BAD_OPTION", "edges is a list", lambda: ra.graph.closure([(1, 2)])),
        ("PARALAGG_BAD_OPTION", "sources is a NoneType", lambda: ra.graph.bfs(edges, None)),
        ("PARALAGG_BAD_OPTION", "max_iter=0", lambda: ra.graph.label_propagation(edges, max_iter=0)),
    ]
    for code, message, call in wrong:
        with pytest.raises(UsageError, match=message) as problem:
            call()
        assert problem.value.code == code


def texts(spark: SparkSession) -> DataFrame:
    return frame(spark, "src string, dst string", [("a", "b")])


NAN = float("nan")


def test_nan_is_a_weight_and_an_id(spark: SparkSession) -> None:
    """Only nulls are ignored."""
    schema = "src double, dst double, w double"
    edges = frame(spark, schema, [(1.0, NAN, 2.0), (NAN, 3.0, 1.0), (3.0, None, 1.0)])
    found = {str(r.id): r.distance for r in ra.graph.shortest_paths(edges, 1.0, "w").collect()}
    assert found == {"1.0": 0.0, "nan": 2.0, "3.0": 3.0}
    assert {r.component for r in ra.graph.connected_components(edges).collect()} == {1.0}
    wrong = frame(spark, schema, [(1.0, 2.0, NAN)])
    for call in (lambda: ra.graph.shortest_paths(wrong, 1.0, "w"), lambda: ra.graph.pagerank(wrong, weight="w")):
        with pytest.raises(Exception, match="PARALAGG_ASSUMPTION_VIOLATED"):
            call().collect()


@pytest.mark.parametrize("sources", [1.9, [True], "x", [1, "x"], 1 << 40, [1.0]])
def test_ids_that_a_cast_would_change_are_refused(spark: SparkSession, sources: object) -> None:
    edges = spark.sql("SELECT 1 AS src, 2 AS dst")
    with pytest.raises(ra.UsageError, match="but the ids of the edges are int") as e:
        ra.graph.reachability(edges, sources)
    assert (e.value.code, e.value.place) == ("PARALAGG_GRAPH_COLUMN", "sources")


@pytest.mark.parametrize("values", [{2.9: 5}, {1: "a"}, {1: None}, {None: 3.0}])
def test_values_that_are_no_numbers_of_ids_are_refused(spark: SparkSession, values: dict[object, object]) -> None:
    with pytest.raises(ra.UsageError):
        ra.graph.roll_up(spark.sql("SELECT 1 AS src, 2 AS dst, 1 AS quantity"), values)


@pytest.mark.parametrize(
    ("call", "argument"),
    [
        (lambda e: ra.graph.pagerank(e, alpha="a"), "alpha"),
        (lambda e: ra.graph.pagerank(e, max_iter=0), "max_iter"),
        (lambda e: ra.graph.pagerank(e, max_iter=1.5), "max_iter"),
        (lambda e: ra.graph.pagerank(e, tol=0), "tol"),
        (lambda e: ra.graph.hits(e, max_iter=-1), "max_iter"),
        (lambda e: ra.graph.hits(e, tol=float("nan")), "tol"),
        (lambda e: ra.graph.label_propagation(e, max_iter="a"), "max_iter"),
        (lambda e: ra.graph.bfs(e, 1, max_depth=0), "max_depth"),
    ],
)
def test_wrong_numbers_are_named_as_they_were_given(
    spark: SparkSession, call: Callable[[DataFrame], DataFrame], argument: str
) -> None:
    with pytest.raises(ra.UsageError, match=f"^PARALAGG_BAD_OPTION: {argument}=") as e:
        call(spark.sql("SELECT 1 AS src, 2 AS dst"))
    assert e.value.place == argument


def test_a_negative_personalization_fails(spark: SparkSession) -> None:
    edges = frame(spark, EDGES, [(1, 2, 3)])
    with pytest.raises(Exception, match=r"PARALAGG_ASSUMPTION_VIOLATED.*a personalization is negative"):
        ra.graph.pagerank(edges, personalization={1: -1, 2: 3}).collect()


def test_a_personalization_without_a_vertex_of_the_graph_fails(spark: SparkSession) -> None:
    edges = frame(spark, EDGES, [(1, 2, 3)])
    with pytest.raises(Exception, match="no vertex of the graph has a positive personalization"):
        ra.graph.pagerank(edges, personalization={7: 1.0}).collect()


GRAPHALYTICS = {
    "BFS": lambda e, _, p, d: ra.graph.bfs(e, p["source"], directed=d),
    "SSSP": lambda e, _, p, d: ra.graph.shortest_paths(e, p["source"], "weight", directed=d).select("id", "distance"),
    "WCC": lambda e, v, _, __: ra.graph.connected_components(e, v),
    "PR": lambda e, v, p, d: ra.graph.pagerank(
        e, v, alpha=p["damping"], tol=None, max_iter=p["iterations"], directed=d
    ),
    "CDLP": lambda e, v, p, _: ra.graph.label_propagation(e, v, max_iter=p["iterations"]),
    "LCC": lambda e, v, _, d: ra.graph.clustering(e, v, directed=d),
}


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/conformance is absent (it is not part of the project)")
@pytest.mark.parametrize("algorithm", GRAPHALYTICS)
@pytest.mark.parametrize("kind", ["directed", "undirected"])
def test_the_examples_of_graphalytics(spark: SparkSession, algorithm: str, kind: str) -> None:
    folder = DATA / "ldbc" / f"example-{kind}-{algorithm}"
    case = json.loads((folder / "case.json").read_text())
    weighted = algorithm == "SSSP"
    edges = read(folder / "edges.tsv", int, int, *([float] if weighted else []))
    schema = "src bigint, dst bigint" + (", weight double" if weighted else "")
    vertices = read(folder / "vertices.tsv", int)
    inputs = frame(spark, schema, edges), frame(spark, "id bigint", [v[:1] for v in vertices])
    found = dict(rows_of(GRAPHALYTICS[algorithm](*inputs, case["params"], case["directed"])))
    unreached = {"BFS": 2**63 - 1, "SSSP": math.inf}
    expected = {int(v): float(x) for v, x in read(folder / "expected.tsv", str, str)}
    assert {v: found.get(v, unreached.get(algorithm)) for v in expected} == pytest.approx(expected, rel=1e-4)
    assert found.keys() <= expected.keys()


def real_graph(spark: SparkSession, name: str) -> DataFrame:
    rows = read(DATA / "graphs" / f"{name}.tsv.gz", int, int, float)
    schema = "src bigint, dst bigint" + (", weight double" if len(rows[0]) > 2 else "")
    return frame(spark, schema, rows)


REAL = {
    "kcore wiki-Vote": lambda e, _: ra.graph.k_core(e),
    "kcore ca-GrQc": lambda e, _: ra.graph.k_core(e),
    "wcc email-Eu-core": lambda e, _: ra.graph.connected_components(e),
    "pagerank wiki-Vote": lambda e, _: ra.graph.pagerank(e.distinct(), tol=1e-10, max_iter=300),
    "pagerank email-Eu-core": lambda e, _: ra.graph.pagerank(e.distinct(), tol=1e-10, max_iter=300),
    "bfs p2p-Gnutella08": lambda e, p: ra.graph.bfs(e, p["source"]),
    "sssp osm-helsinki-cm": lambda e, p: ra.graph.shortest_paths(e, p["source"], "weight").select("id", "distance"),
    "widest celegansneural": lambda e, p: ra.graph.widest_paths(e, p["source"], "weight").select("id", "width"),
    "dag_longest_path go-bp": lambda e, _: ra.graph.topological_order(e, src="dst", dst="src"),
}


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/conformance is absent (it is not part of the project)")
@pytest.mark.slow("the first query on a real graph compiles its code")
@pytest.mark.parametrize("case", REAL)
def test_real_graphs_have_the_published_results(spark: SparkSession, case: str) -> None:
    algorithm, name = case.split()
    index = json.loads((DATA / "reference" / "_index.json").read_text())
    params = next(r["params"] for r in index if (r["graph"], r["algo"]) == (name, algorithm))
    found = dict(rows_of(REAL[case](real_graph(spark, name), params)))
    expected = {v: float(x) for v, x in read(DATA / "reference" / name / f"{algorithm}.tsv.gz", int, str)}
    assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.skipif(not DATA.is_dir(), reason="../shared/conformance is absent (it is not part of the project)")
def test_strong_components_of_a_real_graph(spark: SparkSession) -> None:
    edges = real_graph(spark, "wiki-Vote")
    g = nx.DiGraph([(s, d) for s, d in rows_of(edges)])
    expected = {v: min(c) for c in nx.strongly_connected_components(g) for v in c}
    assert dict(rows_of(ra.graph.strongly_connected_components(edges))) == expected


def read(path: Path, *types: type) -> list[tuple[Any, ...]]:
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as file:
        return [tuple(t(c) for t, c in zip(types, r, strict=False)) for r in csv.reader(file, delimiter="\t")]
