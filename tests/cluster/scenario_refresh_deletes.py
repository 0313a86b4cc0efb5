"""Refresh recursive tables on Delta after deletes and updates."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

from delta.tables import DeltaTable
from lake import EDGES, STARTS, Lake, delta_session, edges_of
from spark_versions import SPARK
from stage import print_facts
from views import PROGRAMS, components, has_full_fixpoint

import pyspark_paralagg as ra
from pyspark_paralagg.delta import decide, states
from pyspark_paralagg.delta.record import refreshes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
    same = {name: [has_full_fixpoint(view)] for name, view in views.items()}
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
        same[name].append(has_full_fixpoint(view))
    lake.add("edges", [(0, 50, 1)], EDGES)
    lake.sql("DELETE FROM {} WHERE dst = 50", "edges")
    last = views["dist"].refresh(full=False)
    return {
        "kinds": {name: [first[name].kind, second[name].kind] for name in views},
        "same": same,
        "reasons": [first["dist"].reason, second["dist"].reason],
        "duplicate": [last.kind, last.inserted, last.updated, last.deleted],
    }


def costs(spark: SparkSession) -> dict[str, Any]:
    """Delete rows where that has cost more than a full refresh, as the log says; limits are set below any cost."""
    lake, limits = Lake(spark, "costs"), (decide._FACTOR, decide._SLACK)
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
    decide._FACTOR, decide._SLACK = limits
    return {
        "kinds": [d.kind for d in done],
        "reason": done[2].reason,
        "costs": [0 < (record.costs.full or 0) < 60, 0 < (record.costs.from_state or 0) < 60],
        "rows": lake.rows("dist"),
    }


def sums(spark: SparkSession) -> dict[str, dict[str, Any]]:
    """Keep quantities of parts from a kept state, by differences without one, and after it was evicted."""
    kept = _sums(spark, "kept")
    spark.conf.set("spark.paralagg.delta.keepState", "false")
    differences = _sums(spark, "differences")
    spark.conf.unset("spark.paralagg.delta.keepState")
    return {"kept": kept, "differences": differences, "evicted": _sums(spark, "evicted", evicts=True)}


def _sums(spark: SparkSession, folder: str, *, evicts: bool = False) -> dict[str, Any]:
    """Keep quantities of parts through inserts, an update, deletes and a duplicate of a row."""
    lake = Lake(spark, folder)
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
        for state in states._states.values() if evicts else ():
            state.free(spark)
        done.append(view.refresh(full=False))
        rows.append(lake.rows("need"))
        for change in changes:
            lake.sql(change, "edges")
    return {
        "kinds": [d.kind for d in done],
        "loaded": [d.loaded for d in done],
        "written": [[d.inserted, d.updated, d.deleted] for d in done],
        "rows": rows,
        "is full": has_full_fixpoint(view),
    }


def representations(spark: SparkSession) -> dict[str, Any]:
    """Update columns to values that Spark calls equal to the old ones, and expressions tell apart."""
    lake = Lake(spark, "representations")
    spark.conf.set("spark.databricks.delta.schema.typeCheck.enabled", "false")  # else Delta refuses collations
    name = "string collate UTF8_LCASE" if SPARK >= (4, 0) else "string"
    schema = f"src bigint, dst bigint, x double, a array<double>, c struct<f: double>, name {name}"
    lake.add("edges", [(n, n + 1, 0.0, [1.0, 0.0], (0.0,), "a") for n in range(3)], schema)
    lake.add("starts", [(0, 1)], STARTS)
    weight = "length(concat_ws('', x, a[1], c.f)) + ascii(name)"

    def view(target: str, agg: str, value: str) -> ra.delta.RecursiveTable:
        return ra.delta.RecursiveTable(
            spark, lake.path(target), keys="node", aggs={"dist": agg},
            sources={"edges": lake.path("edges"), "starts": lake.path("starts")},
            base=lambda t: t["starts"],
            step=lambda d, t: d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", value),
        )  # fmt: skip

    text = "d(0, 1). d(t, $MIN(v + strlen(to_string(x)))) :- d(s, v), edges(s, t, x, _, _, _)."
    views = {
        "least": view("least", "min", f"dist + {weight} AS dist"),
        "sums": view("sums", "sum", f"dist * ({weight}) AS dist"),
        "text": ra.delta.RecursiveTable.datalog(
            spark, lake.path("text"), text, "d", sources={"edges": lake.path("edges")}
        ),
    }
    for table in views.values():
        table.refresh()
    updates = ("x = -0.0D", "a = array(1.0D, -0.0D)", "c = named_struct('f', -0.0D)", "name = 'A'")
    same: dict[str, list[bool]] = {name: [] for name in views}
    kinds = set()
    for update in updates:
        lake.sql(f"UPDATE {{}} SET {update} WHERE src = 1", "edges")  # noqa: S608 - of the texts above
        for name, table in views.items():
            kinds.add(table.refresh(full=False).kind)
            same[name].append(has_full_fixpoint(table))
    spark.conf.unset("spark.databricks.delta.schema.typeCheck.enabled")
    return {"kinds": sorted(kinds), "same": same, "rows": {name: lake.rows(name) for name in views}}


if __name__ == "__main__":
    spark = delta_session(slots=4)
    print_facts(spark, *[globals()[name] for name in sys.argv[1:]])
    spark.stop()
