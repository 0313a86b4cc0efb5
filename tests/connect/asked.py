"""The functions that tests ask a Connect client to run; arguments and results are JSON values."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import compiled_plans
import test_fixtures
import test_graph
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it

import pyspark_paralagg as ra
from pyspark_paralagg.session.conf import PYTHON_TASKS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def fixture(spark: SparkSession, case: str, tasks: int) -> None:
    """Compare the rows of a fixture, computed in this many tasks, with those that are written down."""
    spark.conf.set(PYTHON_TASKS.name, tasks)
    try:
        test_fixtures.check(spark, case, "python")
    finally:
        spark.conf.unset(PYTHON_TASKS.name)


def fixture_by_shim(spark: SparkSession, case: str) -> None:
    """Compare the rows of a fixture, computed by the shim in the server, with those that are written down."""
    test_fixtures.check(spark, case, "spark")


def sql(spark: SparkSession, text: str) -> list[list[Any]]:
    """Return the rows of a query."""
    return sorted(list(row) for row in spark.sql(text).collect())


def plans(spark: SparkSession, case: str) -> list[Any]:
    """Return the Plans of a fixture's recursions."""
    return compiled_plans.plans(spark, case)


def why(spark: SparkSession) -> list[str]:
    """Return proofs of a row of a text and of a DataFrame's recursion, and the codes of what is refused."""
    edges = spark.createDataFrame([(1, 2, 1), (2, 3, 2), (1, 3, 9)], "src long, dst long, w long").alias("roads")
    base = spark.createDataFrame([(1, 0)], "node long, dist long")
    df = base.recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.w).alias("dist")
        ),
    )
    text = ra.datalog(
        spark,
        "dist(x, 0) :- start(x). dist(y, $MIN(d + w)) :- dist(x, d), road(x, y, w).",
        road=edges,
        start=base.select("node"),
    )
    proofs = [ra.why(text["dist"], {text["dist"].columns[0]: 3}), ra.why(df, node=3), ra.why_not(df, node=4)]
    by_frames = base.recursive_agg("node", {"dist": "min"}, step=lambda d: d, backend="dataframe")
    codes = []
    for refused in (by_frames, df.where("dist > 1")):
        try:
            ra.why(refused, node=1)
        except ra.UnsupportedError as problem:  # noqa: PERF203 - two of them
            codes.append(problem.code)
    return [*"\n".join(map(str, proofs)).splitlines(), " ".join(codes)]


def why_in_sql(spark: SparkSession, query: str, node: int, missing: int) -> list[str]:
    """Return a proof of a row of the recursion that a query of SQL reads, and what a missing row lacks."""
    df = spark.sql(query)
    return [*str(ra.why(df, node=node)).splitlines(), *str(ra.why_not(df, node=missing)).splitlines()]


def hold_a_checkpoint(spark: SparkSession) -> str:
    """Leave a recursion whose step reads the variable that holds its result, over checkpointed rows."""
    d = spark.createDataFrame([(1,), (2,)], "node long").localCheckpoint()
    d = d.recursive_agg("node", step=lambda r: r.join(d, "node", "left_semi"))
    return str(ra.why(d, node=2))


def refused(spark: SparkSession, what: str) -> str:
    """Run shortest paths with a step that Python cannot analyse, by ``auto``; return the executor and the reason."""
    edges = spark.createDataFrame([(1, 2, 1), (2, 3, 2), (1, 3, 9)], "src long, dst long, w long")
    base = spark.createDataFrame([(1, 0)], "node long, dist long")
    edges.createOrReplaceTempView("roads")
    join = "SELECT dst AS node, dist + w AS dist FROM {} JOIN roads ON node = src"

    def along(d: DataFrame) -> DataFrame:
        return d.join(edges, d.node == edges.src).select(edges.dst.alias("node"), (d.dist + edges.w).alias("dist"))

    def by_view(d: DataFrame) -> DataFrame:
        d.createOrReplaceTempView("reached")
        return spark.sql(join.format("reached"))

    steps = {
        "udf": lambda d: along(d).withColumn("dist", F.udf(lambda x: x, "long")("dist")),
        "function": lambda d: along(d).where(F.upper(F.lit("a")) == "A"),
        "view": by_view,
        "argument": lambda d: spark.sql(join.format("{d}"), d=d),
    }
    result = base.recursive_agg("node", {"dist": "min"}, step=steps[what], mode="trust")
    assert sorted(map(tuple, result.collect())) == [(1, 0), (2, 1), (3, 3)]
    report = ra.report(result)
    return f"{report.backend}: {report.reason}"


def graph(spark: SparkSession, name: str) -> list[Any]:
    """Return the sorted rows of an algorithm of ``ra.graph`` on a small graph."""
    return sorted(map(list, test_graph.small(spark, name).collect()))


def misused(spark: SparkSession, what: str, backend: str = "python") -> None:
    """Run a step that is wrong, or whose data are."""
    edges = spark.createDataFrame([(1, 2, 1), (2, 1, -2)], "src long, dst long, w long")
    base = spark.createDataFrame([(1, 0)], "node long, dist long")

    def along(d: DataFrame) -> DataFrame:
        return d.join(edges, d.node == edges.src).select(edges.dst.alias("node"), (d.dist + edges.w).alias("dist"))

    def reads_rows(d: DataFrame) -> DataFrame:
        return along(d).limit(d.where("node > 5").count())

    steps = {
        "reads rows": reads_rows,
        "outer join": lambda d: d.join(edges, d.node == edges.src, "full").select("node", "dist"),
    }
    options = {
        "limit": {"max_iterations": 1, "mode": "iterate"},
        "assumption": {"assume": "w >= 0"},
        "unknown column": {"assume": "weight >= 0"},
    }
    step = steps.get(what, along)
    spark.conf.set(PYTHON_TASKS.name, 3 if what == "more tasks than slots" else 1)
    try:
        base.recursive_agg("node", {"dist": "min"}, step=step, backend=backend, **options.get(what, {})).collect()
    finally:
        spark.conf.unset(PYTHON_TASKS.name)


def datalog(spark: SparkSession, text: str, relation: str, facts: list[list[int]]) -> list[list[Any]]:
    """Return the rows of a relation of a text over ``edge``."""
    edge = spark.createDataFrame([tuple(f) for f in facts], "src long, dst long")
    result = ra.datalog(spark, text, edge=edge)[relation]
    assert "Executor: python" in ra.explain(result)
    return sorted(list(row) for row in result.collect())


def shown(spark: SparkSession) -> dict[str, Any]:
    """Return what the report, ``explain`` and ``doctor`` say of a run, also after further transformations."""
    base = spark.range(1).selectExpr("id as node", "0L as hops")
    result = base.recursive_agg(
        "node", {"hops": "min"}, step=lambda d: d.where("node < 9").selectExpr("node + 1 as node", "hops + 1 as hops")
    )
    before = ra.report(result)
    further = result.where("hops > 2").groupBy().count()
    counted = further.collect()[0][0]
    report = ra.report(further)
    return {
        "before": before,
        "backend": report.backend,
        "counted": counted,
        "iterations": report.iterations,
        "tuples": report.tuples,
        "rounds": len(report.rounds),
        "explained": ra.explain(further),
        "doctor": str(ra.doctor()),
    }


def kept_indexes(spark: SparkSession, folder: str) -> list[bool]:
    """Return which of four queries over one graph use kept indexes; they are freed after the second."""
    spark.createDataFrame([(1, 2), (2, 3)], "src long, dst long").write.parquet(folder)
    edges = spark.read.parquet(folder)
    spark.conf.set("spark.paralagg.keepIndexes", "true")
    used = []
    for n in range(4):
        found = spark.range(1, 2 + n).recursive_agg(
            "id", step=lambda r: r.join(edges, r.id == edges.src).select(edges.dst.alias("id"))
        )
        assert found.count() == max(3, 1 + n)
        used.append("kept indexes" in ra.report(found).form)
        if n == 1:
            ra.free_indexes(spark)
    spark.conf.unset("spark.paralagg.keepIndexes")
    return used


def interrupted(spark: SparkSession) -> float:
    """Cancel a recursion that never ends; return the seconds until its query has ended."""
    base = spark.range(1).selectExpr("id as node", "0D as x")
    endless = base.recursive_agg(
        "node", {"x": "sum"}, step=lambda d: d.selectExpr("node", "x + 1 as x"), mode="iterate", max_iterations=1 << 40
    )
    spark.addTag("endless")
    timer = threading.Timer(3, lambda: spark.interruptTag("endless"))
    timer.start()
    start = time.monotonic()
    try:
        endless.collect()
    except Exception as problem:  # noqa: BLE001 - Spark's class for it differs
        assert "CANCEL" in str(problem).upper(), problem  # noqa: PT017 - the client has no pytest
    finally:
        spark.removeTag("endless")
    return time.monotonic() - start


def lacking(spark: SparkSession) -> dict[str, str]:
    """Return what a session says whose workers lack packages: the reason of ``auto``, an error, ``doctor``."""
    base = spark.range(1).selectExpr("id as node")

    def run(backend: str | None) -> DataFrame:
        return base.recursive_agg(
            "node", step=lambda d: d.where("node < 2").selectExpr("node + 1 as node"), backend=backend
        )

    by_auto = run(None)
    assert sorted(row.node for row in by_auto.collect()) == [0, 1, 2]
    try:
        run("python")
        error = "none"
    except ra.errors.UnsupportedError as problem:
        error = str(problem)
    return {"auto": ra.report(by_auto).reason, "python": error, "doctor": str(ra.doctor())}
