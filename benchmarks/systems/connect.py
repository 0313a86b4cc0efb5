"""This project over Spark Connect: its engine in a Python worker, no jar; the same steps as in a classic session."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession

import pyspark_paralagg as ra
from benchmarks.systems import Answer
from benchmarks.systems.paralagg import CHECKSUMS, QUERIES
from benchmarks.systems.run_facts import run_facts
from benchmarks.systems.spark_session import MASTER

if TYPE_CHECKING:
    from benchmarks.datasets import Graph
    from benchmarks.queries import Checksum


class Connect:
    """A client, and the server that PySpark starts for it on this machine; `name` is the executor."""

    def __init__(self, name: str, memory: str) -> None:
        self._backend = {"connect": "python", "connect-dataframe": "dataframe"}[name]
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.remote(MASTER).config("spark.driver.memory", memory)
        self.session = ra.configure(builder.config("spark.ui.enabled", "false")).getOrCreate()
        self.version = f"PySpark {self.session.version}, Spark Connect"

    def answer(self, query: str, graph: Graph) -> Answer:
        """Build the lazy DataFrame anew and reduce it; the loop's share is what `ra.report` says."""
        result = QUERIES[query](self.session, graph, self._backend)
        checksum: Checksum = tuple(result.selectExpr(*CHECKSUMS[query]).collect()[0])
        report = ra.report(result)
        if report is None:
            return Answer(checksum, None, {})
        facts: dict[str, Any] = {"seconds": dict(report.seconds)}
        facts |= run_facts(report.iterations, report.rounds, report.ranks)
        return Answer(checksum, report.seconds["loop"], facts)


def start(name: str, memory: str) -> Connect:
    """Start server and client."""
    return Connect(name, memory)
