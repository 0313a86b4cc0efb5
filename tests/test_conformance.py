"""Real graphs and results that no one here wrote, from ``../shared/conformance``; skipped where that is absent."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import frame, rows_of

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DATA = Path(__file__).parents[2] / "shared" / "conformance"
pytestmark = [
    pytest.mark.skipif(not DATA.is_dir(), reason="../shared/conformance is absent (it is not part of the project)"),
    pytest.mark.rotates(runs=3),
]

UNREACHED = 9223372036854775807
DAMPING = 0.85


def index() -> list[dict[str, Any]]:
    """Graph, algorithm and parameters of every reference; none where there is no data."""
    path = DATA / "reference" / "_index.json"
    return json.loads(path.read_text()) if path.is_file() else []


def cases(algorithm: str, *graphs: str) -> list[Any]:
    found = [r for r in index() if r["algo"] == algorithm and r["graph"] in graphs]
    return [pytest.param(r["graph"], r["params"], id=r["graph"]) for r in found]


def edges_of(spark: SparkSession, graph: str, *, undirected: bool = False) -> DataFrame:
    path = DATA / "graphs" / f"{graph}.tsv.gz"
    with gzip.open(path, "rt") as f:
        weighted = len(f.readline().split("\t")) > 2
    schema = "src bigint, dst bigint" + (", w double" if weighted else "")
    edges = spark.read.csv(str(path), sep="\t", schema=schema)
    if not weighted:
        edges = edges.withColumn("w", F.lit(1.0))
    return edges.union(edges.select("dst", "src", "w")) if undirected else edges


def reference(graph: str, algorithm: str) -> dict[int, float]:
    with gzip.open(DATA / "reference" / graph / f"{algorithm}.tsv.gz", "rt") as f:
        return {int(v): float(x) for v, x in csv.reader(f, delimiter="\t")}


def vertices_of(edges: DataFrame) -> DataFrame:
    return edges.select(F.col("src").alias("node")).union(edges.select("dst")).distinct()


def components(vertices: DataFrame, edges: DataFrame, *, backend: str) -> DataFrame:
    both = edges.select("src", "dst").union(edges.select("dst", "src"))
    return vertices.select("node", F.col("node").alias("label")).recursive_agg(
        "node",
        {"label": "min"},
        step=lambda c: c.join(both, c.node == both.src).select(both.dst.alias("node"), c.label),
        backend=backend,
    )


def distances(spark: SparkSession, edges: DataFrame, source: int, *, backend: str) -> DataFrame:
    return frame(spark, "node bigint, dist double", [(source, 0.0)]).recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.w).alias("dist")
        ),
        assume="w >= 0",
        backend=backend,
    )


def compare(found: DataFrame, expected: dict[int, float], rel: float = 1e-9) -> None:
    rows = dict(rows_of(found))
    assert rows.keys() == expected.keys()
    wrong = {v: (x, expected[v]) for v, x in rows.items() if abs(x - expected[v]) > rel * max(1.0, abs(expected[v]))}
    assert not wrong


@pytest.mark.parametrize(
    ("graph", "params"), cases("wcc", "nk-karate", "ca-GrQc", "wiki-Vote", "osm-helsinki-cm", "email-Enron")
)
def test_components(spark: SparkSession, graph: str, params: dict[str, Any]) -> None:
    edges = edges_of(spark, graph)
    found = components(vertices_of(edges), edges, backend="spark")
    compare(found, reference(graph, "wcc"))
    assert found.select("label").distinct().count() == params["components"]


@pytest.mark.parametrize(
    ("graph", "params"), cases("bfs", "nk-karate", "wiki-Vote", "p2p-Gnutella08", "soc-Slashdot0902", "bd-grid150")
)
def test_hops(spark: SparkSession, graph: str, params: dict[str, Any]) -> None:
    edges = edges_of(spark, graph, undirected=params["undirected"]).withColumn("w", F.lit(1.0))
    compare(distances(spark, edges, params["source"], backend="spark"), reference(graph, "bfs"))


@pytest.mark.parametrize(
    ("graph", "params"),
    cases("sssp", "celegansneural", "netscience", "openflights-routes-km", "osm-helsinki-cm", "osm-andorra-cm"),
)
def test_shortest_paths(spark: SparkSession, graph: str, params: dict[str, Any]) -> None:
    edges = edges_of(spark, graph, undirected=params["undirected"])
    # The reference has five or six digits of weights like 3.58333.
    compare(distances(spark, edges, params["source"], backend="spark"), reference(graph, "sssp"), rel=1e-5)


@pytest.mark.parametrize(
    ("graph", "params"), cases("widest", "celegansneural", "netscience", "openflights-routes-km", "osm-andorra-cm")
)
def test_widest_paths(spark: SparkSession, graph: str, params: dict[str, Any]) -> None:
    edges = edges_of(spark, graph, undirected=graph == "netscience")
    width = frame(spark, "node bigint, width double", [(params["source"], float("inf"))]).recursive_agg(
        "node",
        {"width": "max"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), F.least(d.width, edges.w).alias("width")
        ),
        backend="spark",
    )
    compare(width.where(F.col("node") != params["source"]), reference(graph, "widest"), rel=1e-5)


@pytest.mark.parametrize(
    ("graph", "params"), cases("pagerank", "nk-karate", "celegansneural", "p2p-Gnutella08", "wiki-Vote")
)
def test_pagerank_with_dangling_mass_by_a_second_relation(
    spark: SparkSession, graph: str, params: dict[str, Any]
) -> None:
    edges = edges_of(spark, graph, undirected="both directions" in params["edges"]).select("src", "dst").distinct()
    vertices = vertices_of(edges).localCheckpoint()
    n = vertices.count()
    links = edges.join(edges.groupBy("src").agg(F.count("*").alias("degree")), "src").select(
        "src", "dst", (F.lit(DAMPING) / F.col("degree")).alias("share")
    )
    sinks = vertices.join(edges, vertices.node == edges.src, "left_anti")
    all_ = vertices.select(F.col("node").alias("vertex"))
    found = ra.recursive(
        {
            "rank": ra.relation(
                vertices.withColumn("rank", F.lit((1 - DAMPING) / n)), keys="node", aggs={"rank": "sum"}
            ),
            "dangling": ra.relation(frame(spark, "mass double", []), keys=[], aggs={"mass": "sum"}),
        },
        step=lambda rank, dangling: {
            "rank": rank.join(links, rank.node == links.src)
            .select(links.dst.alias("node"), (rank.rank * links.share).alias("rank"))
            .union(all_.crossJoin(dangling).select("vertex", dangling.mass * F.lit(DAMPING / n))),
            "dangling": rank.join(sinks, "node", "left_semi").select(F.col("rank").alias("mass")),
        },
        tolerance=1e-11,
        backend="spark",
    )
    expected = reference(graph, "pagerank")
    rows = dict(rows_of(found["rank"]))
    assert rows.keys() == expected.keys()
    assert sum(abs(rows[v] - x) for v, x in expected.items()) < 1e-9
    assert abs(sum(rows.values()) - 1) < 1e-9


@pytest.mark.parametrize(("graph", "params"), cases("dag_pathcount_to_sinks", "go-bp", "bd-tree11", "wordnet-hypernym"))
def test_path_counts_in_dags(spark: SparkSession, graph: str, params: dict[str, Any]) -> None:
    edges = edges_of(spark, graph)
    sinks = vertices_of(edges).join(edges, F.col("node") == F.col("src"), "left_anti")
    found = sinks.withColumn("paths", F.lit(1)).recursive_agg(
        "node",
        {"paths": "sum"},
        step=lambda d: d.join(edges, d.node == edges.dst).select(edges.src.alias("node"), d.paths),
        backend="spark",
    )
    compare(found, reference(graph, "dag_pathcount_to_sinks"))
    assert found.agg(F.max("paths")).first() == (params["max"],)


@pytest.mark.parametrize(("graph", "params"), cases("dag_longest_path", "go-bp", "bd-grid150", "wordnet-hypernym"))
def test_longest_paths_in_dags(spark: SparkSession, graph: str, params: dict[str, Any]) -> None:
    edges = edges_of(spark, graph)
    sinks = vertices_of(edges).join(edges, F.col("node") == F.col("src"), "left_anti")
    found = sinks.withColumn("length", F.lit(0)).recursive_agg(
        "node",
        {"length": "max"},
        step=lambda d: d.join(edges, d.node == edges.dst).select(
            edges.src.alias("node"), (d.length + 1).alias("length")
        ),
        backend="spark",
    )
    compare(found, reference(graph, "dag_longest_path"))
    assert found.agg(F.max("length")).first() == (params["max"],)


@pytest.mark.parametrize(
    ("graph", "pairs"),
    [
        ("email-Eu-core", 793_283),
        ("bd-tree11", 805_001),
        ("debian-bookworm-depends", 3_385_591),
        ("wiki-Vote", 11_947_132),
        ("p2p-Gnutella08", 13_148_244),
    ],
)
def test_closure_sizes(spark: SparkSession, graph: str, pairs: int) -> None:
    edges = edges_of(spark, graph).select("src", "dst")
    closure = edges.toDF("x", "y").recursive_agg(
        ["x", "y"],
        step=lambda r: r.join(edges, r.y == edges.src).select(r.x, edges.dst.alias("y")),
        backend="spark",
    )
    assert closure.count() == pairs


@pytest.mark.rotates(runs=3, turn=2)
def test_closure_over_names_is_the_one_over_ids(spark: SparkSession) -> None:
    graph = "debian-bookworm-depends"
    path = DATA / "graphs" / f"{graph}.labels.tsv.gz"
    labels = spark.read.csv(str(path), sep="\t", schema="id bigint, name string, size bigint", quote="")
    sources, targets = labels.select("id", "name").toDF("src", "x"), labels.select("id", "name").toDF("dst", "y")
    ids = edges_of(spark, graph).select("src", "dst")

    def named(pairs: DataFrame) -> DataFrame:
        return pairs.toDF("src", "dst").join(sources, "src").join(targets, "dst").select("x", "y")

    text = "path(x, y) :- edge(x, y). path(x, y) :- path(x, m), edge(m, y)."
    by_id = ra.datalog(spark, text, edge=ids.toDF("x", "y"), backend="spark")["path"]
    by_name = ra.datalog(spark, text, edge=named(ids), backend="spark")["path"]
    digest = F.count("*"), F.sum(F.xxhash64("x", "y").cast("decimal(38,0)"))
    assert by_name.agg(*digest).first() == named(by_id).agg(*digest).first()
    assert by_name.count() == 3_385_591


def test_gene_ontology_closure_is_the_published_one(spark: SparkSession) -> None:
    path = DATA / "gene_ontology" / "go_bp_offspring.tsv.gz"
    published = spark.read.csv(str(path), sep="\t", schema="y bigint, x bigint")  # ancestor, descendant
    edges = edges_of(spark, "go-bp").select("src", "dst")
    closure = edges.toDF("x", "y").recursive_agg(
        ["x", "y"],
        step=lambda r: r.join(edges, r.y == edges.src).select(r.x, edges.dst.alias("y")),
        backend="spark",
    )
    total, common = closure.count(), closure.join(published, ["x", "y"], "left_semi").count()
    assert (total, common, published.count()) == (630_849, 630_849, 630_849)


def ldbc(spark: SparkSession, name: str) -> tuple[dict[str, Any], DataFrame, DataFrame, dict[int, float]]:
    folder = DATA / "ldbc" / name
    case = json.loads((folder / "case.json").read_text())
    lines = [line.split() for line in (folder / "edges.tsv").read_text().splitlines()]
    edges = [(int(a), int(b), float(w[0]) if w else 1.0) for a, b, *w in lines]
    if not case["directed"]:
        edges += [(b, a, w) for a, b, w in edges]
    vertices = [(int(v),) for v in (folder / "vertices.tsv").read_text().split()]
    expected = dict(line.split() for line in (folder / "expected.tsv").read_text().splitlines())
    return (
        case,
        frame(spark, "node bigint", vertices),
        frame(spark, "src bigint, dst bigint, w double", edges),
        {int(v): float(x) for v, x in expected.items()},
    )


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
@pytest.mark.parametrize("kind", ["directed", "undirected"])
class TestLdbc:
    """LDBC Graphalytics' example graphs."""

    def test_bfs(self, spark: SparkSession, kind: str, backend: str) -> None:
        case, _, edges, expected = ldbc(spark, f"example-{kind}-BFS")
        edges = edges.withColumn("w", F.lit(1.0))
        found = distances(spark, edges, case["params"]["source"], backend=backend)
        compare(found, {v: x for v, x in expected.items() if x < UNREACHED})

    def test_sssp(self, spark: SparkSession, kind: str, backend: str) -> None:
        case, _, edges, expected = ldbc(spark, f"example-{kind}-SSSP")
        found = distances(spark, edges, case["params"]["source"], backend=backend)
        compare(found, {v: x for v, x in expected.items() if x != float("inf")}, rel=1e-4)

    def test_wcc(self, spark: SparkSession, kind: str, backend: str) -> None:
        _, vertices, edges, expected = ldbc(spark, f"example-{kind}-WCC")
        found = dict(rows_of(components(vertices, edges, backend=backend)))
        assert found.keys() == expected.keys()
        assert len(set(found.values())) == len(set(expected.values())) == len({(found[v], expected[v]) for v in found})

    def test_pagerank(self, spark: SparkSession, kind: str, backend: str) -> None:
        case, vertices, edges, expected = ldbc(spark, f"example-{kind}-PR")
        n, damping = case["V"], case["params"]["damping"]
        links = edges.join(edges.groupBy("src").agg(F.count("*").alias("degree")), "src").select(
            "src", "dst", (F.lit(damping) / F.col("degree")).alias("share")
        )
        # The mass of a sink goes to every vertex in the same round, so it is a link to each.
        sinks = vertices.join(edges, vertices.node == edges.src, "left_anti").withColumnRenamed("node", "src")
        everywhere = vertices.withColumnRenamed("node", "dst")
        links = links.union(sinks.crossJoin(everywhere).select("src", "dst", F.lit(damping / n)))
        found = vertices.withColumn("rank", F.lit((1 - damping) / n)).recursive_agg(
            "node",
            {"rank": "sum"},
            step=lambda r: r.join(links, r.node == links.src).select(
                links.dst.alias("node"), (r.rank * links.share).alias("rank")
            ),
            initial=vertices.withColumn("rank", F.lit(1 / n)),
            max_iterations=case["params"]["iterations"],
            on_limit="return",
            backend=backend,
        )
        compare(found, expected, rel=1e-9)
