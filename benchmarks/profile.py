"""Print where the time of one query on the Spark engine goes: ``make profile QUERY=sssp:rmat-18``.

Runs the query some times in one session and prints the last run as a table: the parts of the driver's work, each job
with its stages, and what the gang says of itself. A part begins so many seconds after the query was written down, one
of the gang after its first task began.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from time import time
from typing import TYPE_CHECKING, Any

from benchmarks.datasets import DEFAULT_CACHE, open_graph
from benchmarks.systems import paralagg
from pyspark_paralagg.session.attach import bridge

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Part:
    """A part of a query: when it began, and how long it took."""

    name: str
    began: float
    seconds: float

    def __str__(self) -> str:
        return f"| {self.name} | {self.began:.3f} | {self.seconds:.3f} |"


def profile(query: str, graph: str, runs: int, memory: str) -> list[Part]:
    """Run a query of the benchmark ``runs`` times. Return the parts of the last run."""
    data = open_graph(graph, DEFAULT_CACHE)
    system = paralagg.start("paralagg", memory)
    spark = system.session
    for _ in range(runs):
        began = time()
        result = paralagg.QUERIES[query](spark, data, "spark")
        defined = time()
        checksum = result.selectExpr(*paralagg.CHECKSUMS[query])
        checksum.collect()
    ended = time()
    parts = [Part("whole query", 0.0, ended - began), Part("defining it, with its schema", 0.0, defined - began)]
    parts += _phases(checksum, began)
    parts += _jobs(spark, began)
    parts += _gang(spark, result)
    return parts


def _phases(df: DataFrame, began: float) -> Iterator[Part]:
    """Yield the phases of Catalyst that Spark has timed."""
    phases = df._jdf.queryExecution().tracker().phases().iterator()  # noqa: SLF001 - Spark's own, without a public name
    while phases.hasNext():
        phase = phases.next()
        yield Part(
            f"Catalyst: {phase._1()}",  # noqa: SLF001 - Scala's name of a tuple's field
            phase._2().startTimeMs() / 1000 - began,  # noqa: SLF001
            phase._2().durationMs() / 1000,  # noqa: SLF001
        )


def _jobs(spark: SparkSession, began: float) -> Iterator[Part]:
    """Yield the jobs that began after ``began``, each followed by its stages."""
    store = spark.sparkContext._jsc.sc().statusStore()  # noqa: SLF001 - likewise
    jobs = store.jobsList(None)
    for n in range(jobs.size() - 1, -1, -1):
        job = jobs.apply(n)
        if job.submissionTime().get().getTime() / 1000 < began:
            continue
        yield _timed(f"job {job.jobId()}", job, began)
        for stage_id in sorted(json.loads(job.stageIds().mkString("[", ",", "]"))):
            stage = store.lastStageAttempt(stage_id)
            if stage.submissionTime().isDefined() and stage.completionTime().isDefined():
                yield _timed(f"stage {stage_id}, {stage.numTasks()} tasks: {str(stage.name())[:40]}", stage, began)


def _timed(name: str, entry: Any, began: float) -> Part:  # noqa: ANN401 - a job or a stage of Spark's status store
    start, end = entry.submissionTime().get().getTime() / 1000, entry.completionTime().get().getTime() / 1000
    return Part(name, start - began, end - start)


def _gang(spark: SparkSession, result: DataFrame) -> Iterator[Part]:
    """Yield the parts of the gang's first task, one after another."""
    report = json.loads(bridge(spark).report(result._jdf))  # noqa: SLF001 - likewise
    at = 0.0
    for name, seconds in {**report["parts"], **{k: report["seconds"][k] for k in ("loop", "store")}}.items():
        yield Part(f"gang: {name}", at, seconds)
        at += seconds


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.profile", description=__doc__)
    parser.add_argument("query", help="query:graph, such as sssp:rmat-18")
    parser.add_argument("--runs", type=int, default=6)
    parser.add_argument("--memory", default="2g", help="the JVM's heap")
    options = parser.parse_args()
    query, _, graph = options.query.partition(":")
    if query not in paralagg.QUERIES or not graph:
        parser.error(f"{options.query!r} is not query:graph; queries are {', '.join(paralagg.QUERIES)}")
    sys.stdout.write("| part | began | seconds |\n|---|--:|--:|\n")
    for part in profile(query, graph, options.runs, options.memory):
        sys.stdout.write(f"{part}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
