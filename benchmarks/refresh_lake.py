"""The Delta tables of `benchmarks.refresh`: sources, changes of known numbers of rows, and recursions over them.

`Graph` has the edges of a named graph. `Parts` has a bill of materials. Both make their changes from a fixed seed.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from delta.tables import DeltaTable

import pyspark_paralagg as ra
from benchmarks.datasets import open_graph

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.generators import Longs

    Tables = Mapping[str, DataFrame]

SEED = 19
POOL = 0.1
"""The share of the edges that are not stored at first: inserts come from them."""
CHILDREN = 5
"""Parts of an assembly in the bill of materials."""


def write(spark: SparkSession, columns: Mapping[str, Any], place: Path) -> None:
    """Append rows to a Delta table with a change feed; create it if it is missing."""
    file = place.with_suffix(".parquet")
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(dict(columns)), file)
    writer = (
        spark.read.parquet(str(file)).write.format("delta").mode("append").option("delta.enableChangeDataFeed", "true")
    )
    writer.save(str(place))


class Graph:
    """A graph as two Delta tables, `edges` and `starts`, and changes of its edges."""

    def __init__(self, spark: SparkSession, name: str, folder: Path) -> None:
        graph = open_graph(name)
        self.spark, self.folder = spark, folder
        self.dice = np.random.default_rng(SEED)
        rows = pq.read_table(graph.edges_file)
        self._columns: dict[str, Longs] = {n: rows[n].to_numpy() for n in ("src", "dst", "w")}
        order = self.dice.permutation(graph.edges)
        first = round(graph.edges * (1 - POOL))
        self._stored, self._pool = order[:first], order[first:]
        self.edges = first
        shutil.rmtree(folder, ignore_errors=True)
        stored = np.sort(self._stored)
        write(spark, {n: c[stored] for n, c in self._columns.items()}, folder / "edges")
        write(spark, {"node": np.array([graph.source]), "dist": np.array([0])}, folder / "starts")

    def insert(self, count: int) -> None:
        """Append `count` edges that are not in the table."""
        write(self.spark, self._take(self._new(count)), self.folder / "edges")

    def delete(self, count: int) -> None:
        """Delete `count` edges by one MERGE."""
        self._merge(self._old(count)).whenMatchedDelete().execute()

    def update(self, count: int) -> None:
        """Give `count` edges another weight by one MERGE."""
        rows = self._take(self._old(count))
        rows["w"] = self.dice.integers(1, 101, len(rows["w"]))
        self._merge_rows(rows).whenMatchedUpdate(set={"w": "s.w"}).execute()

    def merge(self, count: int) -> None:
        """Update half of `count` edges and insert the other half, in one commit."""
        rows = self._take(np.concatenate([self._old(count // 2), self._new(count - count // 2)]))
        rows["w"] = self.dice.integers(1, 101, len(rows["w"]))
        merge = self._merge_rows(rows).whenMatchedUpdate(set={"w": "s.w"})
        merge.whenNotMatchedInsert(values={n: f"s.{n}" for n in self._columns}).execute()

    def view(self, query: str, target: str) -> ra.delta.RecursiveTable:
        """Return the maintained table of a query of `GRAPH_QUERIES` or `GRAPH_TEXTS`."""
        sources = {"edges": str(self.folder / "edges"), "starts": str(self.folder / "starts")}
        place = str(self.folder / f"{query}-{target}")
        if query in GRAPH_TEXTS:
            return ra.delta.RecursiveTable.datalog(self.spark, place, GRAPH_TEXTS[query], query, sources=sources)
        options: dict[str, Any] = GRAPH_QUERIES[query]
        return ra.delta.RecursiveTable(self.spark, place, keys="node", sources=sources, **options)

    def _new(self, count: int) -> Longs:
        taken, self._pool = self._pool[:count], self._pool[count:]
        assert len(taken) == count, "the pool of new edges is empty: fewer or smaller changes, or a larger graph"
        return taken

    def _old(self, count: int) -> Longs:
        taken, self._stored = self._stored[:count], self._stored[count:]
        return taken

    def _take(self, numbers: Longs) -> dict[str, Longs]:
        return {n: c[numbers] for n, c in self._columns.items()}

    def _merge(self, numbers: Longs) -> Any:  # noqa: ANN401 - delta ships no types
        return self._merge_rows(self._take(numbers))

    def _merge_rows(self, columns: Mapping[str, Longs]) -> Any:  # noqa: ANN401 - likewise
        rows = self.spark.createDataFrame(pa.table(dict(columns)))
        table = DeltaTable.forPath(self.spark, str(self.folder / "edges"))
        return table.alias("t").merge(rows.alias("s"), "t.src = s.src AND t.dst = s.dst")


class Parts:
    """A bill of materials: part n > 0 is fitted into part (n - 1) // 5, every tenth part into another assembly too."""

    def __init__(self, spark: SparkSession, count: int, folder: Path) -> None:
        self.spark, self.folder, self.count = spark, folder, count
        self.dice = np.random.default_rng(SEED)
        part = np.arange(1, count, dtype=np.int64)
        shared = part[part % 10 == 0]
        other = (self.dice.random(len(shared)) * ((shared - 1) // CHILDREN + 1)).astype(np.int64)
        part, assembly = np.concatenate([part, shared]), np.concatenate([(part - 1) // CHILDREN, other])
        self.first_bought = (count - 2) // CHILDREN + 1
        shutil.rmtree(folder, ignore_errors=True)
        days, quantity = (self.dice.integers(1, 4, len(part)) for _ in range(2))
        columns = {"assembly": assembly, "part": part, "days": days, "quantity": quantity}
        write(spark, columns, folder / "structure")
        bought = np.arange(self.first_bought, count, dtype=np.int64)
        write(spark, {"part": bought, "days": self.dice.integers(1, 60, len(bought))}, folder / "bought")

    def change(self) -> None:
        """Change the delivery time of one bought part: one updated row."""
        part = int(self.dice.integers(self.first_bought, self.count))
        table = DeltaTable.forPath(self.spark, str(self.folder / "bought"))
        table.update(f"part = {part}", {"days": "pmod(days + 30, 60) + 1"})

    def refit(self) -> None:
        """Change how many of a part its assembly has: one updated row."""
        part = int(self.dice.integers(1, self.count))
        table = DeltaTable.forPath(self.spark, str(self.folder / "structure"))
        table.update(f"part = {part} AND assembly = {(part - 1) // CHILDREN}", {"quantity": "quantity % 3 + 1"})

    def quantities(self, target: str) -> ra.delta.RecursiveTable:
        """Return how many of each part the product has, part 0, kept in a table."""
        return ra.delta.RecursiveTable(
            self.spark,
            str(self.folder / f"quantities-{target}"),
            keys="part",
            aggs={"n": "sum"},
            sources={"structure": str(self.folder / "structure")},
            base=lambda _: self.spark.sql("SELECT 0L AS part, 1L AS n"),
            step=_count,
        )

    def view(self, target: str) -> ra.delta.RecursiveTable:
        """Return the day on which each part is ready, kept in a table."""
        return ra.delta.RecursiveTable(
            self.spark,
            str(self.folder / f"ready-{target}"),
            keys="part",
            aggs={"day": "max"},
            sources={"structure": str(self.folder / "structure"), "bought": str(self.folder / "bought")},
            base=lambda t: t["bought"].selectExpr("part", "days AS day"),
            step=_assemble,
        )


def _assemble(d: DataFrame, t: Tables) -> DataFrame:
    s = t["structure"].selectExpr("assembly", "part AS fitted", "days")
    return d.join(s, d.part == s.fitted).selectExpr("assembly AS part", "day + days AS day")


def _count(d: DataFrame, t: Tables) -> DataFrame:
    s = t["structure"].selectExpr("assembly", "part AS fitted", "quantity")
    return d.join(s, d.part == s.assembly).selectExpr("fitted AS part", "n * quantity AS n")


def _labels(t: Tables) -> DataFrame:
    e = t["edges"]
    return e.selectExpr("src AS node", "src AS label").unionAll(e.selectExpr("dst AS node", "dst AS label"))


def _spread(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"]
    there = d.join(e, d.node == e.src).selectExpr("dst AS node", "label")
    return there.unionAll(d.join(e, d.node == e.dst).selectExpr("src AS node", "label"))


def _walk(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"]
    return d.join(e, d.node == e.src).selectExpr("dst AS node", "dist + w AS dist")


def _reach(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"]
    return d.join(e, d.node == e.src).selectExpr("dst AS node")


def _narrow(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"]
    return d.join(e, d.node == e.src).selectExpr("dst AS node", "least(width, w) AS width")


def _tree(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"]
    return d.join(e, d.node == e.src).selectExpr("dst AS node", "dist + w AS dist", "src AS via")


GRAPH_QUERIES: dict[str, dict[str, Any]] = {
    "components": {"aggs": {"label": "min"}, "base": _labels, "step": _spread},
    "sssp": {"aggs": {"dist": "min"}, "base": lambda t: t["starts"], "step": _walk},
    "reach": {"base": lambda t: t["starts"].select("node"), "step": _reach},
    "widest": {
        "aggs": {"width": "max"},
        "base": lambda t: t["starts"].selectExpr("node", "1000L AS width"),
        "step": _narrow,
    },
    "tree": {
        "aggs": {"dist": "min", "via": ra.min_by("dist")},
        "base": lambda t: t["starts"].selectExpr("node", "dist", "-1L AS via"),
        "step": _tree,
    },
}
GRAPH_TEXTS = {
    "even": """
        even(x, d) :- starts(x, d).
        odd(y, $MIN(d + w)) :- even(x, d), edges(x, y, w).
        even(y, $MIN(d + w)) :- odd(x, d), edges(x, y, w).
    """,
}
