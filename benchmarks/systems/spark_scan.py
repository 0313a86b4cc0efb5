"""Spark's own scan of the columns that a query reads, and a sum of each: the least that any query costs in Spark.

It answers nothing, so its checksum is empty.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from benchmarks.systems import Answer
from benchmarks.systems.spark_session import HeapPeak, builder

if TYPE_CHECKING:
    from benchmarks.datasets import Graph

_WEIGHTED = ("src", "dst", "w")
_PLAIN = ("src", "dst")
COLUMNS = {
    "sssp": _WEIGHTED,
    "multi-sssp": _WEIGHTED,
    "components": _PLAIN,
    "pagerank": _PLAIN,
    "closure": _PLAIN,
}


class SparkScan:
    """A Spark session without this project."""

    def __init__(self, memory: str) -> None:
        self._spark = builder(memory).getOrCreate()
        self._heap = HeapPeak(self._spark)
        self.version = f"PySpark {self._spark.version}"

    def answer(self, query: str, graph: Graph) -> Answer:
        """Read the edges' schema, and sum the columns of the query."""
        self._heap.reset()
        edges = self._spark.read.parquet(graph.edges_file)
        edges.select(*(f.sum(column) for column in COLUMNS[query])).collect()
        return Answer((), None, {"heap_peak_mb": self._heap.megabytes()})


def start(name: str, memory: str) -> SparkScan:
    """Start Spark."""
    del name
    return SparkScan(memory)
