"""Write results to Delta tables, and refresh recursive tables after inserts."""

from __future__ import annotations

import random
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta.tables import DeltaTable
from lake import EDGES, STARTS, Lake, delta_session, distances, edges_of, failure
from probes import confs
from pyspark.errors import AnalysisException
from queries import chain, chain_total, paths, total
from stage import print_facts
from views import PROGRAMS, has_full_fixpoint

import pyspark_paralagg as ra
from pyspark_paralagg.session.condition import condition_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def pipeline(spark: SparkSession) -> dict[str, Any]:
    """Maintain three tables by DataFrame calls: roads, edges from the roads, distances over the edges."""
    lake = Lake(spark, "pipeline")
    lake.add("roads", [("a", "b", 4), ("b", "c", 4)], "here string, there string, km bigint")
    started_at = spark.sql("SELECT current_timestamp()").first()[0]
    time.sleep(1)

    def edges(**options: str) -> DataFrame:
        return lake.read("roads", **options).selectExpr("here AS src", "there AS dst", "km AS w")

    def dist(**options: str) -> DataFrame:
        e = lake.read("edges", **options)
        step = lambda d: d.join(e, d.node == e.src).selectExpr("dst AS node", "dist + w AS dist")  # noqa: E731
        return spark.sql("SELECT 'a' AS node, 0L AS dist").recursive_agg("node", {"dist": "min"}, step=step)

    def distances() -> dict[str, int]:
        return {row["node"]: row["dist"] for row in lake.read("dist").collect()}

    edges().write.format("delta").save(lake.path("edges"))
    dist().write.format("delta").save(lake.path("dist"))
    facts: dict[str, Any] = {"written": distances()}
    lake.add("roads", [("a", "c", 1), ("c", "d", 1)], "here string, there string, km bigint")
    facts["by timestamp"] = edges(timestampAsOf=str(started_at + timedelta(milliseconds=500))).count()
    edges().write.format("delta").mode("overwrite").save(lake.path("edges"))
    facts["by version"] = {row["node"]: row["dist"] for row in dist(versionAsOf="0").collect()}
    table = DeltaTable.forPath(spark, lake.path("dist")).alias("t")
    merged = table.merge(dist().alias("s"), "t.node = s.node").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merged.execute()
    facts["merged"] = distances()
    dist().selectExpr("concat(node, '!') AS node", "dist").write.format("delta").mode("append").save(lake.path("dist"))
    facts["appended"] = len(distances())
    lake.sql("OPTIMIZE {}", "edges")
    dist().write.format("delta").mode("overwrite").save(lake.path("dist"))
    facts["overwritten"] = distances()
    try:
        dist().withColumnRenamed("dist", "far").write.format("delta").mode("append").save(lake.path("dist"))
    except AnalysisException as problem:
        facts["schema"] = condition_of(problem)
    return facts


def equal(spark: SparkSession) -> dict[str, Any]:
    """Insert random rows into both sources, then into one. Compare every table with the full fixpoint."""
    rng = random.Random(11)  # noqa: S311 - reproducible
    lake = Lake(spark, "equal")
    lake.add("edges", edges_of(rng, 40, 30), EDGES)
    lake.add("starts", [(0, 0), (1, 5)], STARTS)
    views = {name: make(spark, lake) for name, make in PROGRAMS.items()}
    views["dist"] = lake.shortest("dist")
    kinds: dict[str, list[str]] = {name: [view.refresh().kind] for name, view in views.items()}
    lake.add("edges", edges_of(rng, 45, 6), EDGES)
    lake.add("starts", [(rng.randrange(45), 3), (None, 1)], STARTS)
    for name, view in views.items():
        kinds[name].append(view.refresh().kind)
    lake.add("edges", edges_of(rng, 45, 4), EDGES)
    kinds["dist"].append(views["dist"].refresh().kind)
    kinds["closure"].append(views["closure"].refresh().kind)
    same = {name: has_full_fixpoint(view) for name, view in views.items() if name in ("dist", "closure")}
    # The other tables are compared after they have read the last batch.
    for name in views.keys() - same.keys():
        kinds[name].append(views[name].refresh().kind)
        same[name] = has_full_fixpoint(views[name])
    edges, starts = lake.rows("edges"), lake.rows("starts")
    by_hand = distances([(s, d, w) for d, s, w in edges], [(n, d) for d, n in starts if n is not None])
    return {
        "kinds": kinds,
        "same": same,
        "by_hand": [r for r in lake.rows("dist") if r[1] is not None] == by_hand,
        "null_key": any(None in r for r in lake.rows("dist")),
    }


def reports(spark: SparkSession) -> dict[str, Any]:
    """Return report, history and status. A refresh without new rows writes nothing, one without effect its record."""
    lake = Lake(spark, "reports")
    lake.add("edges", [(0, 1, 4), (1, 2, 4)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    before = own_confs(spark)
    view = lake.shortest("dist")
    first = view.refresh()
    unchanged = view.refresh()
    version = lake.version("dist")
    lake.add("edges", [(0, 2, 3), (2, 9, 1)], EDGES)
    status = view.status()
    second = view.refresh()
    lake.add("edges", [(0, 2, 100)], EDGES)
    third = view.refresh()
    lake.sql("OPTIMIZE {}", "dist")
    lake.sql("OPTIMIZE {}", "edges")
    lake.sql("ALTER TABLE {} SET TBLPROPERTIES ('made_by' = 'me')", "dist")
    optimized = view.refresh()
    lake.add("edges", [(9, 10, 1)], EDGES)
    fourth = view.refresh()
    forced = view.refresh(full=True)
    return {
        "forced": [forced.kind, forced.reason, forced.version == fourth.version + 1, view.status().kind],
        "kinds": [r.kind for r in (first, unchanged, second, third, optimized, fourth)],
        "versions": [r.version for r in (first, unchanged, second, third, optimized, fourth)],
        "version_after_nothing": version,
        "rows": [[r.inserted, r.updated] for r in (first, second, third, fourth)],
        "iterations": [first.iterations > 0, second.iterations > 0, unchanged.iterations],
        "sources": [str(second.sources["edges"]), str(second.sources["starts"])],
        "status": [status.kind, dict(status.pending["edges"])],
        "history": [[h["version"], h["kind"], h["sources"]["edges"]] for h in view.history()],
        "text": [second.to_json().startswith('{"target"'), "incremental refresh of" in repr(second)],
        "result": lake.rows("dist"),
        "confs": own_confs(spark) == before,
        "session_of_rdds": spark.sparkContext.parallelize([(1,)]).toDF(["a"]).sparkSession is spark,
    }


def own_confs(spark: SparkSession) -> dict[str, str]:
    """Return the session's confs, except the one in which Delta stores its last commit."""
    return {key: value for key, value in confs(spark).items() if "lastCommitVersion" not in key}


def texts(spark: SparkSession) -> dict[str, Any]:
    """Refresh Datalog tables: of one recursion, and of one that reads another recursion."""
    lake = Lake(spark, "texts")
    lake.add("edge", [(1, 2, 3), (2, 3, 3)], EDGES)
    lake.add("start", [(1,)], "x bigint")
    single = """
        both(x, y, w) :- edge(x, y, w). both(y, x, w) :- edge(x, y, w).
        dist(x, 0) :- start(x).
        dist(y, $MIN(d + w)) :- dist(x, d), both(x, y, w).
        .assume edge.w >= 0
    """
    nested = """
        reach(x) :- start(x). reach(y) :- reach(x), edge(x, y, _).
        far(x) :- reach(x), x > 1. far(y) :- far(x), reach(y), edge(x, y, _).
    """
    sources = {"edge": lake.path("edge"), "start": lake.path("start")}
    dist = ra.delta.RecursiveTable.datalog(spark, lake.path("dist"), single, "dist", sources=sources)
    far = ra.delta.RecursiveTable.datalog(spark, lake.path("far"), nested, "far", sources=sources)
    first = [dist.refresh().kind, far.refresh().kind]
    lake.add("edge", [(9, 3, 1), (3, 4, 1)], EDGES)
    then = [dist.refresh(), far.refresh()]
    wrong = ra.delta.RecursiveTable.datalog
    return {
        "first": first,
        "then": [r.kind for r in then],
        "why": then[1].reason,
        "dist": sorted(tuple(r) for r in lake.read("dist").collect()),
        "far": lake.rows("far"),
        "unknown": failure(lambda: wrong(spark, lake.path("z"), single, "dst", sources=sources)),
    }  # fmt: skip


def written(spark: SparkSession) -> dict[str, Any]:
    """Write a result to a Delta table, read it, and run a recursion over it."""
    path = str(Path("paths").absolute())
    chain(spark, 30, backend="spark").write.format("delta").save(path)
    stored = spark.read.format("delta").load(path)
    edges = stored.selectExpr("node as src", "node + 1 as dst", "1L as w")
    recursed = paths(stored.where("node = 0"), edges, backend="spark")
    return {"stored": total(stored) == chain_total(30), "recursed": total(recursed) == chain_total(31)}


if __name__ == "__main__":
    spark = delta_session(slots=4)
    print_facts(spark, *[globals()[name] for name in sys.argv[1:]])
    spark.stop()
