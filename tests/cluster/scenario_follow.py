"""Follow sources by a stream: refreshes after inserts, deletes and updates, a restart, errors, wrong use."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lake import EDGES, STARTS, Lake, delta_session, distances, failure
from pyspark.errors import StreamingQueryException
from stage import print_facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession


def opened(spark: SparkSession, folder: str) -> Lake:
    lake = Lake(spark, folder)
    lake.add("edges", [(0, 1, 4), (1, 2, 4)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    return lake


def expected(lake: Lake) -> list[tuple[int, int]]:
    """Return the shortest paths over the current rows of the sources, computed in Python."""
    edges = [tuple(row) for row in lake.read("edges").select("src", "dst", "w").collect()]
    return distances(edges, [tuple(row) for row in lake.read("starts").select("node", "dist").collect()])


def continuous(spark: SparkSession) -> dict[str, Any]:
    """Change both sources while a query runs, and compare the rows after each change."""
    lake = opened(spark, "continuous")
    view = lake.shortest("dist")
    query = view.follow(lake.path("_follow"), processingTime="100 milliseconds")
    changes = [
        lambda: None,
        lambda: lake.add("edges", [(0, 2, 3), (2, 9, 1)], EDGES),
        lambda: lake.sql("DELETE FROM {} WHERE src = 0 AND dst = 2", "edges"),
        lambda: lake.sql("UPDATE {} SET w = 1 WHERE src = 1", "edges"),
        lambda: lake.add("starts", [(9, -5)], STARTS),
    ]
    same = []
    try:
        for change in changes:
            change()
            query.processAllAvailable()
            same.append(lake.rows("dist") == expected(lake))
        alive = query.isActive
    finally:
        query.stop()
    kinds = [entry["kind"] for entry in reversed(view.history())]
    return {"kinds": kinds, "alive": alive, "same": same, "ended": query.isActive}


def restarted(spark: SparkSession) -> dict[str, Any]:
    """Process what is there, stop, change the sources, and start again with the same checkpoint."""
    lake = opened(spark, "restarted")
    view = lake.shortest("dist")

    def process() -> None:
        view.follow(lake.path("_follow"), availableNow=True).awaitTermination(120)

    process()
    first = lake.rows("dist") == expected(lake)
    lake.add("edges", [(2, 3, 1)], EDGES)
    lake.sql("DELETE FROM {} WHERE src = 1", "edges")
    process()
    second = lake.rows("dist") == expected(lake)
    versions = len(view.history())
    process()
    return {
        "same": [first, second],
        "kinds": [entry["kind"] for entry in reversed(view.history())],
        "nothing new": len(view.history()) == versions,
    }


def _raised_type(call: Callable[[], object]) -> str:
    try:
        call()
    except Exception as problem:  # noqa: BLE001 - Spark's own
        return type(problem).__name__
    return ""


def errors(spark: SparkSession) -> dict[str, Any]:
    """End a query by the error of a refresh, then repair the table and go on; refuse wrong use."""
    lake = opened(spark, "errors")
    view = lake.shortest("dist")
    lake.add("dist", [(77, 1)], STARTS)
    query = view.follow(lake.path("_follow"), availableNow=True)
    try:
        query.awaitTermination(120)
        raised = ""
    except StreamingQueryException as problem:
        raised = str(problem)
    exception = query.exception()
    lake.sql("DELETE FROM {}", "dist")
    view.follow(lake.path("_follow"), availableNow=True).awaitTermination(120)
    lake.add("plain", [(0, 1, 4)], EDGES, feed=False)
    sources = {"edges": lake.path("plain"), "starts": lake.path("starts")}
    return {
        "raised": "PARALAGG_DELTA_TARGET" in raised,
        "exception": "PARALAGG_DELTA_TARGET" in str(exception),
        "repaired": lake.rows("dist") == expected(lake),
        "wrong trigger": _raised_type(lambda: view.follow(lake.path("_wrong"), every="1 s")),
        "left": Path(lake.path("_wrong")).exists(),
        "no feed": failure(lambda: lake.shortest("other", sources=sources).follow(lake.path("_other"))),
    }


if __name__ == "__main__":
    spark = delta_session()
    print_facts(spark, *[globals()[name] for name in sys.argv[1:]])
    spark.stop()
