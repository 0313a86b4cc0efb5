"""Could sub-buckets pay in the Spark engine? ``python -m benchmarks.spark_balance --tasks 2,4,7``.

Runs programs whose rows lie by a computed key and may have sub-buckets on ranks: closures of the trees of
``benchmarks.sub_buckets``, and shortest paths of pairs of vertices. The table has the rows read (work), the changed
rows and the CPU seconds of the heaviest task, divided by the average. The CPU seconds of tasks are Spark's, with
loading. *Saved*: the part of them that the heaviest task would save with perfect balance.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import pyspark_paralagg as ra
from benchmarks import generators
from benchmarks.sub_buckets import trees
from benchmarks.systems.spark_session import builder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from benchmarks.generators import Edges

_CONFS = {
    "spark.paralagg.broadcast.maxBytes": "0",  # edges in every task would need no exchange at all
    "spark.paralagg.oneTask.maxRows": "0",
}


def graphs(vertices: int, rmat: int) -> dict[str, tuple[str, Edges]]:
    """Return the query and the edges of each case."""
    cases: dict[str, tuple[str, Edges]] = {}
    for tree, (child, parent) in trees(vertices).items():
        ones = np.ones(len(child), np.int64)
        cases[f"closure, {tree} tree, up"] = ("closure", (child, parent, ones))
        cases[f"closure, {tree} tree, down"] = ("closure", (parent, child, ones))
    cases[f"shortest paths of pairs, rmat-{rmat}"] = ("pairs", generators.rmat(rmat))
    cases["shortest paths of pairs, random-2000-2400"] = ("pairs", generators.uniform(2000, 2400))
    return cases


def recursion(edges: DataFrame, query: str) -> DataFrame:
    """Return the closure, or the shortest paths between all pairs. Rows lie by the end of the path."""
    if query == "closure":
        pairs = edges.selectExpr("src AS x", "dst AS y")
        return pairs.recursive_agg(
            ["x", "y"],
            step=lambda p: p.join(edges, p.y == edges.src).select(p.x, edges.dst.alias("y")),
            backend="spark",
        )
    return edges.selectExpr("src AS x", "dst AS y", "w AS d").recursive_agg(
        ["x", "y"],
        {"d": "min"},
        step=lambda p: p.join(edges, p.y == edges.src).select(p.x, edges.dst.alias("y"), (p.d + edges.w).alias("d")),
        backend="spark",
        assume="w >= 0",
    )


def task_cpu(spark: SparkSession, tasks: int, after: int) -> tuple[list[float], int]:
    """Return the CPU seconds of the tasks of the stage with most CPU since stage ``after``, and the last stage."""
    jvm: Any = spark._jvm  # noqa: SLF001 - pyspark's only way to the JVM
    context = spark._jsparkSession.sparkContext()  # noqa: SLF001 - likewise
    context.listenerBus().waitUntilEmpty()
    store = context.statusStore()
    none, quantiles = jvm.java.util.ArrayList(), getattr(store, "stageList$default$4")()
    stages = store.stageList(none, False, False, quantiles, none)  # noqa: FBT003 - Scala's names are lost
    best: list[float] = []
    last = after
    for n in range(stages.size()):
        stage = stages.apply(n)
        last = max(last, stage.stageId())
        if stage.stageId() <= after or stage.numTasks() != tasks:
            continue
        rows = store.taskList(stage.stageId(), stage.attemptId(), 1000)
        seconds = [rows.apply(t).taskMetrics().get().executorCpuTime() / 1e9 for t in range(rows.size())]
        best = max(best, seconds, key=sum)
    return best, last


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="2,4,7", help="numbers of tasks")
    parser.add_argument("--vertices", type=int, default=1 << 17, help="vertices of a tree")
    parser.add_argument("--rmat", type=int, default=11, help="scale of the graph of the pairs")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each case, of which the fastest counts")
    options = parser.parse_args()
    numbers = [int(n) for n in options.tasks.split(",")]
    session = builder("3g").master(f"local[{max(numbers)}]")
    for key, value in _CONFS.items():
        session = session.config(key, value)
    spark = ra.configure(session).getOrCreate()
    titles = (
        "program",
        "tasks",
        "work",
        "changed rows",
        "CPU",
        "saved",
        "CPU of all tasks, s",
        "MB sent",
        "loop, s",
        "form",
    )
    print(f"| {' | '.join(titles)} |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|---|", flush=True)
    last = -1
    for case, (query, (src, dst, w)) in graphs(options.vertices, options.rmat).items():
        with tempfile.TemporaryDirectory() as name:
            pq.write_table(pa.table({"src": src, "dst": dst, "w": w}), Path(name) / "edges.parquet")
            edges = spark.read.parquet(name)
            for tasks in numbers:
                spark.conf.set("spark.sql.shuffle.partitions", tasks)
                runs = []
                for _ in range(options.repeat):
                    result = recursion(edges, query)
                    result.count()
                    report = ra.report(result)
                    assert report is not None
                    cpu, last = task_cpu(spark, tasks, last)
                    runs.append((report, cpu))
                report, cpu = min(runs, key=lambda run: run[0].seconds["loop"])
                heaviest = max(cpu) * len(cpu) / sum(cpu)
                cells = [
                    f"{report.work_balance:.2f}",
                    f"{report.balance:.2f}",
                    f"{heaviest:.2f}",
                    f"{100 - 100 / heaviest:.0f} %",
                    f"{sum(cpu):.2f}",
                    f"{sum(r['bytes'] for r in report.rounds) / 1e6:.1f}",
                    f"{report.seconds['loop']:.2f}",
                    report.form,
                ]
                print(f"| {case} | {tasks} | {' | '.join(cells)} |", flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
