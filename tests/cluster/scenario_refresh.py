"""Refresh recursive tables on Delta: incrementally, in full, and in conflict with another writer."""

from __future__ import annotations

import random
import sys
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta.tables import DeltaTable
from lake import EDGES, STARTS, Lake, delta_session, distances, edges_of, failure, in_order
from probes import confs
from pyspark.errors import AnalysisException
from queries import chain, chain_total, paths, total
from stage import print_facts, wait_until

import pyspark_paralagg as ra
from pyspark_paralagg.delta import commit, decide
from pyspark_paralagg.delta.record import refreshes
from pyspark_paralagg.session.condition import condition_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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


def components(spark: SparkSession, lake: Lake, target: str = "labels") -> ra.delta.RecursiveTable:
    """Return a table that reads the edges four times: twice in the base, twice in the step."""

    def step(d: DataFrame, t: Tables) -> DataFrame:
        e = t["edges"]
        there = d.join(e, d.node == e.src).selectExpr("dst AS node", "label")
        return there.unionAll(d.join(e, d.node == e.dst).selectExpr("src AS node", "label"))

    def base(t: Tables) -> DataFrame:
        e = t["edges"]
        return e.selectExpr("src AS node", "src AS label").unionAll(e.selectExpr("dst AS node", "dst AS label"))

    return ra.delta.RecursiveTable(
        spark,
        target,
        keys="node",
        aggs={"label": "min"},
        sources={"edges": lake.path("edges")},
        base=base,
        step=step,
    )


def two_hops(spark: SparkSession, lake: Lake) -> ra.delta.RecursiveTable:
    """Return a table whose step joins the edges with themselves, with a carried column."""

    def step(d: DataFrame, t: Tables) -> DataFrame:
        e = t["edges"]
        f = t["edges"].selectExpr("src AS mid", "dst AS last", "w AS more")
        pairs = e.join(f, e.dst == f.mid)
        return d.join(pairs, d.node == pairs.src).selectExpr("last AS node", "wide + w + more AS wide", "first")

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
    """Return a table with strings as keys, some of them null."""

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
    same = {name: _has_full_fixpoint(view) for name, view in views.items() if name in ("dist", "closure")}
    # The other tables are compared after they have read the last batch.
    for name in views.keys() - same.keys():
        kinds[name].append(views[name].refresh().kind)
        same[name] = _has_full_fixpoint(views[name])
    edges, starts = lake.rows("edges"), lake.rows("starts")
    by_hand = distances([(s, d, w) for d, s, w in edges], [(n, d) for d, n in starts if n is not None])
    return {
        "kinds": kinds,
        "same": same,
        "by_hand": [r for r in lake.rows("dist") if r[1] is not None] == by_hand,
        "null_key": any(None in r for r in lake.rows("dist")),
    }


def deletes(spark: SparkSession) -> dict[str, Any]:
    """Delete, update and merge rows of the edges, with an OPTIMIZE between. Compare every table with the fixpoint."""
    rng = random.Random(12)  # noqa: S311 - reproducible
    lake = Lake(spark, "deletes")
    lake.add("edges", [*edges_of(rng, 14, 30), (0, 1, 4), (0, 1, 4)], EDGES)
    lake.add("starts", [(0, 0), (1, 5)], STARTS)
    views = {name: make(spark, lake) for name, make in PROGRAMS.items()}
    views["labels"] = components(spark, lake, "deleted_labels")
    views["dist"] = lake.shortest("dist")
    for view in views.values():
        view.refresh(full=False)
    lake.sql("DELETE FROM {} WHERE dst IN (3, 4)", "edges")
    lake.sql("OPTIMIZE {}", "edges")
    lake.sql("UPDATE {} SET w = w + 2 WHERE src < 5", "edges")
    first = {name: view.refresh(full=False) for name, view in views.items()}
    same = {name: [_has_full_fixpoint(view)] for name, view in views.items()}
    spark.createDataFrame(edges_of(rng, 14, 9), EDGES).createOrReplaceTempView("more")
    lake.sql(
        "MERGE INTO {} t USING (SELECT src, dst, min(w) AS w FROM more GROUP BY src, dst) m "
        "ON t.src = m.src AND t.dst = m.dst "
        "WHEN MATCHED THEN DELETE WHEN NOT MATCHED THEN INSERT *",
        "edges",
    )
    lake.sql("DELETE FROM {} WHERE node = 1", "starts")
    second = {name: view.refresh(full=False) for name, view in views.items()}
    for name, view in views.items():
        same[name].append(_has_full_fixpoint(view))
    lake.add("edges", [(0, 50, 1)], EDGES)
    lake.sql("DELETE FROM {} WHERE dst = 50", "edges")
    last = views["dist"].refresh(full=False)
    return {
        "kinds": {name: [first[name].kind, second[name].kind] for name in views},
        "same": same,
        "reasons": [first["dist"].reason, second["dist"].reason],
        "duplicate": [last.kind, last.inserted, last.updated, last.deleted],
    }


def _has_full_fixpoint(view: ra.delta.RecursiveTable) -> bool:
    """Return whether the table has rows, and those of the full fixpoint over the current sources."""
    program, sources = view._read_sources()
    whole = program.whole({name: table.read(snapshot.version) for name, (table, snapshot) in sources.items()})
    stored = view._target.read(view._target.snapshot().version).select(*whole.columns)
    return in_order(stored) == in_order(whole) != []


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


def reasons(spark: SparkSession) -> dict[str, Any]:
    """Return the reasons of full refreshes, from ``status`` and from one refresh."""
    lake = Lake(spark, "reasons")
    lake.add("edges", [(0, 1, 4), (1, 2, 4)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    view = lake.shortest("dist")
    facts = {"first": view.status().reason}
    view.refresh(full=False)

    def doubled(d: DataFrame, t: Tables) -> DataFrame:
        return d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "dist + w + w AS dist")

    facts["another step"] = lake.shortest("dist", step=doubled).status().reason
    facts["another constant"] = lake.shortest("dist", base=lambda t: t["starts"].where("node < 7")).status().reason
    facts["clock"] = _after_refresh(
        lake.shortest("clock", base=lambda t: t["starts"].where("current_date() > date'2020-01-01'"))
    )
    named = {
        "limit": lake.shortest("limit", max_iterations=5, on_limit="return"),
        "backend": lake.shortest("local", backend="dataframe"),
        "anti join": lake.shortest("anti", base=_without_dead_ends),
        "aggregate": lake.shortest("grouped", base=lambda t: t["starts"].groupBy("node").agg({"dist": "min"}).toDF(
            "node", "dist")),
    }  # fmt: skip
    for table in named.values():
        table.refresh(full=False)
    lake.add("edges", [(5, 6, 1)], EDGES)
    lake.add("starts", [(6, 2)], STARTS)
    facts |= {name: table.status().reason for name, table in named.items()}
    facts["incremental"] = view.status().kind
    lake.sql("DELETE FROM {} WHERE src = 1", "edges")
    facts["delete"] = view.status().reason
    done = view.refresh(full=False)
    facts["done"] = [done.kind, done.reason == facts["delete"], done.deleted, lake.rows("dist")]
    lake.sql("UPDATE {} SET w = 5 WHERE src = 0", "edges")
    facts["update"] = view.status().reason
    view.refresh(full=False)
    lake.add("dist", [(77, 1)], STARTS)
    facts["another writer"] = view.status().reason
    view.refresh(full=False)
    facts["its rows are gone"] = all(77 not in row for row in lake.rows("dist"))
    lake.add("edges", [(0, 8, 1)], EDGES)
    lake.sql("OPTIMIZE {}", "edges")
    lake.sql("VACUUM {} RETAIN 0 HOURS", "edges")
    facts["vacuumed"] = view.status().reason
    facts["after vacuum"] = [view.refresh(full=False).kind, (1, 8) in lake.rows("dist")]
    lake.sql("ALTER TABLE {} SET TBLPROPERTIES (delta.enableChangeDataFeed = false)", "starts")
    facts["no feed"] = view.status().reason
    lake.add("edges2", [(0, 1, 4)], EDGES)
    elsewhere = {"edges": lake.path("edges2"), "starts": lake.path("starts")}
    facts["replaced"] = lake.shortest("dist", sources=elsewhere).status().reason
    return facts


def _after_refresh(view: ra.delta.RecursiveTable) -> str:
    view.refresh()
    return view.status().reason


def _without_dead_ends(t: Tables) -> DataFrame:
    starts, edges = t["starts"], t["edges"]
    return starts.join(edges, starts.node == edges.dst, "left_anti")


def bad(spark: SparkSession) -> dict[str, Any]:
    """Return class and code of errors of wrong use. The target stays unchanged."""
    lake = Lake(spark, "bad")
    lake.add("edges", [(0, 1, 4)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    lake.add("mine", [(1, 2)], STARTS)
    lake.add("odd", [(1, 2)], "node bigint, distance bigint")
    facts: dict[str, Any] = {
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
    facts["renamed"] = failure(view.refresh)
    facts["after renaming"] = lake.version("dist")
    # An empty table with the right columns may be filled: the user has prepared it.
    spark.sql("CREATE TABLE prepared (dist BIGINT, node BIGINT) USING delta TBLPROPERTIES ('made_by' = 'me')")
    filled = ra.delta.RecursiveTable(
        spark, "prepared", keys="node", aggs={"dist": "min"}, sources={"starts": lake.path("starts")},
        base=lambda t: t["starts"],
        step=lambda d, _: d.selectExpr("node + 1 AS node", "dist + 1 AS dist").where("node < 4"),
    ).refresh()  # fmt: skip
    facts["prepared"] = [filled.kind, spark.table("prepared").count()]
    facts["properties"] = spark.sql("SHOW TBLPROPERTIES prepared ('made_by')").first()[1]
    return facts


def conflicts(spark: SparkSession) -> dict[str, Any]:
    """Let a refresh overtake another, before and within Delta's transaction of the other."""
    lake = Lake(spark, "conflicts")
    lake.add("edges", [(0, 1, 4), (1, 2, 4)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    lake.shortest("dist").refresh()
    return {"before": _overtaken(lake, within=False), "within": _overtaken(lake, within=True)}


def _overtaken(lake: Lake, *, within: bool) -> dict[str, Any]:
    lake.add("edges", [(0, 5, 1), (0, 1, 2 - within)], EDGES)
    flag, arrived, go = Path(f"go-{within}").absolute(), threading.Event(), threading.Event()
    merge, ended = commit.Writer.merge, []

    def slow(writer: commit.Writer, rows: DataFrame, *args: Any, **kwargs: Any) -> Commit:  # noqa: ANN401 - passed on
        arrived.set()
        if not within:
            go.wait(60)
            return merge(writer, rows, *args, **kwargs)
        waiting = rows.coalesce(1).mapInArrow(_waiter(str(flag)), rows.schema)
        return merge(writer, waiting, *args, **kwargs)

    def run() -> None:
        try:
            ended.append(lake.shortest("dist").refresh().kind)
        except ra.ConflictError as problem:
            ended.append([problem.code, "call refresh() again" in str(problem)])

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
    retried = lake.shortest("dist").refresh()
    return {"first": ended, "second": second.kind, "version": version == second.version, "again": retried.kind}


def _waiter(flag: str) -> Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]:
    def wait(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        import time  # noqa: PLC0415 - runs in a worker
        from pathlib import Path  # noqa: PLC0415 - likewise

        Path(flag).with_suffix(".waiting").touch()
        started_at = time.monotonic()
        while not Path(flag).exists() and time.monotonic() - started_at < 60:
            time.sleep(0.02)
        yield from batches

    return wait


def costs(spark: SparkSession) -> dict[str, Any]:
    """Delete rows where that has cost more than a full refresh, as the log says; limits are set below any cost."""
    lake = Lake(spark, "costs")
    lake.add("edges", [(n, n + 1, 4) for n in range(9)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    view = lake.shortest("dist")
    done = [view.refresh()]
    for row in (8, 7, 6):
        DeltaTable.forPath(spark, lake.path("edges")).delete(f"src = {row}")
        done.append(view.refresh(full=False) if row == 6 else view.refresh())
        decide._FACTOR, decide._SLACK = 0.0, 0.0
    lake.add("edges", [(6, 7, 1)], EDGES)
    done.append(view.refresh())
    record = refreshes(view._target)[0][1]
    decide._FACTOR, decide._SLACK = 2.0, 1.5
    return {
        "kinds": [d.kind for d in done],
        "reason": done[2].reason,
        "costs": [0 < (record.costs.full or 0) < 60, 0 < (record.costs.from_state or 0) < 60],
        "rows": lake.rows("dist"),
    }


def sums(spark: SparkSession) -> dict[str, Any]:
    """Keep quantities of parts by differences, through inserts, an update, deletes and a duplicate of a row."""
    lake = Lake(spark, "sums")
    lake.add("edges", [(0, 1, 2), (0, 2, 3), (1, 3, 4), (2, 3, 1), (3, 4, 2), (5, 6, 1)], EDGES)
    lake.add("starts", [(0, 10)], STARTS)
    view = ra.delta.RecursiveTable(
        spark, lake.path("need"), keys="node", aggs={"n": "sum"},
        sources={"edges": lake.path("edges"), "starts": lake.path("starts")},
        base=lambda t: t["starts"].selectExpr("node", "dist AS n"),
        step=lambda d, t: d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", "n * w AS n"),
    )  # fmt: skip
    done, rows = [view.refresh()], [lake.rows("need")]
    lake.add("edges", [(4, 5, 1), (0, 1, 2)], EDGES)
    for changes in (
        ["UPDATE {} SET w = 7 WHERE src = 2", "DELETE FROM {} WHERE src = 4"],
        ["DELETE FROM {} WHERE src = 0 AND dst = 1"],
        [],
    ):
        done.append(view.refresh(full=False))
        rows.append(lake.rows("need"))
        for change in changes:
            lake.sql(change, "edges")
    return {
        "kinds": [d.kind for d in done],
        "written": [[d.inserted, d.updated, d.deleted] for d in done],
        "rows": rows,
        "is full": _has_full_fixpoint(view),
    }


def kept(spark: SparkSession) -> dict[str, Any]:
    """Refresh after inserts and deletes, and return what each incremental refresh has loaded, and why."""
    rng = random.Random(15)  # noqa: S311 - reproducible
    lake = Lake(spark, "kept")
    lake.add("edges", edges_of(rng, 40, 30), EDGES)
    lake.add("starts", [(0, 0), (1, 5)], STARTS)
    views = [lake.shortest("dist"), components(spark, lake, lake.path("labels"))]
    loaded: list[list[str]] = []
    same: list[bool] = []

    def refresh() -> None:
        loaded.append([view.refresh(full=False).loaded for view in views])  # whatever it costs
        same.append(all(map(_has_full_fixpoint, views)))

    def add() -> None:
        lake.add("edges", edges_of(rng, 45, 5), EDGES)

    refresh()
    add()
    refresh()
    lake.sql("OPTIMIZE {}", "dist")
    lake.add("starts", [(7, 1)], STARTS)
    add()
    views = [lake.shortest("dist"), components(spark, lake, lake.path("labels"))]  # other objects of the same tables
    refresh()
    lake.sql("DELETE FROM {} WHERE src < 4", "edges")
    refresh()
    lake.sql("UPDATE {} SET dist = dist + 1", "dist")  # by another writer
    add()
    refresh()
    lake.sql("UPDATE {} SET w = w + 1 WHERE src < 20", "edges")
    refresh()
    with _failing(commit.Writer, "merge"), _failing(commit.Writer, "append"):
        add()
        failure(views[0].refresh)
    refresh()
    spark.conf.set("spark.paralagg.delta.keepState", "false")
    add()
    refresh()
    spark.conf.unset("spark.paralagg.delta.keepState")
    return {"loaded": loaded, "same": same}


@contextmanager
def _failing(owner: type, method: str) -> Iterator[None]:
    """Make every call of a method fail."""
    before = getattr(owner, method)

    def fail(*_: Any, **__: Any) -> None:  # noqa: ANN401 - any arguments
        raise ra.ConflictError("PARALAGG_DELTA_CONFLICT", "made by the test")

    setattr(owner, method, fail)
    try:
        yield
    finally:
        setattr(owner, method, before)


def texts(spark: SparkSession) -> dict[str, Any]:
    """Refresh Datalog tables: one recursion continues, one that reads another recursion restarts."""
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
