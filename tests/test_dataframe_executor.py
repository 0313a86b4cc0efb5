"""The plain DataFrame executor: when it is taken, what it says, what it leaves behind, how it ends."""

from __future__ import annotations

import gc
import logging
import weakref
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import Window
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it
from pyspark.sql.types import LongType
from rows import assert_same_rows, frame, rows_of

import pyspark_paralagg as ra
from pyspark_paralagg.backends.spark import SparkBackend

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.program.program import Mode

pytestmark = pytest.mark.rotates(runs=3)

CHAIN = [(i, i + 1, 1) for i in range(1, 6)]


def hops(spark: SparkSession, edges: list[tuple[int, int, int]], **where: object) -> DataFrame:
    """Hops from vertex 1."""
    e = frame(spark, "src bigint, dst bigint, w bigint", edges)
    return frame(spark, "node bigint, hops bigint", [(1, 0)]).recursive_agg(
        "node",
        {"hops": "min"},
        step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node"), (d.hops + e.w).alias("hops")),
        name="hops",
        **where,
    )


def persisted(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())


def test_report_counts_every_application(spark: SparkSession) -> None:
    found = hops(spark, CHAIN, backend="dataframe")
    report = ra.report(found)
    assert report is not None
    assert (report.backend, report.iterations, report.tuples) == ("dataframe", 6, 6)
    assert report.reason == 'requested by backend="dataframe"'
    rounds = report.to_pandas()
    assert list(rounds["delta"]) == [1, 1, 1, 1, 1, 0]
    assert list(rounds["total"]) == [2, 3, 4, 5, 6, 6]
    assert set(report.seconds) == {"plan", "load", "loop", "store"}
    assert report.seconds["loop"] > 0
    assert "6 iterations" in repr(report)
    assert ra.RunReport.from_json(report.to_json()) == report


def test_report_and_explain_survive_chaining(spark: SparkSession) -> None:
    found = hops(spark, CHAIN, backend="dataframe")
    chained = found.filter("hops > 1").join(found.withColumnRenamed("hops", "h"), "node").groupBy("node").count()
    assert ra.report(chained) == ra.report(found)
    text = ra.explain(chained)
    assert "hops(node: bigint, hops: min bigint)" in text
    assert "Executor: dataframe" in text
    assert ra.report(spark.range(3)) is None
    assert "no recursive aggregate" in ra.explain(spark.range(3))


def test_frees_every_round_and_holds_on_to_no_result(spark: SparkSession) -> None:
    before = persisted(spark)
    found = hops(spark, CHAIN, backend="dataframe")
    assert len(persisted(spark) - before) == 1  # the result itself
    chained = found.filter("hops >= 4")
    assert ra.report(chained) is not None
    held = [weakref.ref(found), weakref.ref(found._jdf), weakref.ref(chained._jdf)]
    del found
    gc.collect()
    assert_same_rows(rows_of(chained), [(5, 4), (6, 5)])
    del chained
    gc.collect()
    # From here on it is Spark's cleaner that drops the blocks, some seconds or minutes after the JVM's collector.
    assert [ref() for ref in held] == [None, None, None]


def test_leaves_nothing_behind_after_an_error(spark: SparkSession) -> None:
    before = persisted(spark)
    confs = dict(spark.sparkContext.getConf().getAll())
    spark.sparkContext.setJobDescription("mine")
    with pytest.raises(ra.FixpointError) as e:
        hops(spark, CHAIN, backend="dataframe", max_iterations=2)
    assert (e.value.code, e.value.value) == ("PARALAGG_LIMIT_REACHED", 2)
    assert persisted(spark) <= before
    assert spark.sparkContext.getLocalProperty("spark.job.description") == "mine"
    assert dict(spark.sparkContext.getConf().getAll()) == confs
    spark.sparkContext.setLocalProperty("spark.job.description", None)


def test_an_error_of_the_step_leaves_nothing_behind(spark: SparkSession) -> None:
    before = persisted(spark)
    base = frame(spark, "k bigint, n bigint", [(1, 3)])
    with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
        base.recursive_agg(
            "k", {"n": "min"}, step=lambda r: r.select("k", F.expr("n - 1 div (n - 3)").alias("n")), backend="dataframe"
        )
    assert persisted(spark) <= before


@pytest.mark.rotates(runs=3, turn=1)
@pytest.mark.slow("a hundred rounds of plain DataFrames")
def test_endless_climb_names_keys_on_the_cycle(spark: SparkSession) -> None:
    e = frame(spark, "src bigint, dst bigint", [(1, 2), (2, 3), (3, 2)])
    with pytest.raises(ra.FixpointError) as problem:
        frame(spark, "node bigint, length bigint", [(1, 0)]).recursive_agg(
            "node",
            {"length": "max"},
            step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node"), (d.length + 1).alias("length")),
            backend="dataframe",
        )
    assert problem.value.code == "PARALAGG_NO_FIXPOINT"
    assert problem.value.value
    assert {k[0] for k in problem.value.value} <= {2, 3}  # vertex 1 stands before the cycle


@pytest.mark.rotates(runs=3, turn=2)
@pytest.mark.slow("a hundred rounds of plain DataFrames")
def test_a_long_way_to_the_fixpoint_is_no_climb(spark: SparkSession) -> None:
    base = frame(spark, "k bigint, x double", [(1, 1.0)])
    found = base.recursive_agg(
        "k", {"x": "sum"}, step=lambda r: r.select("k", (r.x * 0.8).alias("x")), backend="dataframe"
    )
    assert_same_rows(rows_of(found), [(1, 5.0)])
    report = ra.report(found)
    assert report is not None
    assert report.iterations > 100


def test_tolerance_ends_the_run(spark: SparkSession) -> None:
    base = frame(spark, "k bigint, x double", [(1, 1.0)])
    found = base.recursive_agg(
        "k", {"x": "sum"}, step=lambda r: r.select("k", (r.x * 0.5).alias("x")), tolerance=0.01, backend="dataframe"
    )
    assert rows_of(found) == [(1, 1.9921875)]  # 2 - 2^-7: the seventh round moves 2^-7 < 0.01
    report = ra.report(found)
    assert report is not None
    assert report.iterations == 7


def test_python_udf_is_taken_with_its_reason(spark: SparkSession, caplog: pytest.LogCaptureFixture) -> None:
    plus_one = F.udf(lambda n: n + 1, LongType())
    e = frame(spark, "src bigint, dst bigint", [(1, 2), (2, 3)])

    def step(d: DataFrame) -> DataFrame:
        return d.join(e, d.node == e.src).select(e.dst.alias("node"), plus_one(d.hops).alias("hops"))

    base = frame(spark, "node bigint, hops bigint", [(1, 0)])
    with caplog.at_level(logging.WARNING, logger="pyspark_paralagg"):
        found = base.recursive_agg("node", {"hops": "min"}, step=step, mode="trust")
    assert_same_rows(rows_of(found), [(1, 0), (2, 1), (3, 2)])
    report = ra.report(found)
    assert report is not None
    assert report.backend == "dataframe"
    assert "Python UDF" in report.reason
    assert "Python UDF" in caplog.text
    assert report.reason in ra.explain(found)
    assert report.reason.endswith("; the step is not proved")
    for backend in ("auto", "spark", "dataframe"):
        with pytest.raises(ra.UnsupportedError, match=r'Python UDF(.|\n)*use mode="iterate"'):
            base.recursive_agg("node", {"hops": "min"}, step=step, backend=backend)
    plain = base.recursive_agg("node", {"hops": "min"}, step=step, mode="iterate")
    assert ra.report(plain).reason == "a Python UDF cannot run inside the loop (in step of r)"


@pytest.mark.parametrize("backend", ["auto", "dataframe"])
@pytest.mark.parametrize("mode", ["auto", "trust"])
def test_what_nobody_proves_hides_no_refutation(spark: SparkSession, backend: str, mode: Mode) -> None:
    """A window beside a refuted value."""
    e = frame(spark, "src bigint, dst bigint, w bigint", [(1, 2, 7), (2, 3, 1), (3, 1, 2)])
    base = frame(spark, "node bigint, dist bigint", [(1, 0)])
    first = F.row_number().over(Window.partitionBy("node").orderBy("dist"))

    def step(d: DataFrame) -> DataFrame:
        return d.join(e, d.node == e.src).select(e.dst.alias("node"), (e.w - d.dist).alias("dist"))

    def beside(d: DataFrame) -> DataFrame:
        return step(d).withColumn("n", first).where("n = 1").drop("n")

    def random(d: DataFrame) -> DataFrame:
        return step(d).select("node", (F.col("dist") + F.floor(F.rand() * 3)).cast("long").alias("dist"))

    for refused, code in ((step, "PARALAGG_NOT_MONOTONE"), (random, "PARALAGG_NONDETERMINISTIC")):
        with pytest.raises(ra.ParalaggError) as caught:
            base.recursive_agg("node", {"dist": "min"}, step=refused, backend=backend, mode=mode)
        assert caught.value.code == code
    if mode == "auto":
        with pytest.raises(ra.UnsupportedError, match="Window in the step"):
            base.recursive_agg("node", {"dist": "min"}, step=beside, backend=backend, mode=mode)


def test_rows_after_some_iterations_of_several_strata_are_told_here(spark: SparkSession) -> None:
    e = frame(spark, "src bigint, dst bigint", [(1, 2), (2, 3), (3, 4)])
    relations = {
        "hops": ra.relation(frame(spark, "node bigint, hops bigint", [(1, 0)]), keys="node", aggs={"hops": "min"}),
        "far": ra.relation(frame(spark, "hops bigint", []), keys=[], aggs={"hops": "max"}),
    }

    def step(hops: DataFrame) -> dict[str, DataFrame]:
        further = hops.join(e, hops.node == e.src).select(e.dst.alias("node"), (hops.hops + 1).alias("hops"))
        return {"hops": further, "far": hops.select("hops")}

    found = ra.recursive(relations, step, max_iterations=2, on_limit="return")
    assert_same_rows(rows_of(found["hops"]), [(1, 0), (2, 1), (3, 2)])
    assert_same_rows(rows_of(found["far"]), [(1,)])  # of the rows that the second iteration has read
    report = ra.report(found["far"])
    assert report is not None
    assert "run one after the other" in report.reason
    with pytest.raises(ra.UnsupportedError, match="PARALAGG_STEP_UNSUPPORTED"):
        ra.recursive(relations, step, max_iterations=2, on_limit="return", backend="spark")
    fixpoint = ra.recursive(relations, step, max_iterations=9)
    assert_same_rows(rows_of(fixpoint["far"]), [(3,)])


def test_steps_beyond_the_engine_fall_back(spark: SparkSession) -> None:
    """A sum of wide decimals is proved, but the engines do not store it."""
    e = frame(spark, "src bigint, dst bigint", [(1, 2), (2, 3), (1, 3)])
    base = spark.sql("SELECT 1L AS node, cast(1 AS decimal(38,2)) AS n")
    found = base.recursive_agg(
        "node", {"n": "sum"}, step=lambda d: d.join(e, d.node == e.src).select(e.dst.alias("node"), "n")
    )
    assert sorted(rows_of(found)) == [(1, 1), (2, 1), (3, 2)]
    report = ra.report(found)
    assert report is not None
    assert report.backend == "dataframe"


def test_conf_chooses_and_the_argument_stands_above_it(spark: SparkSession) -> None:
    spark.conf.set("spark.paralagg.backend", "dataframe")
    report = ra.report(hops(spark, CHAIN))
    assert report is not None
    assert report.reason == "requested by spark.paralagg.backend=dataframe"
    lazy = hops(spark, CHAIN, backend="spark")
    assert ra.report(lazy) is None
    assert lazy.count() == 6
    report = ra.report(lazy)
    assert report is not None
    assert (report.backend, report.reason) == ("spark", 'requested by backend="spark"')
    assert report.seconds["plan"] > 0


@pytest.mark.parametrize("reason", ["no slots", "a Spark Connect session"])
def test_an_obstacle_is_the_reason(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    monkeypatch.setattr(SparkBackend, "obstacle", lambda *_: reason)
    report = ra.report(hops(spark, CHAIN))
    assert report is not None
    assert (report.backend, report.reason) == ("dataframe", reason)
    with pytest.raises(ra.UnsupportedError) as e:
        hops(spark, CHAIN, backend="spark")
    assert (e.value.code, e.value.message) == ("PARALAGG_BACKEND_UNAVAILABLE", reason)


def test_integers_are_summed_as_bigint_whatever_the_base_has(spark: SparkSession) -> None:
    base = spark.sql("SELECT 1 AS k, 2 AS n")
    found = base.recursive_agg("k", {"n": "sum"}, step=lambda r: r.where("k < 3").select((r.k + 1).alias("k"), "n"))
    assert found.dtypes == [("k", "int"), ("n", "bigint")]
    assert_same_rows(rows_of(found), [(1, 2), (2, 2), (3, 2)])


@pytest.mark.parametrize("backend", ["spark", "dataframe"])
def test_names_with_dots_and_backticks(spark: SparkSession, backend: str) -> None:
    base = frame(spark, "`a.b` bigint, `c``d` bigint", [(1, 5)])
    found = base.recursive_agg(
        "a.b",
        {"c`d": "min"},
        step=lambda r: r.where("`a.b` < 3").selectExpr("`a.b` + 1 AS `a.b`", "`c``d` AS `c``d`"),
        backend=backend,
    )
    assert found.columns == ["a.b", "c`d"]
    assert_same_rows(rows_of(found), [(1, 5), (2, 5), (3, 5)])
