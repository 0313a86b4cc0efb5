"""Core numbers: each vertex takes the h-index of its neighbours' numbers, until none changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.api.dataframe import recursive_agg
from pyspark_paralagg.graph.edges import all_ids, edges_of
from pyspark_paralagg.program.aggregators import HIndex

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

    Lazy. A number begins as the number of neighbours, and falls to the greatest h that at least h neighbours have.
    Source: Lü et al. 2016, "The H-index of a network node and its relation to degree and coreness".
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst)
    others = rows.where("src != dst")
    pairs = others.selectExpr("least(src, dst) AS src", "greatest(src, dst) AS dst").distinct()
    counted = pairs.selectExpr("inline(array(struct(src AS id, 1L AS degree), struct(dst AS id, 1L AS degree)))").union(
        all_ids(rows.where("src = dst"), vertices).selectExpr("id", "0L")
    )
    degrees = counted.groupBy("id").agg(F.sum("degree").alias("degree"))
    ends = degrees.selectExpr("id AS end", "degree").alias("degrees")  # the name in proofs
    both = others.union(others.select("dst", "src"))
    aggs: Mapping[str, HIndex] = {"core": HIndex("degree", "core", "neighbour")}
    return recursive_agg(
        degrees.selectExpr("id", "degree", "degree AS core", "id AS neighbour"),
        "id",
        aggs,
        # A neighbour with a number of at least the degree never lets a vertex fall.
        step=lambda known: (
            known.join(both, F.col("id") == F.col("src"))
            .join(ends, F.col("dst") == F.col("end"))
            .where("core < degree")
            .select(F.col("dst").alias("id"), "degree", "core", F.col("src").alias("neighbour"))
        ),
        name="k_core",
        backend=backend,
    )
