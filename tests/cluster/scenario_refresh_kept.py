"""Refresh recursive tables on Delta from kept states."""

from __future__ import annotations

import random
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from delta.tables import DeltaTable
from lake import EDGES, STARTS, Lake, delta_session, distances, edges_of, failure
from stage import print_facts
from views import components, has_full_fixpoint

import pyspark_paralagg as ra
from pyspark_paralagg.delta import commit, states

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lake import Tables
    from pyspark.sql import DataFrame, SparkSession


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
        same.append(all(map(has_full_fixpoint, views)))

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


def alone(spark: SparkSession) -> dict[str, Any]:
    """Delete from the only source, which the step does not read; refresh in full, after which one state is left."""
    lake = Lake(spark, "alone")
    lake.add("starts", [(0, 0), (7, 7)], STARTS)

    def count(d: DataFrame, _: Tables) -> DataFrame:
        return d.where("node < 4").selectExpr("node + 1 AS node", "dist + 1 AS dist")

    view = lake.shortest("dist", sources={"starts": lake.path("starts")}, step=count)
    view.refresh()
    lake.sql("DELETE FROM {} WHERE node = 7", "starts")
    loaded = view.refresh(full=False).loaded
    rows, before = lake.rows("dist"), len(states._states)
    view.refresh(full=True)
    view.refresh(full=True)
    return {"loaded": loaded, "rows": rows, "more states": len(states._states) - before}


def clauses(spark: SparkSession) -> list[list[bool]]:
    """Return of each refresh whether its MERGE can update, delete and insert, and whether all rows are right."""
    lake = Lake(spark, "clauses")
    lake.add("edges", [(0, 1, 5), (1, 2, 5), (2, 3, 5)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    view = lake.shortest("dist")
    view.refresh()
    found = []
    update, insert = "UPDATE {} SET w = 4 WHERE dst = 2", "INSERT INTO {} VALUES (0, 2, 1), (3, 4, 1)"
    for change in (update, insert, "DELETE FROM {} WHERE dst = 4"):
        lake.sql(change, "edges")
        view.refresh(full=False)
        merge = DeltaTable.forPath(spark, lake.path("dist")).history(1).first().operationParameters
        kinds = [kind in merge["matchedPredicates"] for kind in ("update", "delete")]
        found.append([*kinds, "insert" in merge["notMatchedPredicates"], has_full_fixpoint(view)])
    return found


def indexes(spark: SparkSession) -> list[list[bool]]:
    """Query each version of a table twice; return whether the rows come from kept indexes, and whether they are right.

    Deletion vectors make other rows of the same files, and a restored version has the files of an earlier one.
    """
    spark.conf.set("spark.paralagg.keepIndexes", "true")
    lake = Lake(spark, "indexes")
    lake.add("edges", [(n, n + 1, 5) for n in range(40)] + [(0, 30, 7)], EDGES)
    lake.sql("ALTER TABLE {} SET TBLPROPERTIES (delta.enableDeletionVectors = true)", "edges")
    newest = lake.version("edges")
    found = []
    for change in (
        "SELECT 1",
        "DELETE FROM {} WHERE dst = 30",
        "DELETE FROM {} WHERE dst = 35",
        "INSERT INTO {} VALUES (29, 30, 1)",
        "OPTIMIZE {}",
        f"RESTORE TABLE {{}} TO VERSION AS OF {newest}",
    ):
        lake.sql(change, "edges")
        for start in (20, 0):
            edges = lake.read("edges")
            starts = spark.createDataFrame([(start, 0)], STARTS)
            found.append(_uses_indexes(starts, edges))
    spark.conf.unset("spark.paralagg.keepIndexes")
    return found


def _uses_indexes(starts: DataFrame, edges: DataFrame) -> list[bool]:
    found = ra.datalog(
        edges.sparkSession,
        "d(x, v) :- start(x, v). d(y, $MIN(v + w)) :- d(x, v), edge(x, y, w).",
        start=starts,
        edge=edges,
    )["d"]
    rows = sorted((dist, node) for node, dist in found.collect())
    expected = distances(*([tuple(row) for row in table.collect()] for table in (edges, starts)))
    report = ra.report(found)
    assert report is not None
    return ["kept indexes" in report.form, rows == expected]


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


if __name__ == "__main__":
    spark = delta_session(slots=4)
    print_facts(spark, *[globals()[name] for name in sys.argv[1:]])
    spark.stop()
