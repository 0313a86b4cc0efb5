"""Provide a session with Delta, small tables in the working directory, and recursions over them with their results."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession
from stage import CONFS

import pyspark_paralagg as ra
from pyspark_paralagg.delta.tables import DELTA_CONFS

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    Tables = Mapping[str, DataFrame]

EDGES = "src bigint, dst bigint, w bigint"
STARTS = "node bigint, dist bigint"


def delta_session(slots: int = 2) -> SparkSession:
    """Return a configured session with Delta's extension and catalog."""
    confs = {
        **CONFS,
        "spark.sql.warehouse.dir": str(Path("warehouse").absolute()),
        **DELTA_CONFS,
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.databricks.delta.snapshotPartitions": "2",  # 50 by default, so most tasks of a test would be empty
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",  # tasks of a VACUUM; 10,000 by default
    }
    builder = SparkSession.builder.master(f"local[{slots}]")
    for key, value in confs.items():
        builder = builder.config(key, value)
    return configure_spark_with_delta_pip(ra.configure(builder)).getOrCreate()


class Lake:
    """The Delta tables of a folder."""

    def __init__(self, spark: SparkSession, folder: str) -> None:
        self.spark = spark
        self.folder = Path(folder).absolute()

    def path(self, name: str) -> str:
        return str(self.folder / name)

    def add(self, name: str, rows: list[tuple[Any, ...]], schema: str, *, feed: bool = True) -> None:
        """Append rows. Create the table if it is missing."""
        writer = self.spark.createDataFrame(rows, schema).coalesce(1).write.format("delta").mode("append")
        writer.option("delta.enableChangeDataFeed", str(feed).lower()).save(self.path(name))

    def read(self, name: str, **options: str) -> DataFrame:
        return self.spark.read.format("delta").options(**options).load(self.path(name))

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """Return all rows, columns by name, sorted with nulls."""
        df = self.read(name)
        return in_order(df.select(*sorted(df.columns)))

    def version(self, name: str) -> int:
        return int(self.spark.sql(f"DESCRIBE HISTORY delta.`{self.path(name)}` LIMIT 1").first()[0])

    def sql(self, text: str, name: str) -> None:
        """Run ``text`` with the table in place of ``{}``."""
        self.spark.sql(text.format(f"delta.`{self.path(name)}`"))

    def shortest(self, target: str, **options: object) -> ra.delta.RecursiveTable:
        """Return a table of shortest paths over the tables ``edges`` and ``starts``."""
        return ra.delta.RecursiveTable(
            self.spark,
            self.path(target),
            keys="node",
            aggs={"dist": "min"},
            **{
                "sources": {"edges": self.path("edges"), "starts": self.path("starts")},
                "base": lambda t: t["starts"],
                "step": shortest_step,
                **options,
            },
        )


def shortest_step(d: DataFrame, t: Tables) -> DataFrame:
    e = t["edges"]
    return d.join(e, d.node == e.src).select(e.dst.alias("node"), (d.dist + e.w).alias("dist"))


def in_order(df: DataFrame) -> list[tuple[Any, ...]]:
    return sorted((tuple(row) for row in df.collect()), key=lambda row: [(v is not None, v) for v in row])


def edges_of(rng: random.Random, nodes: int, count: int) -> list[tuple[int, int, int]]:
    return [(rng.randrange(nodes), rng.randrange(nodes), rng.randrange(1, 20)) for _ in range(count)]


def distances(edges: list[tuple[Any, ...]], starts: list[tuple[Any, ...]]) -> list[tuple[int, int]]:
    """Return shortest paths (dist, node), by passes over all edges until nothing changes."""
    best: dict[int, int] = {}
    for node, dist in starts:
        best[node] = min(dist, best.get(node, dist))
    is_new = True
    while is_new:
        is_new = False
        for src, dst, w in edges:
            if src in best and best[src] + w < best.get(dst, best[src] + w + 1):
                best[dst] = best[src] + w
                is_new = True
    return sorted((dist, node) for node, dist in best.items())


def failure(call: Callable[[], Any]) -> list[str] | None:
    """Return the class and the code of the error of ``call``; None if it raises none."""
    try:
        call()
    except ra.ParalaggError as problem:
        return [type(problem).__name__, problem.code]
    return None
