"""Triangles and the local clustering coefficient: joins of plain Spark, without a recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.graph.edges import edges_of, unexplained, vertices_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NO_RECURSION = "it is a join of plain Spark, not a recursion"


def triangle_count(
    edges: DataFrame,
    vertices: DataFrame | None = None,
    *,
    src: str = "src",
    dst: str = "dst",
) -> DataFrame:
    """Return ``id, count``: the number of triangles that a vertex is a corner of.

    >>> ra.graph.triangle_count(edges).agg({"count": "sum"}).show()                       # doctest: +SKIP

    The direction of edges has no meaning; parallel edges count once, self-loops do not count. A vertex without a
    triangle has the count 0. The arguments and errors are those of :func:`connected_components`.

    Lazy. This is a join of plain Spark, not a recursion: for each edge, the neighbours of both ends are intersected, as
    arrays. Only neighbours with more edges than the end itself are in them, at most ``sqrt(2 * m)`` for m edges.
    Source: Schank 2007, "Algorithmic Aspects of Triangle-Based Network Analysis", algorithm forward.
    """
    rows = edges_of(edges, src, dst)
    counts = _with_all(vertices_of(rows, vertices), _counts(_pairs(rows)), "count", 0)
    return unexplained(counts, "triangle_count", _NO_RECURSION)


def clustering(
    edges: DataFrame,
    vertices: DataFrame | None = None,
    *,
    directed: bool = False,
    src: str = "src",
    dst: str = "dst",
) -> DataFrame:
    """Return ``id, clustering``: the local clustering coefficient, from 0 to 1, as in LDBC Graphalytics (LCC).

    It is the share of the pairs of neighbours that are joined by an edge. Neighbours are joined by an edge in either
    direction. ``directed=True`` counts ordered pairs: an edge in one direction is half a joined pair. (networkx weighs
    triangles by their directions instead.) A vertex with fewer than two neighbours has 0.

    The other arguments and errors are those of :func:`triangle_count`. Lazy; joins of plain Spark.
    """
    rows = edges_of(edges, src, dst)
    neighbours = _pairs(rows)
    arcs = _arcs_opposite(neighbours) if directed else _counts(neighbours).selectExpr("id", "2 * count AS arcs")
    pairs = _degrees(neighbours).selectExpr("id", "degree * (degree - 1) AS pairs")
    share = arcs.join(pairs, "id").selectExpr("id", "cast(arcs AS double) / pairs AS clustering")
    result = _with_all(vertices_of(rows, vertices), share, "clustering", 0.0)
    return unexplained(result, "clustering", _NO_RECURSION)


def _pairs(rows: DataFrame) -> DataFrame:
    """Return each pair of neighbours once as ``a, b`` with a < b, and the number of directions ``ab`` of its edges."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    ends = rows.where("src != dst").selectExpr(
        "least(src, dst) AS a", "greatest(src, dst) AS b", "src < dst AS forward"
    )
    return ends.groupBy("a", "b").agg(
        (F.max(F.col("forward").cast("int")) + F.max((~F.col("forward")).cast("int"))).alias("ab")
    )


def _degrees(pairs: DataFrame) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    return pairs.select(F.explode(F.array("a", "b")).alias("id")).groupBy("id").agg(F.count("*").alias("degree"))


def _upwards(pairs: DataFrame) -> DataFrame:
    """Return each pair as ``a, b, ab, rank``: from the end with fewer neighbours to the other one.

    ``rank`` orders the ends ``b``. A vertex has at most sqrt(2 m) pairs.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    degrees = _degrees(pairs)
    known = pairs.join(degrees.selectExpr("id AS a", "degree AS da"), "a").join(
        degrees.selectExpr("id AS b", "degree AS db"), "b"
    )
    first, second = (F.struct(F.col(d).alias("degree"), F.col(v).alias("id")) for d, v in (("da", "a"), ("db", "b")))
    turned = first < second
    low, high = F.when(turned, F.col("a")).otherwise(F.col("b")), F.when(turned, F.col("b")).otherwise(F.col("a"))
    order = F.when(turned, second).otherwise(first)
    return known.select(low.alias("a"), high.alias("b"), "ab", order.alias("rank"))


def _counts(pairs: DataFrame) -> DataFrame:
    """Return ``id, count``: the number of triangles at each vertex that has one."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    above = _upwards(pairs).groupBy("a").agg(F.collect_list("b").alias("above"))
    edges = above.select("a", "above", F.explode("above").alias("b"))
    common = edges.join(above.selectExpr("a AS b", "above AS others"), "b").select(
        "a", "b", F.array_intersect("above", "others").alias("third")
    )
    # One pass over the corners: an edge counts as often as it has third corners, each of which counts once.
    times = F.size("third").cast("bigint")
    ids = F.concat(F.array("a", "b"), "third")
    numbers = F.concat(F.array(times, times), F.array_repeat(F.lit(1).cast("bigint"), F.size("third")))
    corners = common.where("size(third) > 0").select(F.explode(F.arrays_zip(ids.alias("id"), numbers.alias("n"))))
    return corners.groupBy(F.col("col.id").alias("id")).agg(F.sum("col.n").alias("count"))


def _arcs_opposite(pairs: DataFrame) -> DataFrame:
    """Return ``id, arcs``: of each vertex in a triangle, the number of edges between two neighbours of it."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    left = _upwards(pairs)
    right = left.selectExpr("a AS a2", "b AS c", "ab AS ac", "rank AS rank2")
    wedges = left.join(right, (F.col("a") == F.col("a2")) & (F.col("rank") < F.col("rank2")))
    closing = left.selectExpr("a AS b3", "b AS c3", "ab AS bc")
    triangles = wedges.join(closing, (F.col("b") == F.col("b3")) & (F.col("c") == F.col("c3")))
    corners = (
        F.struct(F.col(corner).alias("id"), F.col(opposite).alias("arcs"))
        for corner, opposite in (("a", "bc"), ("b", "ac"), ("c", "ab"))
    )
    opposite = triangles.select(F.explode(F.array(*corners)).alias("corner")).select("corner.*")
    return opposite.groupBy("id").agg(F.sum("arcs").alias("arcs"))


def _with_all(ids: DataFrame, values: DataFrame, column: str, default: float) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    return ids.join(values, "id", "left").select("id", F.coalesce(column, F.lit(default)).alias(column))
