"""Core numbers by a binary search that all vertices make together; each of its phases is one recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.api.dataframe import recursive, relation
from pyspark_paralagg.graph.edges import SEVERAL, edges_of, kept, unexplained, vertices_of
from pyspark_paralagg.program.aggregators import MCount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


def k_core(
    edges: DataFrame,
    vertices: DataFrame | None = None,
    *,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``id, core``: the greatest k for which a vertex is in the k-core; ``where("core >= 3")`` is the 3-core.

    >>> ra.graph.k_core(edges).where("core >= 3").show()                                  # doctest: +SKIP

    The k-core is the largest part of the graph in which each vertex has at least k neighbours. The direction of edges
    has no meaning; parallel edges count once, self-loops do not count. A vertex without neighbours has core 0. The
    arguments and errors are those of :func:`connected_components`.

    **Eager**: the call runs a recursion for each halving of the range of core numbers, 7 for cores up to 127, and keeps
    their results by ``localCheckpoint`` until they are garbage. On Spark Connect this needs Spark 4.0.
    """
    rows = edges_of(edges, src, dst)
    pairs = rows.where("src != dst").selectExpr("least(src, dst) AS src", "greatest(src, dst) AS dst")
    inside = pairs.distinct().localCheckpoint()
    state = vertices_of(rows, vertices).selectExpr("id", "0L AS core", "0L AS above").localCheckpoint()
    width = _largest(inside) + 1
    while width > 1:
        # A group is the vertices with one lower bound `core`: their core numbers are below core + width. `inside` has
        # the pairs within groups, `above` the number of neighbours in higher groups, which are in the core anyway.
        half = width // 2
        removed = kept(_removed(_both(inside), state, half, backend))
        inside, state = _split(inside, state, removed, half)
        width -= half
    return unexplained(state.select("id", "core"), "k_core", SEVERAL)


def _both(pairs: DataFrame) -> DataFrame:
    return pairs.union(pairs.select("dst", "src"))


def _largest(pairs: DataFrame) -> int:
    """Return a bound of all core numbers: the greatest k such that k vertices have at least k neighbours."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    degrees = _both(pairs).groupBy("src").agg(F.count("*").alias("degree"))
    number = {r["degree"]: r["n"] for r in degrees.groupBy("degree").agg(F.count("*").alias("n")).collect()}
    bound, vertices = 0, 0
    for degree in sorted(number, reverse=True):
        vertices += number[degree]
        bound = max(bound, min(degree, vertices))
    return bound


def _removed(inside: DataFrame, state: DataFrame, half: int, backend: str | None) -> DataFrame:
    """Return ``id``: the vertices that are not in the core of number ``core + half``.

    Those with too few neighbours are removed, then those that have too few left, until all have enough.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    degrees = inside.groupBy("src").agg(F.count("*").alias("degree"))
    slack = state.join(degrees, F.col("id") == F.col("src"), "left").selectExpr(
        "id AS vertex", f"coalesce(degree, 0L) + above - core - {half}L AS slack"
    )
    slack = slack.localCheckpoint()
    aggs: Mapping[str, MCount] = {"n": MCount("who")}
    none = slack.where("false").selectExpr("vertex AS id", "vertex AS who")
    found = recursive(
        {
            "removed": relation(slack.where("slack < 0").selectExpr("vertex AS id"), keys="id"),
            "lost": relation(none, keys="id", aggs=aggs),
        },
        step=lambda removed, lost: {
            "removed": lost.join(slack, F.col("id") == F.col("vertex")).where("n > slack").select("id"),
            "lost": removed.join(inside, F.col("id") == F.col("src")).selectExpr("dst AS id", "src AS who"),
        },
        name="k_core",
        backend=backend,
    )
    return found["removed"]


def _split(pairs: DataFrame, state: DataFrame, removed: DataFrame, half: int) -> tuple[DataFrame, DataFrame]:
    """Return pairs and state after a phase: each group is now those that were removed, and the others above them."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    lows, highs = removed.selectExpr("id AS low"), removed.selectExpr("id AS high")
    ends = pairs.join(lows, F.col("src") == F.col("low"), "left").join(highs, F.col("dst") == F.col("high"), "left")
    is_within = "(low IS NULL) = (high IS NULL)"
    apart = ends.where(f"NOT ({is_within})")
    upwards = apart.selectExpr("coalesce(low, high) AS id", "0L AS core", "1L AS above")
    stays = state.join(removed, "id", "left_anti").selectExpr("id", f"core + {half}L AS core", "above")
    parts = stays.union(state.join(removed, "id", "left_semi")).union(upwards)
    split = parts.groupBy("id").agg(F.sum("core").alias("core"), F.sum("above").alias("above"))
    return ends.where(is_within).select("src", "dst").localCheckpoint(), split.localCheckpoint()
