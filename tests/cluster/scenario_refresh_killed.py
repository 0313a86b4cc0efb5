"""Kill a refresh at the step that the first argument names, over the tables in the folder of the second.

Each step is a process that continues with the tables that the previous one left.

    full      the first refresh, killed while it writes files
    fixpoint  the first refresh succeeds; rows are added; the process dies after the fixpoint, before the MERGE
    merge     the JVM is killed while the MERGE writes files
    after     a refresh that succeeds; then one that fails after its commit, and the report of the next one
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

from lake import EDGES, STARTS, Lake, delta_session, distances
from stage import print_facts

import pyspark_paralagg as ra
from pyspark_paralagg.delta import commit, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

FIRST = [(0, 1, 9), (1, 2, 9), (2, 3, 9)]
THEN = [(0, 2, 1), (3, 4, 1)]
LAST = [(0, 3, 1)]


def table_state(lake: Lake) -> dict[str, Any]:
    """Return the table's version (-1: none), the sets of edges that its rows match, and its history."""
    table = ra.delta.tables.Table(lake.spark, lake.path("dist"))
    snapshot = table.snapshot()
    if snapshot is None:
        return {"version": -1}
    rows = lake.rows("dist")
    edges = {"first": FIRST, "then": FIRST + THEN, "last": FIRST + THEN + LAST}
    return {
        "version": snapshot.version,
        "rows": [name for name, e in edges.items() if rows == distances(e, [(0, 0)])],
        "history": [h["kind"] for h in lake.shortest("dist").history()],
    }


def killed_at_files(spark: SparkSession, lake: Lake) -> None:
    """Kill the JVM as soon as a new data file appears in the table."""
    before = set(lake.folder.glob("dist/*.parquet"))
    jvm = spark.sparkContext._gateway.proc.pid

    def watch() -> None:
        while not set(lake.folder.glob("dist/*.parquet")) - before:
            time.sleep(0.001)
        os.kill(jvm, signal.SIGKILL)
        os._exit(9)

    threading.Thread(target=watch, daemon=True).start()


def full(spark: SparkSession) -> None:
    lake = Lake(spark, sys.argv[2])
    lake.add("edges", FIRST, EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    killed_at_files(spark, lake)
    lake.shortest("dist").refresh()


def fixpoint(spark: SparkSession) -> None:
    lake = Lake(spark, sys.argv[2])
    print_facts(spark, named("before", lambda: table_state(lake)))
    lake.shortest("dist").refresh()
    lake.add("edges", THEN, EDGES)
    write._write = lambda *_, **__: os._exit(9)
    lake.shortest("dist").refresh()


def merge(spark: SparkSession) -> None:
    lake = Lake(spark, sys.argv[2])
    print_facts(spark, named("before", lambda: table_state(lake)))
    killed_at_files(spark, lake)
    lake.shortest("dist").refresh()


def after(spark: SparkSession) -> None:
    lake = Lake(spark, sys.argv[2])

    def lost() -> dict[str, Any]:
        """Refresh so that the commit succeeds but the writer does not learn it."""
        lake.add("edges", LAST, EDGES)
        find_commit = commit.Writer._find_commit
        commit.Writer._find_commit = raise_interrupted
        try:
            lake.shortest("dist").refresh()
        except InterruptedError:
            pass
        finally:
            commit.Writer._find_commit = find_commit
        return {"found": table_state(lake), "next": lake.shortest("dist").refresh().kind}

    print_facts(
        spark,
        named("before", lambda: table_state(lake)),
        named("again", lambda: lake.shortest("dist").refresh().kind),
        named("then", lambda: table_state(lake)),
        named("lost", lost),
    )


def raise_interrupted(_: commit.Writer) -> None:
    raise InterruptedError


def named(name: str, call: Callable[[], Any]) -> Callable[[SparkSession], Any]:
    """Return ``call`` as a fact of that name."""

    def fact(_: SparkSession) -> object:
        return call()

    fact.__name__ = name
    return fact


if __name__ == "__main__":
    {"full": full, "fixpoint": fixpoint, "merge": merge, "after": after}[sys.argv[1]](delta_session())
