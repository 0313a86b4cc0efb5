"""DuckDB's ``USING KEY`` as an oracle: the same recursion, said in its SQL, over the same random graph.

The aggregate in its key clause keeps the best value of each key, and only improved rows go on: the fixpoint of a
lattice.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import assert_same_rows, frame, rows_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

duckdb = pytest.importorskip("duckdb", reason="Python 3.10 does not get it")

EDGES = "src bigint, dst bigint, w bigint"


def graph(seed: int, vertices: int = 300, degree: int = 4) -> list[tuple[int, int, int]]:
    """Random edges with weights of 1 to 100, hubs among them."""
    dice = random.Random(seed)  # noqa: S311 - a test's dice

    def vertex() -> int:
        return int(vertices * dice.random() ** 2)

    return [(vertex(), vertex(), dice.randint(1, 100)) for _ in range(vertices * degree)]


def in_duckdb(edges: list[tuple[int, int, int]], query: str) -> list[tuple[int, ...]]:
    with duckdb.connect() as db:
        db.execute(f"CREATE TABLE edges ({EDGES})")
        db.executemany("INSERT INTO edges VALUES (?, ?, ?)", edges)
        return db.execute(query).fetchall()


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
@pytest.mark.parametrize("seed", [1, 2])
def test_shortest_paths(spark: SparkSession, seed: int, backend: str) -> None:
    expected = in_duckdb(
        graph(seed),
        """
        WITH RECURSIVE d(node, dist) USING KEY (node, min(dist)) AS (
            SELECT 0::BIGINT, 0::BIGINT
            UNION SELECT e.dst, d.dist + e.w FROM d JOIN edges e ON d.node = e.src)
        SELECT node, dist FROM d
        """,
    )
    assert len(expected) > 200
    e = frame(spark, EDGES, graph(seed))
    found = frame(spark, "node bigint, dist bigint", [(0, 0)]).recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node"), (d.dist + e.w).alias("dist")),
        backend=backend,
    )
    assert_same_rows(rows_of(found), expected)


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_widest_paths(spark: SparkSession, backend: str) -> None:
    expected = in_duckdb(
        graph(3),
        """
        WITH RECURSIVE d(node, width) USING KEY (node, max(width)) AS (
            SELECT 0::BIGINT, 1000::BIGINT
            UNION SELECT e.dst, least(d.width, e.w) FROM d JOIN edges e ON d.node = e.src)
        SELECT node, width FROM d
        """,
    )
    e = frame(spark, EDGES, graph(3))
    found = frame(spark, "node bigint, width bigint", [(0, 1000)]).recursive_agg(
        "node",
        {"width": "max"},
        step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node"), F.least(d.width, e.w).alias("width")),
        backend=backend,
    )
    assert_same_rows(rows_of(found), expected)


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_components(spark: SparkSession, backend: str) -> None:
    edges = graph(4, vertices=400, degree=1)
    expected = in_duckdb(
        edges,
        """
        WITH RECURSIVE links AS (SELECT src, dst FROM edges UNION ALL SELECT dst, src FROM edges),
        c(node, label) USING KEY (node, min(label)) AS (
            SELECT src, src FROM links
            UNION SELECT b.dst, c.label FROM c JOIN links b ON c.node = b.src)
        SELECT node, label FROM c
        """,
    )
    assert len({label for _, label in expected}) > 5

    def both(e: DataFrame) -> DataFrame:
        return e.select("src", "dst").union(e.select("dst", "src"))

    links = both(frame(spark, EDGES, edges))
    found = links.select(F.col("src").alias("node"), F.col("src").alias("label")).recursive_agg(
        "node",
        {"label": "min"},
        step=lambda c: c.join(links, c.node == links.src).select(links.dst.alias("node"), c.label),
        backend=backend,
    )
    assert_same_rows(rows_of(found), expected)


def test_closure(spark: SparkSession) -> None:
    edges = graph(5, vertices=120, degree=2)
    expected = in_duckdb(
        edges,
        """
        WITH RECURSIVE r(x, y) AS (
            SELECT src, dst FROM edges
            UNION SELECT r.x, e.dst FROM r JOIN edges e ON r.y = e.src)
        SELECT x, y FROM r
        """,
    )
    e = frame(spark, EDGES, edges)
    found = e.select(F.col("src").alias("x"), F.col("dst").alias("y")).recursive_agg(
        ["x", "y"],
        step=lambda r: r.join(e, r.y == e.src).select(r.x, e.dst.alias("y")),
        backend="spark",
    )
    assert_same_rows(rows_of(found), expected)
