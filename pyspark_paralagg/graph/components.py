"""Connected components: the least id that reaches a vertex; strongly connected ones in rounds of two recursions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import recursive_agg
from pyspark_paralagg.graph.edges import SEVERAL, all_ids, edges_of, ends_of, kept, unexplained, vertices_of
from pyspark_paralagg.graph.small import strong_components
from pyspark_paralagg.program.aggregators import MinBy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

FEW_EDGES = 1 << 14
"""So many edges are finished in this process: a tenth of a second, where a round takes one or two."""
_PLAIN_TYPES = {"tinyint", "smallint", "int", "bigint", "string", "date"}
"""Ids of these types are equal in Python where they are in Spark."""


def connected_components(
    edges: DataFrame,
    vertices: DataFrame | None = None,
    *,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``id, component``: the least id of the (weakly) connected component of each vertex.

    >>> ra.graph.connected_components(edges, vertices).groupBy("component").count().show()   # doctest: +SKIP

    edges
        One row an edge, with the columns ``src`` and ``dst``; the direction has no meaning. A row with a null end is
        ignored.
    vertices
        A DataFrame with a column ``id`` (or with one column): vertices without edges are components of their own. Ends
        of edges are vertices, whether they are listed or not.
    src, dst
        Other names of the columns of ``edges``.
    backend
        The executor, as in :func:`recursive_agg`.

    Lazy. The number of iterations is at most the diameter of the widest component. A missing column, or ids of
    different types, are ``PARALAGG_GRAPH_COLUMN``.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst)

    def step(known: DataFrame) -> DataFrame:
        forward = known.join(rows, F.col("id") == F.col("src")).select(F.col("dst").alias("id"), "component")
        return forward.union(
            known.join(rows, F.col("id") == F.col("dst")).select(F.col("src").alias("id"), "component")
        )

    return recursive_agg(
        vertices_of(rows, vertices).withColumn("component", F.col("id")),
        "id",
        {"component": "min"},
        step=step,
        name="connected_components",
        backend=backend,
    )


def strongly_connected_components(
    edges: DataFrame,
    vertices: DataFrame | None = None,
    *,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``id, component``: the least id of the vertices that a vertex reaches and that reach it.

    >>> ra.graph.strongly_connected_components(edges).groupBy("component").count().show()   # doctest: +SKIP

    The arguments and errors are those of :func:`connected_components`; an edge leads from ``src`` to ``dst``.

    **Eager**: the call runs rounds until no edge is left inside of an unfinished part, and keeps their results by
    ``localCheckpoint`` until they are garbage. On Spark Connect this needs Spark 4.0. A round is two recursions. The
    first gives each vertex the root with the least hash that reaches it; the second finds the vertices with the same
    root that reach it, which are its component. Edges between different roots are dropped. The hash makes long chains
    of components short: the expected number of rounds grows with their logarithm. The last 16,384 edges are finished
    in the driver's Python, unless a ``backend`` is named.
    Source: Orzan 2004, "On Distributed Verification and Verified Distribution", chapter 5 (colouring).
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst)
    left = rows.where("src != dst").localCheckpoint()
    ids = all_ids(rows.where("src = dst"), vertices)
    roots = ids.selectExpr("id", "id AS root").where("false")
    most = FEW_EDGES if backend in {None, "auto"} and dict(left.dtypes)["src"] in _PLAIN_TYPES else 0
    few = _few(left, most)
    while few is None:
        colours = kept(_colours(left, backend))
        reaching = kept(_reaching_roots(left, colours, backend))
        ids, roots = ids.union(colours.select("id")), roots.union(reaching)
        left = _without(left, reaching)
        few = _few(left, most)
        if few is None:
            left = _of_one_colour(left, colours)
            few = _few(left, most)
    ids = ids.union(all_ids(left, None))
    pairs = [(vertex, component[0]) for component in strong_components(few) for vertex in component]
    roots = roots.union(left.sparkSession.createDataFrame(pairs, roots.schema))
    least = roots.selectExpr("id", "min(id) OVER (PARTITION BY root)")
    known = ids.selectExpr("id", "id AS component").union(least)
    result = known.groupBy("id").agg(F.min("component").alias("component"))
    return unexplained(result, "strongly_connected_components", SEVERAL)


def _colours(edges: DataFrame, backend: str | None) -> DataFrame:
    """Return ``id, root``: of the vertices that reach a vertex, the one with the least hash."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    aggs: Mapping[str, str | MinBy] = {"hash": "min", "root": MinBy("hash")}
    return recursive_agg(
        ends_of(edges).select("id", F.xxhash64("id").alias("hash"), F.col("id").alias("root")),
        "id",
        aggs,
        step=lambda known: known.join(edges, F.col("id") == F.col("src")).select(
            F.col("dst").alias("id"), "hash", "root"
        ),
        name="roots",
        backend=backend,
    ).select("id", "root")


def _reaching_roots(edges: DataFrame, colours: DataFrame, backend: str | None) -> DataFrame:
    """Return ``id, root`` of the vertices that reach their own root."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    heads, tails = colours.selectExpr("id AS head", "root"), colours.selectExpr("id AS tail", "root AS same")
    reaching = recursive_agg(
        colours.where("id = root").select("id"),
        "id",
        step=lambda known: (
            known.join(heads, F.col("id") == F.col("head"))
            .join(edges, F.col("id") == F.col("dst"))
            .join(tails, F.col("src") == F.col("tail"))
            .where("root = same")
            .select(F.col("src").alias("id"))
        ),
        name="reaching",
        backend=backend,
    )
    return reaching.join(colours, "id")


def _without(edges: DataFrame, reaching: DataFrame) -> DataFrame:
    """Return the edges between vertices that do not reach their root.

    Semi and anti joins keep Spark's estimate of the size; other joins would square it in each round.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    for end in ("src", "dst"):
        edges = edges.join(reaching.select(F.col("id").alias(end)), end, "left_anti")
    return edges.select("src", "dst").localCheckpoint()  # few are left, and they are read several times


def _of_one_colour(edges: DataFrame, colours: DataFrame) -> DataFrame:
    """Return the edges between vertices with the same root."""
    tails, heads = colours.selectExpr("id AS src", "root"), colours.selectExpr("id AS dst", "root AS same")
    same = edges.join(tails, "src").join(heads, "dst").where("root = same")
    return edges.join(same, ["src", "dst"], "left_semi").select("src", "dst").localCheckpoint()


def _few(edges: DataFrame, most: int) -> list[Any] | None:
    """Return the edges if they are at most ``most``, else None."""
    rows = edges.limit(most + 1).collect()
    return rows if len(rows) <= most else None
