"""Communities by label propagation: two relations, labels and the votes for them, take turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.api.dataframe import recursive, relation
from pyspark_paralagg.graph.edges import ENDLESS, check_count, edges_of, marked_vertices_of, unexplained
from pyspark_paralagg.program.aggregators import MaxBy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame


def label_propagation(  # noqa: PLR0913 - names as in GraphFrames
    edges: DataFrame,
    vertices: DataFrame | None = None,
    *,
    max_iter: int = 10,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``id, label``: each vertex takes the label that most of its neighbours have, ``max_iter`` times.

    >>> ra.graph.label_propagation(edges, max_iter=5).groupBy("label").count().show()     # doctest: +SKIP

    Labels are ids of vertices. All vertices change at once, and of labels with the same number of votes the least one
    wins, so the result is reproducible: the rules of CDLP in LDBC Graphalytics. It may alternate between two states,
    so there is no test of convergence.

    edges
        One row an edge, with the columns ``src`` and ``dst``. A row with a null end is ignored. Labels pass both ways
        along each edge; of edges in both directions, and of parallel edges, each is a vote. A self-loop is two votes.
    vertices
        A DataFrame with a column ``id`` (or with one column): vertices without edges keep their own label.
    max_iter
        The number of iterations, at least 1.
    src, dst
        Other names of the columns of ``edges``.
    backend
        The executor, as in :func:`recursive_agg`.

    Lazy. Every iteration counts the votes along all edges again.
    Source: Raghavan et al. 2007, "Near linear time algorithm to detect community structures in large-scale networks".
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    check_count("max_iter", max_iter)
    rows = edges_of(edges, src, dst)
    ids = marked_vertices_of(rows, vertices)
    own = ids.selectExpr("id", "is_end AS n", "id AS label")
    alone = own.where("n = 0")

    def step(labels: DataFrame, votes: DataFrame) -> dict[str, DataFrame]:
        ahead = labels.join(rows, F.col("id") == F.col("src")).select(F.col("dst").alias("id"), "label")
        behind = labels.join(rows, F.col("id") == F.col("dst")).select(F.col("src").alias("id"), "label")
        return {
            "labels": votes.select("id", "n", "label"),
            "votes": ahead.union(behind).withColumn("n", F.lit(1).cast("bigint")),
        }

    best: Mapping[str, str | MaxBy] = {"n": "max", "label": MaxBy("n")}
    # Votes are one iteration behind labels: an iteration of the algorithm is two of the recursion.
    found = recursive(
        {
            "labels": relation(alone, keys="id", aggs=best, initial=own),
            "votes": relation(own.where("false"), keys=["id", "label"], aggs={"n": "sum"}),
        },
        step,
        name="label_propagation",
        mode="iterate",
        max_iterations=2 * max_iter,
        on_limit="return",
        backend=backend,
    )
    return unexplained(found["labels"].select("id", "label"), "label_propagation", ENDLESS)
