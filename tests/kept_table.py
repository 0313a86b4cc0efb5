"""A result that is maintained after changes, as rows in Python: each run is compared with a full one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import test_maintain_sums as sums
from rows import frame
from test_maintain import CASES, EDGES, STARTS, full, values

import pyspark_paralagg as ra
from pyspark_paralagg.backends.kept import Keeping, KeptState
from pyspark_paralagg.maintenance.continuation import continue_fixpoint, grow_fixpoint
from pyspark_paralagg.maintenance.program import Program
from pyspark_paralagg.maintenance.recursion import Recursion, references

if TYPE_CHECKING:
    import random

    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.maintenance.continuation import Continuation

    Rows = list[tuple[Any, ...]]

assert not CASES.keys() & sums.CASES.keys(), "a Table finds its case by its name"


class Table:
    """A maintained result and its sources, as rows in Python."""

    def __init__(self, spark: SparkSession, case: str, edges: Rows, **options: Any) -> None:  # noqa: ANN401
        self.spark, self.case, self.edges = spark, case, edges
        self.adds = case in sums.CASES
        self.starts_schema = sums.STARTS if self.adds else STARTS
        self.starts: Rows = [(0, 1), (1, 5), (1, 5)] if self.adds else [(0, 0), (1, 5)]
        p = sums.CASES[case] if self.adds else CASES[case]
        schemas = {"edges": frame(spark, EDGES, edges).schema, "starts": frame(spark, self.starts_schema, []).schema}
        recursion = Recursion.single("r", p["keys"], p.get("aggs"), p["base"], p["step"], {"mode": "trust", **options})
        self.program = Program(spark, recursion, references(spark, schemas))
        self.keys = len(self.program.relation.keys)
        self.rows = self.full.collect()
        self.schema = self.full.schema
        self.state: KeptState | None = None

    @property
    def tables(self) -> dict[str, DataFrame]:
        starts = frame(self.spark, self.starts_schema, self.starts)
        return {"edges": frame(self.spark, EDGES, self.edges).alias("edges"), "starts": starts}

    @property
    def full(self) -> DataFrame:
        """Return the rows of a run without a state."""
        return sums.full(self.case, self.tables) if self.adds else full(self.case, self.tables)

    def change(self, new: Rows, gone: Rows, starts: Rows | None = None) -> str:
        """Change the edges and continue, from the kept state if there is one; return the form of the run.

        ``starts`` replaces all starts.
        """
        for row in gone:
            self.edges.remove(row)
        self.edges = self.edges + new
        stored = self.spark.createDataFrame(self.rows, self.schema)
        inserted = {"edges": frame(self.spark, EDGES, new)}
        deleted = {"edges": frame(self.spark, EDGES, gone)} if gone else {}
        if starts is not None:
            inserted["starts"] = frame(self.spark, self.starts_schema, _without(starts, self.starts))
            deleted["starts"] = frame(self.spark, self.starts_schema, _without(self.starts, starts))
            self.starts = starts
        if self.state is None:
            keeping = Keeping(self.spark, base="whole" if self.adds else "new")
            rows = {"r": stored}
            run = continue_fixpoint(self.program, rows, self.tables, inserted, deleted, keeping=keeping)["r"]
        else:
            run = grow_fixpoint(self.program, {"r": stored}, self.tables, inserted, deleted, self.state)["r"]
        self._take(run)
        done = None if run.fixpoint is None else ra.report(run.fixpoint)
        self.state = None if run.keeping is None else run.keeping.hand_over({"r": len(self.rows)})
        run.free()
        has_others = self.program.has_witnesses  # their relations have rows, too
        assert done is None or has_others or done.tuples == len(self.rows)
        return "" if done is None else done.form

    def insert(self, new: Rows) -> str:
        """Insert edges and continue; return the form of the run."""
        return self.change(new, [])

    def rows_of(self, key: str) -> list[tuple[Any, ...]]:
        """Return the rows with this first key."""
        return [tuple(row) for row in self.rows if row[0] == key]

    def _take(self, run: Continuation) -> None:
        derived = run.materialized()
        changed, removed = run.upserts(derived.df).collect(), run.removed(derived.df).collect()
        derived.free()
        replaced, left = ({tuple(row)[: self.keys] for row in rows} for rows in (changed, removed))
        before = {tuple(row) for row in self.rows}
        keys = {tuple(row)[: self.keys] for row in self.rows}
        if run.fallen is None:
            assert run.has_only_new == (self.state is not None and not left and not replaced & keys)
            assert run.new_keys == (None if self.state is None else len(replaced - keys))
        assert not {tuple(row) for row in changed} & before, "rows that did not change"
        assert left <= keys - replaced
        self.rows = [row for row in self.rows if tuple(row)[: self.keys] not in replaced | left] + changed
        assert len(changed) == len(replaced)
        assert values(self.rows) == values(self.full.collect())


def _without(rows: Rows, others: Rows) -> Rows:
    """Return the rows without the others, each copy once."""
    left = list(rows)
    for row in others:
        if row in left:
            left.remove(row)
    return left


def edge(rng: random.Random, nodes: int) -> tuple[int, int, int]:
    return rng.randrange(nodes), rng.randrange(nodes), rng.randrange(6)
