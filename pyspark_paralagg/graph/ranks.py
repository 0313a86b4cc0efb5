"""Ranks by links: PageRank, and the hubs and authorities of HITS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import recursive, relation
from pyspark_paralagg.graph.edges import (
    ENDLESS,
    check_count,
    check_number,
    edges_of,
    ids_of,
    unexplained,
    values_of,
    vertices_of,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CODE = "[PARALAGG_ASSUMPTION_VIOLATED] ra.graph.pagerank:"
NEGATIVE = f"{_CODE} a weight is negative, infinite or NaN"
NEGATIVE_SHARE = f"{_CODE} a personalization is negative, infinite or NaN"
NO_SHARE = f"{_CODE} no vertex of the graph has a positive personalization"
_INFINITY = "double('infinity')"  # and NaN is greater


def pagerank(  # noqa: PLR0913 - names as in networkx
    edges: DataFrame,
    vertices: DataFrame | None = None,
    *,
    alpha: float = 0.85,
    personalization: Any = None,  # noqa: ANN401 - see the docstring
    weight: str | None = None,
    tol: float | None = 1e-6,
    max_iter: int = 100,
    directed: bool = True,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``id, pagerank``: the share of time that a random surfer spends at each vertex; the shares sum to 1.

    >>> ra.graph.pagerank(edges, alpha=0.85, tol=1e-8).orderBy("pagerank").show()         # doctest: +SKIP

    edges
        One row an edge, with the columns ``src`` and ``dst``. A row with a null end or a null weight is ignored.
        Parallel edges count each, as in a multigraph: use ``distinct()`` if they should not.
    vertices
        A DataFrame with a column ``id`` (or with one column): vertices without edges get a rank, too.
    alpha
        The chance to follow an edge, from 0 to below 1. GraphFrames' ``resetProbability`` is ``1 - alpha``.
    personalization
        Where the surfer jumps to otherwise, and from a vertex without outgoing edges: a dict from ids to shares, or a
        DataFrame with ``id`` and ``personalization``. Shares are divided by their sum. Ids that are not in the graph
        are ignored. None: to each vertex with the same chance.
    weight
        The column by which outgoing edges share a rank; not negative. None: they share it evenly.
    tol
        Ends the run when the sum of the absolute changes of an iteration is below it. None: exactly ``max_iter``
        iterations, as LDBC Graphalytics defines PageRank.
    max_iter
        The most iterations. If ``tol`` is not met by then: ``PARALAGG_LIMIT_REACHED``.
    directed
        False: each edge leads both ways.
    src, dst
        Other names of the columns of ``edges``.
    backend
        The executor, as in :func:`recursive_agg`.

    Lazy. networkx tests ``tol`` times the number of vertices. GraphFrames scales the ranks to the number of vertices.
    A weight or share that is negative, infinite or NaN is ``PARALAGG_ASSUMPTION_VIOLATED`` when the result is read, and
    so is a personalization without a positive share.
    Source: Page et al. 1999, "The PageRank Citation Ranking".
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    check_number("alpha", alpha, "a number from 0 to below 1", lambda a: 0 <= a < 1)
    _check_end(tol, max_iter)
    rows = edges_of(edges, src, dst, weight, directed=directed)
    if weight is None:
        out = rows.groupBy("src").agg(F.count("*").alias("total"))
        pull = F.col("pagerank") / F.col("total") * alpha
    else:
        checked = f"if(weight >= 0 AND weight < {_INFINITY}, weight, raise_error('{NEGATIVE}')) AS weight"
        rows = rows.selectExpr("src", "dst", checked)
        out = rows.groupBy("src").agg(F.sum("weight").alias("total")).where("total > 0")
        pull = F.col("pagerank") * F.col("weight") / F.col("total") * alpha
    out = out.withColumnRenamed("src", "page")
    jump, scale = _jumps(rows, vertices, out, personalization)

    # All ranks sum to 1. So the mass that jumps is 1 - alpha * (the ranks of vertices with links), of the next
    # iteration already. The first iteration turns a mass of 1 into the first ranks: it is one more.
    def step(rank: DataFrame, mass: DataFrame) -> dict[str, DataFrame]:
        landed = F.col("mass") * F.col("chance") * F.col("unit")
        jumped = mass.crossJoin(scale).crossJoin(jump).select("id", landed.alias("pagerank"))
        linked = rank.join(out, F.col("id") == F.col("page")).join(rows, F.col("page") == F.col("src"))
        followed = linked.select(F.col("dst").alias("id"), pull.alias("pagerank"))
        kept = followed.join(out.selectExpr("page AS next"), F.col("id") == F.col("next"))
        again = mass.crossJoin(scale).select((F.col("mass") * F.col("linked") * -alpha).alias("mass"))
        return {
            "rank": jumped.union(followed),
            "mass": again.union(kept.select((F.col("pagerank") * -alpha).alias("mass"))),
        }

    none = jump.where("false").selectExpr("id", "chance AS pagerank")
    one = rows.sparkSession.range(1).selectExpr("1D AS mass")
    return recursive(
        {
            "rank": relation(none, keys="id", aggs={"pagerank": "sum"}),
            "mass": relation(one, keys=[], aggs={"mass": "sum"}),
        },
        step,
        name="pagerank",
        max_iterations=max_iter + 1,
        on_limit="return" if tol is None else "error",
        tolerance=tol,
        mode="iterate",
        backend=backend,
    )["rank"]


def _jumps(
    edges: DataFrame,
    vertices: DataFrame | None,
    out: DataFrame,
    personalization: Any,  # noqa: ANN401 - as in pagerank
) -> tuple[DataFrame, DataFrame]:
    """Return ``id, chance`` of all vertices, and a row ``unit, linked``.

    A jump ends at a vertex with the probability ``chance * unit``, and at one with links with ``linked``.
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    ids = vertices_of(edges, vertices)
    if personalization is None:
        flags = ids.join(out, F.col("id") == F.col("page"), "left").agg(
            F.count("*").alias("n"), F.count("page").alias("m")
        )
        return ids.withColumn("chance", F.lit(1.0)), flags.selectExpr(
            "1D / nullif(n, 0) AS unit", "m / nullif(n, 0) AS linked"
        )
    given = values_of(personalization, edges, "personalization", "personalization")
    checked = f"share >= 0 AND share < {_INFINITY}"
    shares = ids.join(given, "id", "left").selectExpr("id", "coalesce(personalization, 0D) AS share")
    shares = shares.selectExpr("id", f"if({checked}, share, raise_error('{NEGATIVE_SHARE}')) AS share")
    whole = shares.agg(F.sum("share").alias("whole"))
    chance = f"share / if(whole > 0, whole, raise_error('{NO_SHARE}')) AS chance"
    jump = shares.crossJoin(whole).selectExpr("id", chance)
    linked = jump.join(out, F.col("id") == F.col("page"), "left_semi")
    linked = linked.agg(F.coalesce(F.sum("chance"), F.lit(0.0)).alias("linked"))
    return jump, linked.selectExpr("1D AS unit", "linked")


def hits(  # noqa: PLR0913 - names as in networkx
    edges: DataFrame,
    vertices: DataFrame | None = None,
    *,
    tol: float | None = 1e-8,
    max_iter: int = 100,
    src: str = "src",
    dst: str = "dst",
    backend: str | None = None,
) -> DataFrame:
    """Return ``id, hub, authority``: good hubs link to good authorities; either column sums to 1.

    >>> ra.graph.hits(links).orderBy("authority").show()                                  # doctest: +SKIP

    edges
        One row an edge, with the columns ``src`` and ``dst``. A row with a null end is ignored. Parallel edges count
        each.
    vertices
        A DataFrame with a column ``id`` (or with one column): vertices without edges have 0 in both columns.
    tol
        Ends the run when the changes of an iteration, and those of the two norms, sum to less than it. None: exactly
        ``max_iter`` iterations.
    max_iter
        The most iterations; each computes first hubs, then authorities. If ``tol`` is not met by then:
        ``PARALAGG_LIMIT_REACHED``.
    src, dst
        Other names of the columns of ``edges``.
    backend
        The executor, as in :func:`recursive_agg`.

    Lazy. Iterations start with equal hubs. If the graph has several parts that are equally strong, the result depends
    on that start. Without an edge all values are 0.
    Source: Kleinberg 1999, "Authoritative Sources in a Hyperlinked Environment".
    """
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - this module loads without pyspark

    _check_end(tol, max_iter)
    rows = edges_of(edges, src, dst)
    parts = rows.selectExpr("src AS id", "1L AS outs", "0L AS ins").union(rows.selectExpr("dst", "0L", "1L"))
    if vertices is not None:
        parts = parts.union(ids_of(vertices, rows, "vertices").selectExpr("id", "0L", "0L"))
    degrees = parts.groupBy("id").agg(F.sum("outs").alias("outs"), F.sum("ins").alias("ins"))
    size = rows.agg(F.count("*").alias("m"))
    heads = degrees.selectExpr("id AS head", "cast(ins AS double) AS ins")
    tails = degrees.selectExpr("id AS tail", "cast(outs AS double) AS outs")

    # `norms` are the sums of the next hubs and of the next authorities, before they are divided by them.
    def step(scores: DataFrame, norms: DataFrame) -> dict[str, DataFrame]:
        good = scores.crossJoin(norms)
        cited = good.join(rows, F.col("id") == F.col("src")).selectExpr("dst AS id", "hub / next_authority AS value")
        citing = good.join(rows, F.col("id") == F.col("dst")).selectExpr("src AS id", "authority / next_hub AS value")
        ahead = cited.join(heads, F.col("id") == F.col("head")).selectExpr(
            "value * ins AS next_hub", "0D AS next_authority"
        )
        behind = citing.join(tails, F.col("id") == F.col("tail")).selectExpr(
            "0D AS next_hub", "value * outs AS next_authority"
        )
        return {
            "scores": cited.selectExpr("id", "0D AS hub", "value AS authority").union(
                citing.selectExpr("id", "value AS hub", "0D AS authority")
            ),
            "norms": ahead.union(behind),
        }

    start = degrees.crossJoin(size).crossJoin(degrees.agg(F.count("*").alias("n")))
    start = start.selectExpr("id", "1D / n AS hub", "if(m = 0, 0D, ins / m) AS authority")
    first = (
        degrees.crossJoin(size)
        .where("m > 0")
        .agg(F.expr("sum(double(ins) * ins / m) AS next_hub"), F.expr("sum(double(outs)) / count(*) AS next_authority"))
    )
    found = recursive(
        {
            "scores": relation(
                degrees.selectExpr("id", "0D AS hub", "0D AS authority"),
                keys="id",
                aggs={"hub": "sum", "authority": "sum"},
                initial=start,
            ),
            "norms": relation(
                first.where("false"), keys=[], aggs={"next_hub": "sum", "next_authority": "sum"}, initial=first
            ),
        },
        step,
        name="hits",
        mode="iterate",
        max_iterations=2 * max_iter,
        on_limit="return" if tol is None else "error",
        tolerance=tol,
        backend=backend,
    )
    return unexplained(found["scores"], "hits", ENDLESS)


def _check_end(tol: float | None, max_iter: int) -> None:
    check_count("max_iter", max_iter)
    if tol is not None:
        check_number("tol", tol, "a positive number, or None for exactly max_iter iterations", lambda t: t > 0)
