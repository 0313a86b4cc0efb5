"""Core numbers by a binary search that all vertices make together; each of its phases is one recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.api.dataframe import recursive_agg
from pyspark_paralagg.graph.edges import edges_of, vertices_of
from pyspark_paralagg.program.aggregators import MCount

if TYPE_CHECKING:
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

    **Eager**: the call runs a recursion for each bit of the largest core number, 7 for cores up to 127, and keeps their
    results by ``localCheckpoint`` until they are garbage. On Spark Connect this needs Spark 4.0.
    """
    rows = edges_of(edges, src, dst).where("src != dst")
    both = rows.union(rows.select("dst", "src")).distinct().localCheckpoint()
    core = vertices_of(edges_of(edges, src, dst), vertices).selectExpr("id", "0L AS core").localCheckpoint()
    step = 1 << (_largest(both).bit_length() - 1) if not both.isEmpty() else 0
    while step:
        # A group is the vertices with one lower bound `core`: their core numbers are below core + 2 * step.
        core = _raised(both, core, step, backend).localCheckpoint()
        step //= 2
    return core


def _largest(both: DataFrame) -> int:
    """Return a bound of all core numbers: the greatest k such that k vertices have at least k neighbours."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    degrees = both.groupBy("src").agg(F.count("*").alias("degree"))
    number = {r["degree"]: r["n"] for r in degrees.groupBy("degree").agg(F.count("*").alias("n")).collect()}
    bound, vertices = 0, 0
    for degree in sorted(number, reverse=True):
        vertices += number[degree]
        bound = max(bound, min(degree, vertices))
    return bound


def _raised(both: DataFrame, core: DataFrame, step: int, backend: str | None) -> DataFrame:
    """Return ``core`` plus ``step`` for the vertices that are in the core of that number.

    In each group, vertices with too few neighbours are removed until none is left. Neighbours of a higher group stay
    whatever is removed here, and those of a lower group are not in the core.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    bounds = both.join(core.selectExpr("id AS src", "core"), "src").join(
        core.selectExpr("id AS dst", "core AS other"), "dst"
    )
    kept = bounds.where("other >= core").groupBy("src").agg((F.count("*") - F.first("core") - step).alias("slack"))
    slack = kept.selectExpr("src AS id", "slack").localCheckpoint()
    inside = bounds.where("other = core").select("src", "dst")
    first = core.join(slack, "id", "left").where("slack IS NULL OR slack < 0").select("id")
    lost = recursive_agg(
        first.join(inside, F.col("id") == F.col("src")).selectExpr("dst AS id", "src AS who"),
        "id",
        {"n": MCount("who")},
        step=lambda known: (
            known.join(slack.selectExpr("id AS vertex", "slack"), F.col("id") == F.col("vertex"))
            .where("n > slack")
            .join(inside, F.col("id") == F.col("src"))
            .selectExpr("dst AS id", "src AS who")
        ),
        name="k_core",
        backend=backend,
    )
    removed = lost.join(slack, "id").where("n > slack").select("id").union(first).distinct()
    # Semi joins keep Spark's estimate of the size; it would be squared by each phase otherwise.
    stays = core.join(removed, "id", "left_anti").selectExpr("id", f"core + {step}L AS core")
    return stays.union(core.join(removed, "id", "left_semi"))
