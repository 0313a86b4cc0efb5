"""Refresh recursive tables on Delta in full, with errors, and in conflict with another writer."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lake import EDGES, STARTS, Lake, delta_session, failure
from stage import print_facts, wait_until

import pyspark_paralagg as ra
from pyspark_paralagg.delta import commit

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from lake import Tables
    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.delta.tables import Commit


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
        "two anti joins": lake.shortest("anti", base=_without_dead_ends),
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
    facts["swapped"] = _swapped_columns(lake)
    facts["replaced"] = lake.shortest("dist", sources=elsewhere).status().reason
    return facts


def _swapped_columns(lake: Lake) -> str:
    """Drop a column and add one of the same name, which has nulls in all old rows."""
    lake.add("mapped", [(0, 1, 4)], EDGES)
    mapping = "'delta.columnMapping.mode' = 'name', 'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5'"
    lake.sql(f"ALTER TABLE {{}} SET TBLPROPERTIES ({mapping})", "mapped")
    view = lake.shortest("swapped", sources={"edges": lake.path("mapped"), "starts": lake.path("starts")})
    view.refresh()
    lake.sql("ALTER TABLE {} DROP COLUMN w", "mapped")
    lake.sql("ALTER TABLE {} ADD COLUMN w bigint", "mapped")
    return view.status().reason


def _after_refresh(view: ra.delta.RecursiveTable) -> str:
    view.refresh()
    return view.status().reason


def _without_dead_ends(t: Tables) -> DataFrame:
    starts, on = t["starts"], t["edges"].selectExpr("src AS on")
    ends = t["edges"].join(on, t["edges"].dst == on.on, "left_anti")
    return starts.join(ends, starts.node == ends.dst, "left_anti")


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
        "arguments": [
            failure(lambda: lake.shortest("dist", base=lake.read("starts"))),
            failure(lambda: lake.shortest("dist", sources=[lake.path("edges")])),
            failure(lambda: ra.delta.RecursiveTable(spark, "", keys="a", sources={}, base=dict, step=dict)),
            failure(lambda: lake.shortest("dist").refresh(full="yes")),
            failure(lambda: lake.shortest("dist").follow(5)),
        ],
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
        from pathlib import Path  # noqa: PLC0415 - likewise

        Path(flag).with_suffix(".waiting").touch()
        started_at = time.monotonic()
        while not Path(flag).exists() and time.monotonic() - started_at < 60:
            time.sleep(0.02)
        yield from batches

    return wait


if __name__ == "__main__":
    spark = delta_session(slots=4)
    print_facts(spark, *[globals()[name] for name in sys.argv[1:]])
    spark.stop()
