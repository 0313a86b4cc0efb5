"""A filter on keys that the recursion carries goes into its base; any other stays above."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plans import EDGES, all_pairs, edges, optimized, sorted_rows, without
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from rows import assert_same_rows, frame

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def above(df: DataFrame) -> list[str]:
    """The operators above the fixpoint."""
    lines = optimized(df)
    return lines[: next(i for i, line in enumerate(lines) if "RecursiveAggregate" in line)]


def kept(df: DataFrame) -> int:
    """Runs the query anew; the rows of all relations of its fixpoint."""
    df.select("*").collect()
    report = ra.report(df)
    assert report is not None
    return report.tuples


def test_a_filter_on_a_carried_key_goes_into_the_base(spark: SparkSession) -> None:
    one = all_pairs(spark).where("src = 7 AND dist < 4")
    assert above(one) == ["Filter (isnotnull(dist) AND (dist < 4.0))"]
    assert sorted_rows(one) == [(7, 1, 2.0), (7, 2, 3.0)]
    assert kept(one) == 3  # all that 7 reaches, and nothing of the others


def test_it_stays_where_the_rule_is_off(spark: SparkSession) -> None:
    with without(spark, "PushKeyFilter"):
        one = all_pairs(spark).where("src = 7")
        assert above(one) == ["Filter (isnotnull(src) AND (src = 7))"]
        assert len(sorted_rows(one)) == 3
        assert kept(one) == 13


def test_a_key_that_moves_keeps_its_filter_outside(spark: SparkSession) -> None:
    one = all_pairs(spark).where("dst = 1")
    assert above(one) == ["Filter (isnotnull(dst) AND (dst = 1))"]
    assert [r[0] for r in sorted_rows(one)] == [1, 2, 3, 7]


def test_a_condition_on_both_keys_stays_outside(spark: SparkSession) -> None:
    assert above(all_pairs(spark).where("src + dst = 8")) == ["Filter (isnotnull(dst) AND ((src + dst) = 8))"]


def test_the_nonlinear_form_keeps_its_filter_outside(spark: SparkSession) -> None:
    e = edges(spark).select("src", "dst")
    path = e.recursive_agg(
        ["src", "dst"],
        step=lambda d: d.alias("a").join(d.alias("b"), on=F.col("a.dst") == F.col("b.src")).select("a.src", "b.dst"),
        backend="spark",
    )
    one = path.where("src = 7")
    assert above(one) == ["Filter (isnotnull(src) AND (src = 7))"]
    assert sorted_rows(one) == [(7, 1), (7, 2), (7, 3)]


def test_mutual_recursion_filters_every_base(spark: SparkSession) -> None:
    e = edges(spark)
    even = frame(spark, "src bigint, node bigint", [(1, 1), (7, 7)])
    odd = frame(spark, "node bigint, src bigint", [(4, 9)])  # the carried key stands elsewhere there
    found = ra.recursive(
        {"even": ra.relation(even, keys=["src", "node"]), "odd": ra.relation(odd, keys=["node", "src"])},
        step=lambda even, odd: {
            "even": odd.join(e, odd.node == e.src).select(odd.src, e.dst.alias("node")),
            "odd": even.join(e, even.node == e.src).select(even.src, e.dst.alias("node")),
        },
        backend="spark",
    )
    one = found["even"].where("src = 7")
    assert above(one) == []
    assert_same_rows(sorted_rows(one), [r for r in sorted_rows(found["even"]) if r[0] == 7])
    assert kept(found["even"]) == 15
    assert kept(one) == 7  # even and odd ones of 7, and neither those of 1 nor of 9
    with without(spark, "PushKeyFilter"):
        assert_same_rows(sorted_rows(one.select("*")), [(7, 1), (7, 2), (7, 3), (7, 7)])


def test_initial_rows_are_filtered_too(spark: SparkSession) -> None:
    e = edges(spark)

    def counted(src: str) -> DataFrame:
        base = frame(spark, "src bigint, node bigint, n bigint", [(1, 1, 1), (7, 7, 1)])
        initial = frame(spark, "src bigint, node bigint, n bigint", [(1, 2, 5), (7, 1, 3)])
        return base.recursive_agg(
            ["src", "node"],
            {"n": "sum"},
            step=lambda d: d.join(e, d.node == e.src).select(d.src, e.dst.alias("node"), d.n),
            initial=initial,
            max_iterations=2,
            on_limit="return",
            backend="spark",
        ).where(src)

    one = counted("src = 7")
    assert above(one) == []
    assert kept(one) < kept(counted("true"))
    assert_same_rows(sorted_rows(one), [r for r in sorted_rows(counted("true")) if r[0] == 7])


def test_a_tolerance_needs_all_rows(spark: SparkSession) -> None:
    e = edges(spark)
    base = frame(spark, "src bigint, node bigint, n double", [(1, 1, 1.0), (7, 7, 1.0)])
    sums = base.recursive_agg(
        ["src", "node"],
        {"n": "sum"},
        step=lambda d: d.join(e, d.node == e.src).select(d.src, e.dst.alias("node"), (d.n * 0.5).alias("n")),
        tolerance=0.1,
        backend="spark",
    )
    assert above(sums.where("src = 7")) == ["Filter (isnotnull(src) AND (src = 7))"]


def test_equal_is_not_the_same_for_fractions(spark: SparkSession) -> None:
    """0.0 equals -0.0, and a filter can tell them apart: a key that is only equal to the carried one is not carried."""
    e = frame(spark, "a double, x bigint, b double, y bigint", [(0.0, 1, -0.0, 2)])
    base = frame(spark, "s double, node bigint", [(0.0, 1)])
    found = base.recursive_agg(
        ["s", "node"],
        step=lambda d: d.join(e, (d.s == e.a) & (d.node == e.x)).select(e.a.alias("s"), e.y.alias("node")),
        backend="spark",
    )
    assert above(found.where("s >= 0")) != []


def test_a_subquery_and_chance_stay_outside(spark: SparkSession) -> None:
    assert any("rand" in line for line in above(all_pairs(spark).where("src > 10 * rand(1)")))
    frame(spark, "k bigint", [(7,)]).createOrReplaceTempView("chosen")
    one = all_pairs(spark).where("src = (SELECT max(k) FROM chosen)")
    assert any("subquery" in line for line in above(one))
    assert len(sorted_rows(one)) == 3


def test_each_pair_is_an_edge_or_more(spark: SparkSession) -> None:
    assert {(s, t) for s, t, _ in EDGES} <= {r[:2] for r in sorted_rows(all_pairs(spark))}


def test_what_is_known_of_a_carried_key_reaches_the_other_side_of_a_join(spark: SparkSession) -> None:
    names = spark.range(9).selectExpr("id", "concat('n', id) AS name")
    pairs = all_pairs(spark)
    joined = pairs.join(names, pairs.src == names.id).where("src = 7").select("dst", "name")
    assert any("(id = 7)" in line for line in optimized(joined))
    assert sorted_rows(joined) == [(1, "n7"), (2, "n7"), (3, "n7")]


def test_nothing_is_known_of_a_key_that_moves(spark: SparkSession) -> None:
    names = spark.range(9).selectExpr("id", "concat('n', id) AS name")
    more = edges(spark)
    pairs = (
        spark.range(9)
        .where("id = 7")
        .selectExpr("id AS src", "1L AS dst")
        .recursive_agg(
            ["src", "dst"],
            step=lambda d: d.join(more, d.dst == more.src).select(d.src, more.dst),
            backend="spark",
        )
    )
    by_src, by_dst = (
        pairs.join(names, pairs[side] == names.id).select("src", "dst", "name") for side in ("src", "dst")
    )
    assert any("(id = 7)" in line for line in optimized(by_src))
    assert not any("(id = 1)" in line for line in optimized(by_dst))
    assert sorted_rows(by_src) == [(7, 1, "n7"), (7, 2, "n7"), (7, 3, "n7")]
    assert sorted_rows(by_dst) == [(7, 1, "n1"), (7, 2, "n2"), (7, 3, "n3")]


def test_a_carried_fraction_is_compared_as_the_result_has_it(spark: SparkSession) -> None:
    base = frame(spark, "s double, node bigint", [(-0.0, 1), (1.0, 2)])
    e = edges(spark)
    reached = base.recursive_agg(
        ["s", "node"],
        step=lambda d: d.join(e, d.node == e.src).select(d.s, e.dst.alias("node")),
        backend="spark",
    )
    shown = reached.where("cast(s AS string) = '0.0'")
    with_rule = sorted_rows(shown)
    with without(spark, "PushKeyFilter"):
        assert sorted_rows(shown.select("*")) == with_rule
    assert with_rule
