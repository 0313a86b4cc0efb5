"""Connected components: the least id that reaches a vertex."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.api.dataframe import recursive_agg
from pyspark_paralagg.graph.edges import edges_of, vertices_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


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
