"""Core numbers by a search that all vertices make together; each of its rounds is one recursion."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING

from pyspark_paralagg.api.dataframe import recursive, relation
from pyspark_paralagg.graph.edges import SEVERAL, all_ids, edges_of, kept, unexplained
from pyspark_paralagg.program.aggregators import MCount

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame

_UNBOUNDED = 1 << 40
"""More than any core number."""


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

    **Eager**: the call runs a recursion for each round of the search, 13 on R-MAT 2^18 with cores up to 372, and keeps
    their results by ``localCheckpoint`` until they are garbage. On Spark Connect this needs Spark 4.0.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    rows = edges_of(edges, src, dst)
    pairs = rows.where("src != dst").selectExpr("least(src, dst) AS src", "greatest(src, dst) AS dst")
    inside = pairs.distinct().localCheckpoint()
    partitions = inside.select(F.spark_partition_id()).distinct().count()
    state = _begin(inside, all_ids(rows.where("src = dst"), vertices))
    while ranges := _ranges(state):
        bounds = state.sparkSession.createDataFrame(ranges, "low long, middle long, end long")
        state = state.join(bounds, (F.col("core") == F.col("low")) & (F.col("degree") > 0), "left").drop("low")
        removed = kept(_removed(_both(inside), state, backend))
        inside, state = _split(inside, state, removed, partitions)
    # A vertex without neighbours in its group is in each core that has enough of its higher neighbours.
    result = state.selectExpr("id", "if(degree = 0, least(above, most - 1), core) AS core")
    return unexplained(result, "k_core", SEVERAL)


def _both(pairs: DataFrame) -> DataFrame:
    return pairs.union(pairs.select("dst", "src"))


def _begin(inside: DataFrame, alone: DataFrame) -> DataFrame:
    """Return the vertices as one group.

    A group is the vertices with one lower bound ``core`` of their core numbers, which are below ``most``. ``inside``
    has the pairs within groups, ``degree`` the number of neighbours in the same group, and ``above`` that in higher
    groups, which are in the core anyway.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    degrees = _both(inside).selectExpr("src AS id", "1L AS degree").union(alone.selectExpr("id", "0L"))
    counted = degrees.groupBy("id").agg(F.sum("degree").alias("degree"))
    return counted.selectExpr("id", "0L AS core", f"{_UNBOUNDED}L AS most", "0L AS above", "degree").localCheckpoint()


def _ranges(state: DataFrame) -> list[tuple[int, int | None, int]]:
    """Return lower bound, next middle and end of the groups with neighbours within, and several possible core numbers.

    The middle is the geometric mean, since few vertices have large core numbers. It is None if one number is left.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    active = state.where("degree > 0 AND most - core > 1").selectExpr("core", "most", "above", "above + degree AS d")
    counts = active.groupBy("core", "most", "d").agg(F.count("*").alias("n"), F.sum("above").alias("above")).collect()
    found: list[tuple[int, int | None, int]] = []
    counts.sort(key=lambda row: (row["core"], -row["d"]))
    for (low, most), rows in groupby(counts, key=lambda row: (row["core"], row["most"])):
        group = list(rows)
        is_highest = not any(row["above"] for row in group)
        bound, vertices = low, 0
        for row in group:
            vertices += row["n"]  # in a core of number k that is within the group, more than k have k neighbours
            bound = max(bound, min(row["d"], vertices - 1) if is_highest else row["d"])
        bound = min(bound, most - 1)
        middle = min(max(low + 1, round(math.sqrt(max(low, 1) * bound))), bound)
        found.append((low, middle if bound > low else None, bound + 1))
    return found


def _removed(inside: DataFrame, state: DataFrame, backend: str | None) -> DataFrame:
    """Return ``id``: the vertices that are not in the core of the ``middle`` of their group.

    Those with too few neighbours are removed, then those that have too few left, until all have enough.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    slack = state.where("middle IS NOT NULL").selectExpr("id AS vertex", "degree + above - middle AS slack")
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


def _split(pairs: DataFrame, state: DataFrame, removed: DataFrame, partitions: int) -> tuple[DataFrame, DataFrame]:
    """Return pairs and state after a round: each group is now those that were removed, and the others above them.

    Semi and anti joins keep Spark's estimate of the size; other joins would square it in each round.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    def part(rows: DataFrame, end: str, how: str) -> DataFrame:
        return rows.join(removed.select(F.col("id").alias(end)), end, how).select("src", "dst")

    low, high = part(pairs, "src", "left_semi"), part(pairs, "src", "left_anti")
    within = part(low, "dst", "left_semi").union(part(high, "dst", "left_anti"))
    upwards = part(low, "dst", "left_anti").union(part(high, "dst", "left_semi").select("dst", "src"))
    all_pairs = within.selectExpr("*", "false AS apart").union(upwards.selectExpr("*", "true"))
    ends = all_pairs.coalesce(partitions).localCheckpoint()
    changes = ends.where("apart").selectExpr(
        "inline(array(struct(src AS id, 1L AS above, -1L AS degree), struct(dst AS id, 0L AS above, -1L AS degree)))"
    )
    known = ["core", "middle", "end", "most"]
    moved = state.selectExpr("id", "above", "degree", "0L AS gone", *known)
    for rows in (changes.selectExpr("*", "0L"), removed.selectExpr("id", "0L", "0L", "1L")):
        moved = moved.union(rows.selectExpr("*", *["cast(NULL AS bigint)"] * len(known)))
    sums = moved.groupBy("id").agg(*(F.sum(name).alias(name) for name in moved.columns[1:]))
    split = sums.selectExpr(
        "id",
        "if(gone = 0, coalesce(middle, core), core) AS core",
        "if(gone = 0, least(most, coalesce(end, most)), middle) AS most",
        "above",
        "degree",
    )
    return ends.where("NOT apart").select("src", "dst"), split.localCheckpoint()
