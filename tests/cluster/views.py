"""Provide recursive tables over the edges and starts of a lake, and compare them with full runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lake import Lake, in_order

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from lake import Tables
    from pyspark.sql import DataFrame, SparkSession


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


def has_full_fixpoint(view: ra.delta.RecursiveTable) -> bool:
    """Return whether the table has rows, and those of the full fixpoint over the current sources."""
    program, sources = view._read_sources()
    whole = program.whole({name: table.read(snapshot.version) for name, (table, snapshot) in sources.items()})
    stored = view._target.read(view._target.snapshot().version).select(*whole.columns)
    return in_order(stored) == in_order(whole) != []
