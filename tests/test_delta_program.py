"""The program of a maintained table, without any table: what it reads, what blocks that, how it is known again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from pyspark.sql.window import Window
from rows import frame, schema_of
from spark_versions import SPARK, since

import pyspark_paralagg as ra
from pyspark_paralagg.delta.commit import tasks_of_merge
from pyspark_paralagg.delta.text import Text, WholeText
from pyspark_paralagg.maintenance.program import Program
from pyspark_paralagg.maintenance.recursion import Recursion, references
from pyspark_paralagg.maintenance.template import reading

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    Tables = Mapping[str, DataFrame]

EDGES, STARTS = "src bigint, dst bigint, w bigint", "node bigint, dist bigint"


def walk(d: DataFrame, t: Tables) -> DataFrame:
    return d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "dist + w AS dist")


def program(spark: SparkSession, base: Any = None, step: Any = walk, **options: Any) -> Program:  # noqa: ANN401 - given
    aggs = options.pop("aggs", {"dist": "min"})
    recursion = Recursion.single("r", "node", aggs, base or (lambda t: t["starts"]), step, options)
    schemas = {"edges": schema_of(EDGES), "starts": schema_of(STARTS)}
    return Program(spark, recursion, references(spark, schemas))


def grouped_step(d: DataFrame, t: Tables) -> DataFrame:
    return walk(d, t).groupBy("node").agg(F.min("dist").alias("dist"))


def first_of(t: Tables) -> DataFrame:
    row = F.row_number().over(Window.partitionBy("node").orderBy("dist"))
    return t["starts"].withColumn("n", row).where("n = 1").drop("n")


def pairs(t: Tables) -> DataFrame:
    """The edges as rows of the result."""
    return t["edges"].selectExpr("src AS node", "w AS dist")


KEEPS: dict[str, Callable[[Tables], DataFrame]] = {
    "filter": lambda t: t["starts"].where("node > 1").distinct(),
    "union": lambda t: t["starts"].union(t["starts"].selectExpr("node + 1", "dist")),
    "semi join": lambda t: pairs(t).join(t["starts"], ["node"], "left_semi").select("node", "dist"),
    "inner join": lambda t: t["edges"].join(t["starts"], t["edges"].src == t["starts"].node).select("node", "dist"),
    "drop of whole duplicates": lambda t: t["starts"].dropDuplicates(),
    "explode": lambda t: t["starts"].selectExpr("explode(array(node, node + 1)) AS node", "dist"),
    "sort": lambda t: t["starts"].orderBy("node"),
}
BLOCKS: dict[str, Callable[[Tables], DataFrame]] = {
    "an aggregate": lambda t: t["starts"].groupBy("node").agg(F.min("dist").alias("dist")),
    "Window": first_of,
    "GlobalLimit": lambda t: t["starts"].limit(3),
    "dropDuplicates by some columns": lambda t: t["starts"].dropDuplicates(["node"]),
    "the right side of EXCEPT": lambda t: pairs(t).subtract(t["starts"]),
    "the optional side of a left outer join": lambda t: pairs(t).drop("dist").join(t["starts"], "node", "left"),
}
if SPARK >= (4, 0):  # 3.5 has no DataFrame.exists
    BLOCKS["a subquery"] = lambda t: pairs(t).where(t["starts"].where("dist > 0").exists())


def beside(t: Tables) -> DataFrame:
    return pairs(t).join(t["starts"], ["node"], "left_anti")


def test_rows_on_the_right_side_of_an_anti_join_reject_others(spark: SparkSession) -> None:
    found = program(spark, beside)
    assert found.obstacle_for({"starts"}) is None
    assert (found.rejects({"starts"}), found.rejects({"edges"})) == (True, False)
    block = "below the right side of an anti join"
    twice = program(spark, lambda t: pairs(t).join(beside(t), ["node"], "left_anti"))
    assert block in str(twice.obstacle_for({"starts"}))
    sums = program(spark, beside, step=lambda d, t: walk(d, t).selectExpr("node", "1L AS dist"), aggs={"dist": "sum"})
    assert block in str(sums.obstacle_for({"starts"}))


@pytest.mark.parametrize("operator", KEEPS)
def test_new_rows_below_it_are_new_rows_above(spark: SparkSession, operator: str) -> None:
    assert program(spark, KEEPS[operator]).obstacle_for({"starts", "edges"}) is None


@pytest.mark.parametrize("operator", BLOCKS)
def test_new_rows_below_it_may_take_others_away(spark: SparkSession, operator: str) -> None:
    found = program(spark, BLOCKS[operator])
    assert found.obstacle_for({"starts"}) == (
        f"the program reads starts below {operator}, where new rows may remove result rows"
    )
    assert found.obstacle_for(set()) is None


def test_the_heads_own_aggregate_in_the_step_blocks_nothing(spark: SparkSession) -> None:
    assert program(spark, step=grouped_step).obstacle_for({"starts", "edges"}) is None


@since("4.0", "DataFrames have no subqueries before")
def test_a_subquery_in_the_step_blocks(spark: SparkSession) -> None:
    def near(d: DataFrame, t: Tables) -> DataFrame:
        known = d.where(d.dist < t["starts"].agg(F.max("dist")).scalar())
        return known.join(t["edges"], d.node == t["edges"].src).select(F.col("dst").alias("node"), "dist")

    found = program(spark, step=near)
    assert found.obstacle_for({"edges"}) is None
    assert "below a subquery" in str(found.obstacle_for({"starts"}))


def test_each_read_is_replaced_by_what_is_new_in_turn(spark: SparkSession) -> None:
    def twice(d: DataFrame, t: Tables) -> DataFrame:
        far = t["edges"].selectExpr("src AS via", "dst AS last", "w AS more")
        both = t["edges"].join(far, t["edges"].dst == far.via)
        return d.join(both, d.node == both.src).selectExpr("last AS node", "dist + w + more AS dist")

    edges = {"old": [(0, 1, 1), (2, 3, 1)], "new": [(1, 2, 10)]}
    every, new = frame(spark, EDGES, edges["old"] + edges["new"]), frame(spark, EDGES, edges["new"])
    starts = frame(spark, STARTS, [(0, 0)])
    stored = frame(spark, STARTS, [(0, 0), (1, 5)])
    rows = reading({"edges": every, "starts": starts}, {"r": stored})
    found = program(spark, step=twice).candidates({"edges": new}, rows)["r"]
    # 0 -> 1 -> 2 with the new edge as the second, 1 -> 2 -> 3 with it as the first.
    assert sorted(tuple(row) for row in found.collect()) == [(2, 11), (3, 16)]


class TestFingerprint:
    """Equal where the program is, and only there."""

    def test_it_is_the_same_for_a_program_made_twice(self, spark: SparkSession) -> None:
        constant = lambda t: t["starts"].union(frame(spark, STARTS, [(7, 7)]))  # noqa: E731 - a base
        assert program(spark, constant).fingerprint == program(spark, constant).fingerprint

    @pytest.mark.parametrize(
        "options",
        [
            {"base": lambda t: t["starts"].where("node < 6")},
            {"step": lambda d, t: walk(d, t).where("dist < 9")},
            {"aggs": {"dist": "max"}},
            {"mode": "trust"},
            {"assume": "w >= 0"},
        ],
    )
    def test_it_is_another_one_for_another_program(self, spark: SparkSession, options: dict[str, Any]) -> None:
        assert program(spark, **options).fingerprint != program(spark).fingerprint

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("via != '#1'", "via != '#2'"),
            ("via IN ('a, b')", "via IN ('a', 'b')"),
            ("via = 'dist#3'", "via = dist"),
            ("node = 1", "node = 1D"),
        ],
    )
    def test_literals_that_print_alike_are_other_programs(self, spark: SparkSession, one: str, other: str) -> None:
        def made(condition: str) -> str:
            known = lambda t: t["starts"].withColumn("via", F.lit("x")).where(condition).drop("via")  # noqa: E731 - a base
            return program(spark, known).fingerprint

        assert made(one) == made(one)
        assert made(one) != made(other)

    def test_rows_in_the_program_are_part_of_it(self, spark: SparkSession) -> None:
        def made(node: int) -> str:
            return program(spark, lambda t: t["starts"].union(frame(spark, STARTS, [(node, 0)]))).fingerprint

        assert made(1) != made(2)

    def test_an_aggregator_of_the_users_own_is_part_of_it(self, spark: SparkSession) -> None:
        def made(combine: Any) -> str:  # noqa: ANN401 - a lambda over columns
            own = ra.aggregator("mine", combine)
            return program(spark, aggs={"dist": own}, mode="trust").fingerprint

        least = made(F.least)
        assert least == made(F.least)
        assert least != made(F.greatest)


class TestFingerprintOfAWholeText:
    """Likewise for a text that is computed as a whole."""

    @staticmethod
    def made(spark: SparkSession, combine: Any = F.least, **options: Any) -> str:  # noqa: ANN401 - a lambda over columns
        text = """
            reach(x) :- start(x). reach(y) :- reach(x), edge(x, y, _).
            dist(x, 0) :- reach(x). dist(y, $MINE(d + w)) :- dist(x, d), edge(x, y, w).
            top(x, $MINE(d)) :- dist(x, d).
        """
        types = {"edge": "x bigint, y bigint, w bigint", "start": "x bigint"}
        schemas = {name: schema_of(ddl) for name, ddl in types.items()}
        own = [ra.aggregator("mine", combine)]
        found = Text(text, "top", {"mode": "trust", **options}, own).program(spark, schemas)
        assert isinstance(found, WholeText)
        return found.fingerprint

    def test_what_leaves_the_rows_as_they_are_does_not_count(self, spark: SparkSession) -> None:
        assert self.made(spark) == self.made(spark, backend="spark")

    def test_an_aggregator_of_the_users_own_is_part_of_it(self, spark: SparkSession) -> None:
        assert self.made(spark) != self.made(spark, F.greatest)

    def test_confs_that_change_a_meaning_are(self, spark: SparkSession) -> None:
        before = self.made(spark)
        spark.conf.set("spark.sql.session.timeZone", "Pacific/Chatham")
        assert self.made(spark) != before


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"max_iterations": 3}, "max_iterations is set"),
        ({"tolerance": 0.1}, "tolerance is set"),
        ({"mode": "iterate"}, "recomputes all rows"),
    ],
)
def test_what_never_goes_on_says_why(spark: SparkSession, options: dict[str, Any], why: str) -> None:
    found = program(spark, **options).obstacle
    assert found is not None
    assert why in found


def test_sums_alone_continue_and_sums_beside_others_do_not(spark: SparkSession) -> None:
    two = {"base": lambda t: t["starts"].selectExpr("node", "dist", "dist AS most"), "step": lambda d, _: d}
    assert program(spark, aggs={"dist": "sum"}).obstacle is None
    assert program(spark, aggs={"dist": "sum", "most": "count"}, **two).obstacle is None
    mixed = program(spark, aggs={"dist": "sum", "most": "max"}, **two).obstacle
    assert program(spark, aggs={"dist": "sum"}, tolerance=0.1).obstacle is None
    assert mixed == "sums beside other aggregates cannot continue from stored rows"


def test_an_idempotent_aggregator_of_the_users_own_goes_on(spark: SparkSession) -> None:
    own = ra.aggregator("mine", F.least)
    assert program(spark, aggs={"dist": own}, mode="trust").obstacle is None


@pytest.mark.parametrize("call", ["rand()", "current_timestamp()", "uuid()"])
def test_what_is_another_value_each_time_is_told(spark: SparkSession, call: str) -> None:
    found = program(spark, lambda t: t["starts"].where(f"{call} IS NOT NULL"))
    assert found.unstable is not None
    assert call.removesuffix("()") in found.unstable
    assert program(spark).unstable is None


def test_a_table_that_is_no_source_is_refused(spark: SparkSession, tmp_path: Any) -> None:  # noqa: ANN401 - a path
    place = str(tmp_path / "rows")
    frame(spark, STARTS, [(1, 1)]).write.parquet(place)
    with pytest.raises(ra.UsageError) as caught:
        program(spark, lambda t: t["starts"].union(spark.read.parquet(place)))
    assert caught.value.code == "PARALAGG_DELTA_UNTRACKED"


@pytest.mark.parametrize(
    ("size", "changed", "tasks"),
    [(0, 1, 1), (5 << 20, 250_000, 5), (65 << 20, 1, None), (1, 1_000_001, None), (None, 1, None)],
)
def test_the_tasks_of_a_merge_follow_from_what_it_reads(size: int | None, changed: int, tasks: int | None) -> None:
    assert tasks_of_merge(size, changed) == tasks
