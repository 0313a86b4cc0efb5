"""Which vertex reaches which: recursions over sets, without an aggregate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import recursive_agg
from pyspark_paralagg.graph.edges import edges_of, ids_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def reachability(  # noqa: PLR0913 - names as in GraphFrames and networkx
    edges: DataFrame,
    sources: Any,  # noqa: ANN401 - see the docstring
    *,
    directed: bool = True,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``id``: the sources, and every vertex that one of them reaches.

    >>> ra.graph.reachability(calls, sources=["main"]).show()                             # doctest: +SKIP

    The arguments and errors are those of :func:`shortest_paths`. ``src="dst", dst="src"`` gives the vertices that reach
    a source. Lazy.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst, directed=directed)
    return recursive_agg(
        ids_of(sources, rows, "sources"),
        "id",
        step=lambda known: known.join(rows, F.col("id") == F.col("src")).select(F.col("dst").alias("id")),
        name="reachability",
        backend=backend,
    )


def closure(
    edges: DataFrame,
    *,
    directed: bool = True,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``src, dst``: the transitive closure, all pairs joined by a path of at least one edge.

    >>> ra.graph.closure(edges).show()                                                    # doctest: +SKIP

    A vertex has a pair with itself only if it lies on a cycle. The result may have as many rows as the square of the
    number of vertices: for some sources only, use :func:`reachability` or :func:`shortest_paths`. The arguments are
    those of :func:`shortest_paths`. Lazy.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst, directed=directed)
    onwards = rows.selectExpr("src AS middle", "dst AS next")
    return recursive_agg(
        rows,
        ["src", "dst"],
        step=lambda known: known.join(onwards, F.col("dst") == F.col("middle")).select(
            "src", F.col("next").alias("dst")
        ),
        name="closure",
        backend=backend,
    )
