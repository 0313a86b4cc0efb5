"""Refresh recursive tables of Datalog texts with several recursions: mutual ones, and ones that read others."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

from lake import EDGES, STARTS, Lake, delta_session, edges_of, failure
from stage import print_facts

import pyspark_paralagg as ra
from pyspark_paralagg.delta.kept_table import KeptTable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MUTUAL = """
    even(x, d) :- starts(x, d).
    odd(y, $MIN(d + w)) :- even(x, d), edges(x, y, w).
    even(y, $MIN(d + w)) :- odd(x, d), edges(x, y, w), !closed(y, _, _).
"""
STRATA = """
    reach(x) :- starts(x, _). reach(y) :- reach(x), edges(x, y, _), !closed(y, _, _).
    far(x, x) :- edges(x, _, _), !reach(x).
    far(y, $MIN(d)) :- far(x, d), edges(x, y, _), !reach(y).
"""
POSITIVE = """
    even(x, d) :- starts(x, d).
    odd(y, $MIN(d + w)) :- even(x, d), edges(x, y, w).
    even(y, $MIN(d + w)) :- odd(x, d), edges(x, y, w).
    worst(y, $MAX(d)) :- odd(y, d).
    worst(y, $MAX(d)) :- closed(y, d, _).
    worst(y, $MAX(d)) :- worst(x, d), edges(y, x, _).
"""
SOURCES = ("edges", "starts", "closed")


class Views:
    """Tables of the two texts over three sources, compared with whole texts."""

    def __init__(self, spark: SparkSession, folder: str, *texts: tuple[str, str]) -> None:
        self.lake = Lake(spark, folder)
        self.texts = texts
        self.same: list[bool] = []
        self.reports: list[Any] = []

    def view(self, text: str, relation: str) -> ra.delta.RecursiveTable:
        sources = {name: self.lake.path(name) for name in SOURCES}
        return ra.delta.RecursiveTable.datalog(
            self.lake.spark, self.lake.path(relation), text, relation, sources=sources
        )

    def refresh(self) -> None:
        for text, relation in self.texts:
            self.reports.append(self.view(text, relation).refresh(full=False))
            self.same.append(self.rows(relation) == self.whole(text, relation))

    def rows(self, table: str) -> list[tuple[Any, ...]]:
        return sorted(tuple(row) for row in self.lake.read(table).collect())

    def whole(self, text: str, relation: str) -> list[tuple[Any, ...]]:
        sources = {name: self.lake.read(name) for name in SOURCES}
        relations = ra.datalog(self.lake.spark, text, sources, backend="local")
        return sorted(tuple(row) for row in relations[relation].collect())


def changes(spark: SparkSession) -> dict[str, Any]:
    """Insert, delete and update rows of positive and negated sources; each refresh gives the rows of the whole text."""
    rng = random.Random(5)  # noqa: S311 - reproducible
    views = Views(spark, "changes", (MUTUAL, "even"), (STRATA, "far"))
    lake = views.lake
    lake.add("edges", [*edges_of(rng, 9, 14), (1, 2, 1), (2, 1, 1)], EDGES)
    lake.add("starts", [(0, 0), (1, 5)], STARTS)
    lake.add("closed", [(3, 0, 0)], EDGES)
    views.refresh()
    for change in (
        ("edges", "DELETE FROM {} WHERE dst IN (4, 5)"),
        ("closed", "INSERT INTO {} VALUES (2, 0, 0), (6, 0, 0)"),
        ("edges", "UPDATE {} SET w = w + 2 WHERE src < 3"),
        ("closed", "DELETE FROM {} WHERE src IN (2, 3)"),
        ("starts", "DELETE FROM {} WHERE node = 0"),
    ):
        lake.sql(change[1], change[0])
        if change[0] == "closed":
            lake.add("edges", edges_of(rng, 9, 2), EDGES)
        views.refresh()
    return {
        "same": views.same,
        "kinds": [r.kind for r in views.reports],
        "why": views.reports[2].reason,
        "written": any(r.inserted for r in views.reports[2:]) and any(r.deleted for r in views.reports[2:]),
        "companions": [views.rows("even__odd") == views.whole(MUTUAL, "odd"),
                       views.rows("far__reach") == views.whole(STRATA, "reach")],
        "explained": str(ra.why(views.view(STRATA, "far"), c0=views.rows("far")[0][0])).splitlines()[0],
    }  # fmt: skip


def kept(spark: SparkSession) -> dict[str, Any]:
    """Each recursion of a text goes on from its state; a change that one of them does not read leaves its state."""
    rng = random.Random(6)  # noqa: S311 - reproducible
    views = Views(spark, "kept", (POSITIVE, "worst"))
    lake = views.lake
    lake.add("edges", [*edges_of(rng, 9, 14), (1, 2, 1), (2, 1, 1)], EDGES)
    lake.add("starts", [(0, 0), (1, 5)], STARTS)
    lake.add("closed", [], EDGES)
    views.refresh()
    lake.add("edges", edges_of(rng, 12, 2), EDGES)
    views.refresh()
    for change in (
        ("edges", "DELETE FROM {} WHERE dst IN (4, 5)"),
        ("closed", "INSERT INTO {} VALUES (7, 99, 0)"),
        ("edges", "UPDATE {} SET w = w + 2 WHERE src < 3"),
        ("edges", "DELETE FROM {}"),
    ):
        lake.sql(change[1], change[0])
        views.refresh()
    return {
        "same": views.same,
        "loaded": [r.loaded for r in views.reports[1:]],
        "companions": [views.rows(f"worst__{name}") == views.whole(POSITIVE, name) for name in ("even", "odd")],
    }


def companions(spark: SparkSession) -> dict[str, Any]:
    """Edit a companion, stop a refresh before the target's commit, and put a foreign table in a companion's place."""
    views = Views(spark, "companions", (MUTUAL, "even"))
    lake = views.lake
    lake.add("edges", [(0, 1, 1), (1, 2, 1), (2, 3, 1), (3, 0, 1)], EDGES)
    lake.add("starts", [(0, 0)], STARTS)
    lake.add("closed", [], EDGES)
    views.refresh()
    lake.sql("ALTER TABLE {} SET TBLPROPERTIES ('paralagg.note' = 'a commit that changes no row')", "even__odd")
    lake.add("edges", [(2, 5, 1)], EDGES)
    views.refresh()
    lake.sql("DELETE FROM {} WHERE true", "even__odd")
    lake.add("edges", [(5, 6, 1)], EDGES)
    views.refresh()
    lake.add("edges", [(6, 7, 1)], EDGES)
    write, stopped = KeptTable.writer, "nothing stopped it"

    def stop(table: KeptTable, record: Any) -> Any:  # noqa: ANN401 - as KeptTable.writer
        if table.table.place.endswith("even"):
            raise KeyboardInterrupt
        return write(table, record)

    KeptTable.writer = stop  # type: ignore[method-assign]
    try:
        views.view(MUTUAL, "even").refresh(full=False)
    except KeyboardInterrupt:
        stopped = "before the target's commit"
    KeptTable.writer = write  # type: ignore[method-assign]
    views.refresh()
    lake.add("even__odd2", [(1, 1)], "y bigint, min bigint")
    foreign = MUTUAL.replace("odd", "odd2")
    return {
        "same": views.same,
        "kinds": [r.kind for r in views.reports],
        "reasons": [views.reports[n].reason.replace(lake.path(""), "") for n in (2, 3)],
        "stopped": stopped,
        "foreign": failure(lambda: views.view(foreign, "even").refresh()),
    }


if __name__ == "__main__":
    spark = delta_session(slots=4)
    print_facts(spark, *[globals()[name] for name in sys.argv[1:]])
    spark.stop()
