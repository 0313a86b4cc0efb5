"""Run a driver with a few MB for execution: inputs are spilled, relations that outgrow the memory refused.

The argument is ``encrypted``, ``full`` (the local directory is a small file system; needs root) or nothing.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes import left_after
from queries import chain, chain_total, total
from small_disk import small_disk
from stage import print_facts, session, wait_until

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def too_large(spark: SparkSession) -> dict[str, Any]:
    """A relation outgrows the memory."""
    base = spark.range(1000).selectExpr("id as x", "id as y", "0L as hops")
    df = base.recursive_agg(
        ["x", "y"],
        {"hops": "min"},
        step=lambda r: r.where("y < 1000").selectExpr("x", "y + 1 as y", "hops + 1 as hops"),
        backend="spark",
    )
    return refused(spark, df)


def too_many_keys(spark: SparkSession) -> dict[str, Any]:
    """The indexes exceed the memory at once."""
    return refused(spark, chain(spark, 2_000_000, backend="spark"))


VERTICES, EDGES = 1_000, 2_400_000  # 9 MB of rows in each of two tasks, which have 6; their index has 5


def many_edges(spark: SparkSession, kind: str = "bigint", ids: DataFrame | None = None) -> DataFrame:
    """Return the least label of each vertex along edges between few vertices, all of which are in reach."""
    edges = (ids or spark.range(EDGES)).selectExpr(
        f"CAST(id % {VERTICES} AS {kind}) AS src", f"CAST(id * 7919 % {VERTICES} AS {kind}) AS dst"
    )
    return (
        edges.select("src")
        .distinct()
        .selectExpr("src AS node", "src AS label")
        .recursive_agg(
            "node",
            {"label": "min"},
            step=lambda r: r.join(edges, r.node == edges.src).select(edges.dst.alias("node"), r.label),
            backend="spark",
        )
    )


def spilled(spark: SparkSession) -> dict[str, Any]:
    """The rows of the input exceed the memory, and its index does not."""
    found = {}
    for kind in ("bigint", "string"):
        df = many_edges(spark, kind)
        estimate = ra.estimate(df)
        rows = {str(r.node): str(r.label) for r in df.collect()}
        expected = least_labels(kind)
        report = ra.report(df)
        found[kind] = {
            "right": rows == expected,
            "spilled": report.spilled if report else 0,
            "estimated": estimate.spilled,
            "fits": estimate.fits,
            "files": files_of(Path("local")),
            "left": left_after(spark),
        }
    return found


def late(spark: SparkSession) -> dict[str, Any]:
    """One task waits before its first row, while the other one takes all memory that it gets."""
    waits = "reflect('java.lang.Thread', 'sleep', 5000L)"
    ids = spark.range(0, EDGES, 1, 2).where(f"id <> {EDGES // 2} OR {waits} IS NOT NULL")
    rows = {str(r.node): str(r.label) for r in many_edges(spark, ids=ids).collect()}
    return {"right": rows == least_labels("bigint")}


def shared(spark: SparkSession) -> dict[str, Any]:
    """An index that is the same in both tasks fits into the memory once, and not twice."""
    parents = spark.range(400_000).selectExpr("id AS child", "id + 400000 AS parent")
    base = spark.range(1).selectExpr("400000L AS x", "400000L AS y")
    other = parents.toDF("child2", "parent2")
    df = base.recursive_agg(
        ["x", "y"],
        step=lambda r: (
            r.join(parents, r.x == parents.parent)
            .join(other, r.y == other.parent2)
            .select(parents.child.alias("x"), other.child2.alias("y"))
        ),
        backend="spark",
    )
    return {"explained": ra.explain(df), "rows": sorted(map(list, df.collect())), "fits": ra.estimate(df).fits}


def least_labels(kind: str) -> dict[str, str]:
    """Return the expected rows: vertex ``i`` leads to ``7919 i``, so the graph consists of cycles."""
    labels: dict[str, str] = {}
    for start in range(VERTICES):
        cycle = [start]
        while (after := cycle[-1] * 7919 % VERTICES) != start:
            cycle.append(after)
        least = min(cycle) if kind == "bigint" else min(map(str, cycle))
        labels |= {str(node): str(least) for node in cycle}
    return labels


def cancelled_in_a_spill(spark: SparkSession) -> dict[str, Any]:
    """The job is cancelled while a file of spilled rows is open."""
    raised: list[str] = []

    def run() -> None:
        try:
            many_edges(spark, ids=spark.range(4 * EDGES)).count()
        except Exception as problem:  # noqa: BLE001 - the text is the fact
            raised.append(str(problem))

    jvm = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: open_spills(jvm) > 0, 60, "a file of spilled rows")
    spark.sparkContext.cancelAllJobs()
    thread.join(60)
    wait_until(lambda: open_spills(jvm) == 0, 10, "that the file is closed")
    return {"raised": raised, "files": files_of(Path("local")), "left": left_after(spark)}


def open_spills(pid: int) -> int:
    """Return the number of temporary files without a name that a process has open."""
    found = subprocess.run(["ls", "-l", f"/proc/{pid}/fd"], check=False, capture_output=True, text=True)  # noqa: S603, S607 - a number
    return sum("temp_local_" in line and line.endswith("(deleted)") for line in found.stdout.splitlines())


def files_of(folder: Path) -> list[str]:
    """Return the temporary files in a folder."""
    return [str(p) for p in folder.rglob("temp_local_*")]


def full_disk(spark: SparkSession) -> dict[str, Any]:
    """The local directory has less room than the rows need."""
    return refused(spark, many_edges(spark)) | {"files": files_of(Path("local"))}


def refused(spark: SparkSession, df: DataFrame) -> dict[str, Any]:
    """Return the error, and whether the session still works."""
    try:
        df.count()
    except Exception as problem:  # noqa: BLE001 - the text is the fact
        raised = str(problem)
    else:
        raised = ""
    return {
        "raised": raised[:600],
        "left": left_after(spark),
        "next_is_right": total(chain(spark, 20, backend="spark")) == chain_total(20),
    }


if __name__ == "__main__":
    how = sys.argv[1] if len(sys.argv) > 1 else ""
    with small_disk(Path("local"), 6 << 10) if how == "full" else nullcontext():
        spark = session(
            "local[2]",
            {
                "spark.driver.memory": "700m",
                "spark.memory.fraction": "0.03",
                "spark.io.encryption.enabled": str(how == "encrypted").lower(),
            },
        )
        facts = {"full": (full_disk,), "encrypted": (spilled,)}
        print_facts(spark, *facts.get(how, (too_large, too_many_keys, spilled, late, shared, cancelled_in_a_spill)))
        spark.stop()
