"""Relations that recurse together go on from one kept state, and equal a full run after any change."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from kept_table import edge
from rows import frame
from test_maintain import EDGES, STARTS, values

import pyspark_paralagg as ra
from pyspark_paralagg.backends.kept import Keeping, KeptState
from pyspark_paralagg.maintenance.continuation import Continuation, continue_fixpoint, grow_fixpoint
from pyspark_paralagg.maintenance.program import Program
from pyspark_paralagg.maintenance.recursion import Declared, Recursion, references

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

    Rows = list[tuple[Any, ...]]
    Frames = Mapping[str, DataFrame]


def along(d: DataFrame, t: Frames, *columns: str) -> DataFrame:
    return d.join(t["edges"], d.node == t["edges"].src).selectExpr("dst AS node", *columns)


CASES: dict[str, Any] = {
    "ways of even and odd length": (
        {
            "even": Declared("node", {"dist": "min"}, lambda t: t["starts"]),
            "odd": Declared("node", {"dist": "min"}, lambda t: t["starts"].limit(0)),
        },
        lambda r, t: {
            "even": along(r["odd"], t, "dist + w AS dist"),
            "odd": along(r["even"], t, "dist + w AS dist"),
        },
    ),
    "nodes in even and odd steps": (
        {
            "even": Declared("node", None, lambda t: t["starts"].select("node")),
            "odd": Declared("node", None, lambda t: t["starts"].select("node").limit(0)),
        },
        lambda r, t: {"even": along(r["odd"], t), "odd": along(r["even"], t)},
    ),
    "values at other positions": (
        {
            "near": Declared("node", {"dist": "min"}, lambda t: t["starts"]),
            "via": Declared(
                "node",
                {"last": ra.min_by("dist"), "dist": "min"},
                lambda t: t["starts"].selectExpr("node", "-1L AS last", "dist + 3 AS dist"),
            ),
        },
        lambda r, t: {
            "near": along(r["via"], t, "dist + w + 1 AS dist").unionAll(along(r["near"], t, "dist + w + 2 AS dist")),
            "via": along(r["near"], t, "src AS last", "dist + w + 1 AS dist"),
        },
    ),
    "names": (
        {
            of: Declared("node", {"name": "max"}, lambda t: t["starts"].selectExpr("node", "concat('n', dist) AS name"))
            for of in ("left", "right")
        },
        lambda r, t: {"left": along(r["right"], t, "name"), "right": along(r["left"], t, "name")},
    ),
}


class Together:
    """Maintained relations of one recursion and their sources, as rows in Python."""

    def __init__(self, spark: SparkSession, case: str, edges: Rows) -> None:
        self.spark, self.edges, self.starts = spark, edges, [(0, 0), (1, 5)]
        self.relations, self.step = CASES[case]
        schemas = {name: df.schema for name, df in self.tables.items()}
        recursion = Recursion(self.relations, self.step, {"mode": "trust"})
        self.program = Program(spark, recursion, references(spark, schemas))
        full = self.full()
        self.schemas = {name: df.schema for name, df in full.items()}
        self.rows = {name: df.collect() for name, df in full.items()}
        self.state: KeptState | None = None

    @property
    def tables(self) -> dict[str, DataFrame]:
        edges, starts = frame(self.spark, EDGES, self.edges), frame(self.spark, STARTS, self.starts)
        return {"edges": edges.alias("edges"), "starts": starts.alias("starts")}

    def full(self) -> dict[str, DataFrame]:
        """Return the result of a full run, by an API without maintenance."""
        tables = self.tables
        declared = {n: ra.relation(d.base(tables), keys=d.keys, aggs=d.aggs) for n, d in self.relations.items()}
        return dict(ra.recursive(declared, step=lambda **r: self.step(r, tables), backend="spark", mode="trust"))

    def change(self, new: Rows, gone: Rows) -> str:
        """Change the edges and continue, from the kept state if there is one; return the form of the run."""
        for row in gone:
            self.edges.remove(row)
        self.edges = self.edges + new
        stored = {n: self.spark.createDataFrame(rows, self.schemas[n]) for n, rows in self.rows.items()}
        inserted = {"edges": frame(self.spark, EDGES, new)} if new else {}
        deleted = {"edges": frame(self.spark, EDGES, gone)} if gone else {}
        if self.state is None:
            keeping = Keeping(self.spark)
            run = continue_fixpoint(self.program, stored, self.tables, inserted, deleted, keeping=keeping)
        else:
            run = grow_fixpoint(self.program, stored, self.tables, inserted, deleted, self.state)
        done = {name: self._take(name, part) for name, part in run.items()}
        assert all(done.values())
        [tuples] = {d.tuples for d in done.values()}
        assert tuples == sum(map(len, self.rows.values()))
        [kept] = {part.keeping for part in run.values()}
        self.state = kept.hand_over({name: len(rows) for name, rows in self.rows.items()})
        assert self.state is not None
        for part in run.values():
            part.free()
        return next(iter(done.values())).form

    def _take(self, name: str, run: Continuation) -> ra.RunReport | None:
        derived = run.materialized()
        changed, removed = run.upserts(derived.df).collect(), run.removed(derived.df).collect()
        before = {tuple(row) for row in self.rows[name]}
        assert not {tuple(row) for row in changed} & before, "rows that did not change"
        gone, keys = {row[0] for row in (*changed, *removed)}, {row[0] for row in self.rows[name]}
        assert run.new_keys == (None if self.state is None else len({row[0] for row in changed} - keys))
        assert {row[0] for row in removed} <= {row[0] for row in before}
        self.rows[name] = [row for row in self.rows[name] if row[0] not in gone] + changed
        assert values(self.rows[name]) == values(self.full()[name].collect())
        return ra.report(run.fixpoint)


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("placement", ["0", "100000"], ids=["partitioned", "shared"])
@pytest.mark.parametrize(("partitions", "aqe"), [("1", "true"), ("2", "false"), ("7", "true")])
@pytest.mark.parametrize("case", CASES)
def test_deletes_equal_a_full_run(spark: SparkSession, case: str, partitions: str, aqe: str, placement: str) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    spark.conf.set("spark.sql.adaptive.enabled", aqe)
    spark.conf.set("spark.paralagg.broadcast.maxBytes", placement)
    rng = random.Random(case)  # noqa: S311 - the same each time
    edges = [edge(rng, 14) for _ in range(24)]
    table = Together(spark, case, [*edges, *edges[:6], (2, 2, 0)])
    assert "kept" not in table.change([edge(rng, 14)], [])
    assert "from the kept state" in table.change([edge(rng, 30) for _ in range(4)], [])
    for nodes, count in ((14, 5), (30, 1), (14, 8)):
        gone = rng.sample(table.edges, count)
        assert "from the kept state" in table.change([edge(rng, nodes) for _ in range(4)] + gone[:1], gone)
    assert "from the kept state" in table.change([], table.edges[2:])
