"""Recursive tables on Delta: refreshes that continue, that cannot, that meet another writer."""

from __future__ import annotations

import random
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta.tables import DeltaTable
from lake import EDGES, STARTS, Lake, delta_session, distances, edges_of, failure, in_order
from probes import confs
from pyspark.errors import AnalysisException
from stage import tell, wait_until

import pyspark_paralagg as ra
from pyspark_paralagg.delta import commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from lake import Tables
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.delta.tables import Commit


def closure_by_doubling(spark: SparkSession, lake: Lake) -> ra.delta.RecursiveTable:
    def step(d: DataFrame, _: Tables) -> DataFrame:
        on = d.selectExpr("src AS via", "dst AS last")
        return d.join(on, d.dst == on.via).selectExpr("src", "last AS dst")

    edges = {"edges": lake.path("edges")}
    return ra.delta.RecursiveTable(
        spark,
        lake.path("closure"),
        keys=["src", "dst"],
        sources=edges,
        base=lambda t: t["edges"].select("src", "dst"),
        step=step,
    )


def components(spark: SparkSession, lake: Lake) -> ra.delta.RecursiveTable:
    """The edges are read four times: twice by the base, twice by the step."""

    def step(d: DataFrame, t: Tables) -> DataFrame:
        e = t["edges"]
        there = d.join(e, d.node == e.src).selectExpr("dst AS node", "label")
        return there.unionAll(d.join(e, d.node == e.dst).selectExpr("src AS node", "label"))

    def base(t: Tables) -> DataFrame:
        e = t["edges"]
        return e.selectExpr("src AS node", "src AS label").unionAll(e.selectExpr("dst AS node", "dst AS label"))

    return ra.delta.RecursiveTable(
        spark,
        "labels",
        keys="node",
        aggs={"label": "min"},
        sources={"edges": lake.path("edges")},
        base=base,
        step=step,
    )


def two_hops(spark: SparkSession, lake: Lake) -> ra.delta.RecursiveTable:
    """A step that joins the edges with themselves, and a carried column."""

    def step(d: DataFrame, t: Tables) -> DataFrame:
        e = t["edges"]
        f = t["edges"].selectExpr("src AS mid", "dst AS last", "w AS more")
        both = e.join(f, e.dst == f.mid)
        return d.join(both, d.node == both.src).selectExpr("last AS node", "wide + w + more AS wide", "first")

    return ra.delta.RecursiveTable(
        spark,
        lake.path("hops"),
        keys="node",
        aggs={"wide": "min", "first": ra.min_by("wide")},
        sources={"edges": lake.path("edges"), "starts": lake.path("starts")},
        base=lambda t: t["starts"].selectExpr("node", "dist AS wide", "node AS first"),
        step=step,
    )


def widest(spark: SparkSession, lake: Lake) -> ra.delta.RecursiveTable:
    """Strings as keys, some of them null."""

    def step(d: DataFrame, t: Tables) -> DataFrame:
        e = t["edges"].selectExpr("cast(src AS string) AS a", "nullif(cast(dst AS string), '3') AS b", "w")
        return d.join(e, d.key == e.a).selectExpr("b AS key", "least(width, w) AS width")

    return ra.delta.RecursiveTable(
        spark,
        lake.path("widest"),
        keys="key",
        aggs={"width": "max"},
        sources={"edges": lake.path("edges"), "starts": lake.path("starts")},
        base=lambda t: t["starts"].selectExpr("nullif(cast(node AS string), '1') AS key", "100L AS width"),
        step=step,
    )


PROGRAMS = {"closure": closure_by_doubling, "labels": components, "hops": two_hops, "widest": widest}


def pipeline(spark: SparkSession) -> dict[str, Any]:
    """Three tables by ordinary DataFrame calls: roads, the edges made of them, the distances over these."""
    lake = Lake(spark, "pipeline")
    lake.add("roads", [("a", "b", 4), ("b", "c", 4)], "here string, there string, km bigint")
    began = spark.sql("SELECT current_timestamp()").first()[0]
    time.sleep(1)

    def edges(**options: str) -> DataFrame:
        return lake.read("roads", **options).selectExpr("here AS src", "there AS dst", "km AS w")

    def dist(**options: str) -> DataFrame:
        e = lake.read("edges", **options)
        step = lambda d: d.join(e, d.node == e.src).selectExpr("dst AS node", "dist + w AS dist")  # noqa: E731
        return spark.sql("SELECT 'a' AS node, 0L AS dist").recursive_agg("node", {"dist": "min"}, step=step)

    def kept() -> dict[str, int]:
        return {row["node"]: row["dist"] for row in lake.read("dist").collect()}

    edges().write.format("delta").save(lake.path("edges"))
    dist().write.format("delta").save(lake.path("dist"))
    told: dict[str, Any] = {"written": kept()}
    lake.add("roads", [("a", "c", 1), ("c", "d", 1)], "here string, there string, km bigint")
    told["by timestamp"] = edges(timestampAsOf=str(began + timedelta(milliseconds=500))).count()
    edges().write.format("delta").mode("overwrite").save(lake.path("edges"))
    told["by version"] = {row["node"]: row["dist"] for row in dist(versionAsOf="0").collect()}
    table = DeltaTable.forPath(spark, lake.path("dist")).alias("t")
    merged = table.merge(dist().alias("s"), "t.node = s.node").whenMatchedUpdateAll().whenNotMatchedInsertAll()
    merged.execute()
    told["merged"] = kept()
    dist().selectExpr("concat(node, '!') AS node", "dist").write.format("delta").mode("append").save(lake.path("dist"))
    told["appended"] = len(kept())
    lake.sql("OPTIMIZE {}", "edges")
    dist().write.format("delta").mode("overwrite").save(lake.path("dist"))
    told["overwritten"] = kept()
    try:
        dist().withColumnRenamed("dist", "far").write.format("delta").mode("append").save(lake.path("dist"))
    except AnalysisException as problem:
        told["schema"] = problem.getCondition()
    return told


def equal(spark: SparkSession) -> dict[str, Any]:
    """Random inserts into both sources at once, then into one; every table against the fixpoint that begins anew."""
    rng = random.Random(11)  # noqa: S311 - the same each time
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
    same = {name: _anew(view) for name, view in views.items() if name in ("dist", "closure")}
    # The others have not seen the last batch: their kept rows are compared once they have.
    for name in views.keys() - same.keys():
        kinds[name].append(views[name].refresh().kind)
        same[name] = _anew(views[name])
    edges, starts = lake.rows("edges"), lake.rows("starts")
    by_hand = distances([(s, d, w) for d, s, w in edges], [(n, d) for d, n in starts if n is not None])
    return {
        "kinds": kinds,
        "same": same,
        "by_hand": [r for r in lake.rows("dist") if r[1] is not None] == by_hand,
        "null_key": any(None in r for r in lake.rows("dist")),
    }


def _anew(view: ra.delta.RecursiveTable) -> bool:
    """Whether the table has the rows of the whole fixpoint over the sources as they are, and some."""
    program, sources = view._read_sources()
    whole = program.whole({name: table.read(snapshot.version) for name, (table, snapshot) in sources.items()})
    kept = view._target.read(view._target.snapshot().version).select(*whole.columns)
    return in_order(kept) == in_order(whole) != []


def reports(spark: SparkSession) -> dict[str, Any]:
    """What report, history and status say; a refresh with nothing new writes nothing, one without effect its record."""
    lake = Lake(spark, "reports")
    lake.add("edges", [(0, 1, 4), (1, 2, 4)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    before = own_confs(spark)
    view = lake.shortest("dist")
    first = view.refresh()
    again = view.refresh()
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
        "kinds": [r.kind for r in (first, again, second, third, optimized, fourth)],
        "versions": [r.version for r in (first, again, second, third, optimized, fourth)],
        "version_after_nothing": version,
        "rows": [[r.inserted, r.updated] for r in (first, second, third, fourth)],
        "iterations": [first.iterations > 0, second.iterations > 0, again.iterations],
        "sources": [str(second.sources["edges"]), str(second.sources["starts"])],
        "status": [status.kind, dict(status.pending["edges"])],
        "history": [[h["version"], h["kind"], h["sources"]["edges"]] for h in view.history()],
        "text": [second.to_json().startswith('{"target"'), "incremental refresh of" in repr(second)],
        "result": lake.rows("dist"),
        "confs": own_confs(spark) == before,
        "session_of_rdds": spark.sparkContext.parallelize([(1,)]).toDF(["a"]).sparkSession is spark,
    }


def own_confs(spark: SparkSession) -> dict[str, str]:
    """The session's confs, but for the one in which Delta itself notes its last commit."""
    return {key: value for key, value in confs(spark).items() if "lastCommitVersion" not in key}


def reasons(spark: SparkSession) -> dict[str, Any]:
    """Why a refresh takes all rows anew, asked of ``status`` and, once, done."""
    lake = Lake(spark, "reasons")
    lake.add("edges", [(0, 1, 4), (1, 2, 4)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    view = lake.shortest("dist")
    told = {"first": view.status().reason}
    view.refresh()

    def doubled(d: DataFrame, t: Tables) -> DataFrame:
        return d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "dist + w + w AS dist")

    told["another step"] = lake.shortest("dist", step=doubled).status().reason
    told["another constant"] = lake.shortest("dist", base=lambda t: t["starts"].where("node < 7")).status().reason
    told["clock"] = _after_refresh(
        lake.shortest("clock", base=lambda t: t["starts"].where("current_date() > date'2020-01-01'"))
    )
    named = {
        "limit": lake.shortest("limit", max_iterations=5, on_limit="return"),
        "backend": lake.shortest("local", backend="dataframe"),
        "anti join": lake.shortest("anti", base=_without_dead_ends),
        "aggregate": lake.shortest("grouped", base=lambda t: t["starts"].groupBy("node").agg({"dist": "min"}).toDF(
            "node", "dist")),
        "sum": _paths(lake),
    }  # fmt: skip
    for one in named.values():
        one.refresh()
    lake.add("edges", [(5, 6, 1)], EDGES)
    lake.add("starts", [(6, 2)], STARTS)
    told |= {name: one.status().reason for name, one in named.items()}
    told["incremental"] = view.status().kind
    lake.sql("DELETE FROM {} WHERE src = 1", "edges")
    told["delete"] = view.status().reason
    done = view.refresh()
    told["done"] = [done.kind, done.reason == told["delete"], lake.rows("dist")]
    lake.sql("UPDATE {} SET w = 5 WHERE src = 0", "edges")
    told["update"] = view.status().reason
    view.refresh()
    lake.add("dist", [(77, 1)], STARTS)
    told["another writer"] = view.status().reason
    view.refresh()
    told["its rows are gone"] = all(77 not in row for row in lake.rows("dist"))
    lake.add("edges", [(0, 8, 1)], EDGES)
    lake.sql("OPTIMIZE {}", "edges")
    lake.sql("VACUUM {} RETAIN 0 HOURS", "edges")
    told["vacuumed"] = view.status().reason
    told["after vacuum"] = [view.refresh().kind, (1, 8) in lake.rows("dist")]
    lake.sql("ALTER TABLE {} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)", "starts")
    told["no feed"] = view.status().reason
    lake.add("edges2", [(0, 1, 4)], EDGES)
    elsewhere = {"edges": lake.path("edges2"), "starts": lake.path("starts")}
    told["replaced"] = lake.shortest("dist", sources=elsewhere).status().reason
    return told


def _after_refresh(view: ra.delta.RecursiveTable) -> str:
    view.refresh()
    return view.status().reason


def _without_dead_ends(t: Tables) -> DataFrame:
    starts, edges = t["starts"], t["edges"]
    return starts.join(edges, starts.node == edges.dst, "left_anti")


def _paths(lake: Lake) -> ra.delta.RecursiveTable:
    return ra.delta.RecursiveTable(
        lake.spark, lake.path("paths"), keys="node", aggs={"ways": "sum"},
        sources={"edges": lake.path("edges"), "starts": lake.path("starts")},
        base=lambda t: t["starts"].selectExpr("node", "1L AS ways"),
        step=lambda d, t: d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "ways"),
    )  # fmt: skip


def bad(spark: SparkSession) -> dict[str, Any]:
    """Wrong use: class and code, and the target as it was."""
    lake = Lake(spark, "bad")
    lake.add("edges", [(0, 1, 4)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    lake.add("mine", [(1, 2)], STARTS)
    lake.add("odd", [(1, 2)], "node bigint, distance bigint")
    told: dict[str, Any] = {
        "foreign": failure(lake.shortest("mine").refresh),
        "schema": failure(lake.shortest("odd").refresh),
        "untouched": [lake.version("mine"), lake.version("odd")],
        "column": failure(lambda: lake.shortest("dist", base=lambda t: t["starts"].selectExpr("nod", "dist"))),
        "source": failure(lambda: lake.shortest("dist", base=lambda t: t["start"])),
        "no table": failure(
            lambda: ra.delta.RecursiveTable(
                spark, lake.path("x"), keys="a", sources={"e": lake.path("nix")}, base=dict, step=dict
            )
        ),
        "untracked": failure(lambda: lake.shortest("dist", base=lambda _: lake.read("starts"))),
        "no dataframe": failure(lambda: lake.shortest("dist", base=lambda _: None)),
    }
    view = lake.shortest("dist")
    view.refresh()
    lake.sql("ALTER TABLE {} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')", "edges")
    lake.sql("ALTER TABLE {} RENAME COLUMN w TO weight", "edges")
    told["renamed"] = failure(view.refresh)
    told["after renaming"] = lake.version("dist")
    # An empty table of the right shape may be filled: its owner has set it up.
    spark.sql("CREATE TABLE prepared (dist BIGINT, node BIGINT) USING delta TBLPROPERTIES ('made_by' = 'me')")
    filled = ra.delta.RecursiveTable(
        spark, "prepared", keys="node", aggs={"dist": "min"}, sources={"starts": lake.path("starts")},
        base=lambda t: t["starts"],
        step=lambda d, _: d.selectExpr("node + 1 AS node", "dist + 1 AS dist").where("node < 4"),
    ).refresh()  # fmt: skip
    told["prepared"] = [filled.kind, spark.table("prepared").count()]
    told["properties"] = spark.sql("SHOW TBLPROPERTIES prepared ('made_by')").first()[1]
    return told


def conflicts(spark: SparkSession) -> dict[str, Any]:
    """One refresh stops before its write, another one overtakes it; before and within Delta's own transaction."""
    lake = Lake(spark, "conflicts")
    lake.add("edges", [(0, 1, 4), (1, 2, 4)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    lake.shortest("dist").refresh()
    return {"before": _overtaken(lake, within=False), "within": _overtaken(lake, within=True)}


def _overtaken(lake: Lake, *, within: bool) -> dict[str, Any]:
    lake.add("edges", [(0, 5, 1), (0, 1, 2 - within)], EDGES)
    flag, arrived, go = Path(f"go-{within}").absolute(), threading.Event(), threading.Event()
    merge, ended = commit.Writer.merge, []

    def slow(writer: commit.Writer, rows: DataFrame, *columns: Sequence[str]) -> Commit:
        arrived.set()
        if not within:
            go.wait(60)
            return merge(writer, rows, *columns)
        waiting = rows.coalesce(1).mapInArrow(_waiter(str(flag)), rows.schema)
        return merge(writer, waiting, *columns)

    def run() -> None:
        try:
            ended.append(lake.shortest("dist").refresh().kind)
        except ra.ConflictError as problem:
            ended.append([problem.code, "retryable" in str(problem)])

    first = threading.Thread(target=run)
    commit.Writer.merge = slow
    first.start()
    arrived.wait(60)
    commit.Writer.merge = merge
    if within:
        wait_until(lambda: flag.with_suffix(".waiting").exists(), 60, "the refresh waits")
    second = lake.shortest("dist").refresh()
    go.set()
    flag.touch()
    first.join(120)
    version = lake.version("dist")
    again = lake.shortest("dist").refresh()
    return {"first": ended, "second": second.kind, "version": version == second.version, "again": again.kind}


def _waiter(flag: str) -> Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]:
    def wait(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import time  # noqa: PLC0415 - runs in a worker
        from pathlib import Path  # noqa: PLC0415 - likewise

        Path(flag).with_suffix(".waiting").touch()
        began = time.monotonic()
        while not Path(flag).exists() and time.monotonic() - began < 60:
            time.sleep(0.02)
        yield from batches

    return wait


def texts(spark: SparkSession) -> dict[str, Any]:
    """Datalog: one recursion goes on, a second one below it begins anew."""
    lake = Lake(spark, "texts")
    lake.add("edge", [(1, 2, 3), (2, 3, 3)], EDGES)
    lake.add("start", [(1,)], "x bigint")
    one = """
        both(x, y, w) :- edge(x, y, w). both(y, x, w) :- edge(x, y, w).
        dist(x, 0) :- start(x).
        dist(y, $MIN(d + w)) :- dist(x, d), both(x, y, w).
        .assume edge.w >= 0
    """
    two = """
        reach(x) :- start(x). reach(y) :- reach(x), edge(x, y, _).
        far(x) :- reach(x), x > 1. far(y) :- far(x), reach(y), edge(x, y, _).
    """
    sources = {"edge": lake.path("edge"), "start": lake.path("start")}
    dist = ra.delta.RecursiveTable.datalog(spark, lake.path("dist"), one, "dist", sources=sources)
    far = ra.delta.RecursiveTable.datalog(spark, lake.path("far"), two, "far", sources=sources)
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
        "unknown": failure(lambda: wrong(spark, lake.path("z"), one, "dst", sources=sources)),
    }  # fmt: skip


if __name__ == "__main__":
    spark = delta_session(slots=4)
    tell(spark, *[globals()[name] for name in sys.argv[1:]])
    spark.stop()
