"""Distances and widths of paths from given sources: one recursion with ``min`` or ``max`` each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import recursive_agg
from pyspark_paralagg.graph.edges import check_count, edges_of, ids_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def shortest_paths(  # noqa: PLR0913 - names as in GraphFrames and networkx
    edges: DataFrame,
    sources: Any,  # noqa: ANN401 - see the docstring
    weight: str | None = None,
    *,
    directed: bool = True,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``source, id, distance``: the length of the shortest path from each source to each vertex it reaches.

    >>> ra.graph.shortest_paths(edges, sources=[1, 7], weight="km").show()                # doctest: +SKIP

    edges
        One row an edge, with the columns ``src`` and ``dst``. A row with a null end or a null weight is ignored.
    sources
        A DataFrame with a column ``id`` (or with one column), a list of ids, or one id. Each has a row with its own
        distance 0, also if it is in no edge.
    weight
        The column with the length of an edge; its unit is that of the distance. Integers give a ``bigint``, other
        numbers a ``double``. None: each edge has length 1.
    directed
        False: each edge leads both ways.
    src, dst
        Other names of the columns of ``edges``. ``src="dst", dst="src"`` turns the edges round: distances to sources.
    backend
        The executor, as in :func:`recursive_agg`.

    Lazy. Weights may be negative (Bellman and Ford): a cycle below zero that a source reaches is
    ``PARALAGG_NO_FIXPOINT``, which names the cycle. A weight that is NaN or infinite is
    ``PARALAGG_ASSUMPTION_VIOLATED``. A missing column, or ids of different types, are ``PARALAGG_GRAPH_COLUMN``.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst, weight, directed=directed)
    rows = rows if weight is not None else rows.withColumn("weight", F.lit(1).cast("bigint"))
    start = ids_of(sources, rows, "sources").selectExpr("id AS source", "id")
    return recursive_agg(
        start.withColumn("distance", F.lit(0).cast(rows.schema["weight"].dataType)),
        ["source", "id"],
        {"distance": "min"},
        step=lambda known: known.join(rows, F.col("id") == F.col("src")).select(
            "source", F.col("dst").alias("id"), (F.col("distance") + F.col("weight")).alias("distance")
        ),
        name="shortest_paths",
        backend=backend,
    )


def bfs(  # noqa: PLR0913 - names as in GraphFrames and networkx
    edges: DataFrame,
    sources: Any,  # noqa: ANN401 - see the docstring
    *,
    max_depth: int | None = None,
    directed: bool = True,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``id, distance``: the number of edges from the nearest source to each vertex, by breadth-first search.

    >>> ra.graph.bfs(edges, sources=1, max_depth=3).show()                                # doctest: +SKIP

    max_depth
        Vertices at most that many edges away; at least 1. None: all vertices that a source reaches.

    The other arguments and errors are those of :func:`shortest_paths`. Lazy.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst, directed=directed)
    if max_depth is not None:
        check_count("max_depth", max_depth)
    start = ids_of(sources, rows, "sources").withColumn("distance", F.lit(0).cast("bigint"))
    return recursive_agg(
        start,
        "id",
        {"distance": "min"},
        step=lambda known: known.join(rows, F.col("id") == F.col("src")).select(
            F.col("dst").alias("id"), (F.col("distance") + 1).alias("distance")
        ),
        name="bfs",
        max_iterations=max_depth,
        on_limit="error" if max_depth is None else "return",
        backend=backend,
    )


def widest_paths(  # noqa: PLR0913 - names as in GraphFrames and networkx
    edges: DataFrame,
    sources: Any,  # noqa: ANN401 - see the docstring
    weight: str,
    *,
    directed: bool = True,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``source, id, width``: the greatest, over all paths from a source, of the least weight on the path.

    >>> ra.graph.widest_paths(pipes, sources="A", weight="capacity").show()               # doctest: +SKIP

    A source has no row for itself. Weights may be of any sign. The other arguments and errors are those of
    :func:`shortest_paths`. Lazy.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst, weight, directed=directed)
    start = ids_of(sources, rows, "sources").withColumnRenamed("id", "source")
    first = start.join(rows, F.col("source") == F.col("src")).where("source != dst")
    return recursive_agg(
        first.selectExpr("source", "dst AS id", "weight AS width"),
        ["source", "id"],
        {"width": "max"},
        step=lambda known: (
            known.join(rows, F.col("id") == F.col("src"))
            .where("source != dst")  # the rest of a way that returns to its source is as wide
            .select("source", F.col("dst").alias("id"), F.least("width", "weight").alias("width"))
        ),
        name="widest_paths",
        backend=backend,
    )
