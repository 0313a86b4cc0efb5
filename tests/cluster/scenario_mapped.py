"""Run with a few MB for execution: indexes of a million edges lie in mapped files.

The argument is ``encrypted``, ``full`` (the local directory is a small file system; needs root), ``cluster`` (two
executors) or nothing.
"""

from __future__ import annotations

import sys
import threading
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from probes import left_after
from pyspark.sql import functions as F  # noqa: N812 - as pyspark's documentation
from scenario_little_memory import files_of, refused
from small_disk import small_disk
from stage import print_facts, session, wait_until

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

VERTICES, EDGES, ROUNDS = 50, 1_000_000, 3
IDS = np.arange(EDGES)
SOURCES, TARGETS, WEIGHTS = IDS % VERTICES, IDS // VERTICES * 7 % VERTICES, IDS * 31 % 1009
WIDE = 1 << 40
NAMES, GROUP, LENGTH = 10_000, 4, 1000


def edges_of(spark: SparkSession, w: str = "id * 31 % 1009") -> DataFrame:
    """Return the edges of ``SOURCES`` and ``TARGETS``, with a value."""
    return spark.range(0, EDGES, 1, 4).selectExpr(
        f"id % {VERTICES} AS src", f"id DIV {VERTICES} * 7 % {VERTICES} AS dst", f"{w} AS w"
    )


def vertices(spark: SparkSession, value: str) -> DataFrame:
    """Return all vertices, each with a value."""
    return spark.range(VERTICES).selectExpr("id AS node", f"{value} AS v")


def along(r: DataFrame, edges: DataFrame, value: str) -> DataFrame:
    """Return the value of each edge at its end."""
    return r.join(edges, r.node == edges.src).selectExpr("dst AS node", f"{value} AS v")


def shortest(spark: SparkSession) -> DataFrame:
    edges = edges_of(spark)
    base = spark.sql("SELECT 0L AS node, 0L AS v")
    return base.recursive_agg(
        "node", {"v": "min"}, step=lambda r: along(r, edges, "v + w"), assume="w >= 0", backend="spark"
    )


def distances() -> list[float]:
    matrix = np.full((VERTICES, VERTICES), np.inf)
    np.minimum.at(matrix, (SOURCES, TARGETS), WEIGHTS)
    found = np.full(VERTICES, np.inf)
    found[0] = 0
    for _ in range(VERTICES):
        found = np.minimum(found, (found[:, None] + matrix).min(axis=0))
    return list(found)


def greatest(spark: SparkSession, shift: int) -> DataFrame:
    """Return the greatest value of the edges into each vertex; a third of the edges have none."""
    edges = edges_of(spark, f"CASE WHEN id % 3 > 0 THEN id * 31 % 1009 + {shift}L END")
    return vertices(spark, "CAST(NULL AS bigint)").recursive_agg(
        "node", {"v": "max"}, step=lambda r: along(r, edges, "w"), mode="iterate", backend="spark"
    )


def greatest_values(shift: int) -> list[float]:
    found = np.zeros(VERTICES, np.int64)
    kept = IDS % 3 > 0
    np.maximum.at(found, TARGETS[kept], WEIGHTS[kept] + shift)
    return list(found)


def summed(spark: SparkSession) -> DataFrame:
    """Return sums that rounds add up by target."""
    edges = edges_of(spark)
    return vertices(spark, "0.15D").recursive_agg(
        "node",
        {"v": "sum"},
        step=lambda r: along(r, edges, f"v * {0.5 * VERTICES / EDGES}D"),  # a quotient may be null without ANSI mode
        max_iterations=ROUNDS,
        on_limit="return",
        backend="spark",
    )


def sums() -> list[float]:
    counts = np.zeros((VERTICES, VERTICES))
    np.add.at(counts, (TARGETS, SOURCES), 0.5 * VERTICES / EDGES)
    ranks = np.full(VERTICES, 0.15)
    for _ in range(ROUNDS):
        ranks = 0.15 + counts @ ranks
    return list(ranks)


def everywhere(spark: SparkSession) -> DataFrame:
    """Return the greatest value of the edges of another vertex, from an index that every task has."""
    pairs = spark.range(VERTICES).selectExpr("id AS a", f"id + {VERTICES} AS b", f"id * 3 % {VERTICES} AS other")
    edges = F.broadcast(edges_of(spark))
    return (
        vertices(spark, "0L")
        .recursive_agg(
            "node",
            {"v": "max"},
            step=lambda r: (
                r.join(pairs, r.node == pairs.a).join(edges, pairs.other == edges.src).selectExpr("b AS node", "w AS v")
            ),
            mode="iterate",
            backend="spark",
        )
        .where(f"node >= {VERTICES}")
        .selectExpr(f"node - {VERTICES} AS node", "v")
    )


def greatest_of_sources() -> list[float]:
    found = np.zeros(VERTICES, np.int64)
    np.maximum.at(found, SOURCES, WEIGHTS)
    return list(found[np.arange(VERTICES) * 3 % VERTICES])


def names(spark: SparkSession) -> dict[str, Any]:
    """Spread the least name of each group of names: the texts of all names are in mapped files."""

    def name(n: str) -> str:
        return f"lpad({n}, {LENGTH}, 'vertex 0')"

    ids = spark.range(NAMES)
    edges = ids.where(f"id % {GROUP} > 0").selectExpr(f"{name('id - 1')} AS src", f"{name('id')} AS dst")
    df = ids.selectExpr(f"{name('id')} AS name", f"{name('id')} AS least").recursive_agg(
        "name",
        {"least": "min"},
        step=lambda r: r.join(edges, r.name == edges.src).selectExpr("dst AS name", "least"),
        backend="spark",
    )
    expected = ids.selectExpr(f"{name('id')} AS name", f"{name(f'id - id % {GROUP}')} AS first")
    wrong = expected.join(df, "name", "left").where("NOT least <=> first").count()
    report = ra.report(df)
    return {"wrong": wrong, "mapped": report.mapped if report else 0}


def outcome(df: DataFrame, expected: list[float]) -> dict[str, Any]:
    """Return whether the rows are right, and the bytes that were mapped."""
    estimate = ra.estimate(df)
    rows = {r.node: r.v for r in df.collect()}
    report = ra.report(df)
    return {
        "right": sorted(rows) == list(range(VERTICES)) and bool(np.allclose([rows[i] for i in sorted(rows)], expected)),
        "mapped": report.mapped if report else 0,
        "estimated": estimate.mapped,
        "fits": estimate.fits,
        "form": report.form if report else "",
        "explained": ra.explain(df),
    }


def results(spark: SparkSession, tasks: tuple[int, ...] = (1, 2, 7)) -> dict[str, Any]:
    """Compare the rows of queries with those of numpy, by query and number of tasks."""
    found, names_by_tasks = {}, {}
    for n in tasks:
        spark.conf.set("spark.sql.shuffle.partitions", n)
        found[f"shortest {n}"] = outcome(shortest(spark), distances())
        found[f"narrow {n}"] = outcome(greatest(spark, 0), greatest_values(0))
        found[f"wide {n}"] = outcome(greatest(spark, WIDE), greatest_values(WIDE))
        found[f"sums {n}"] = outcome(summed(spark), sums())
        found[f"everywhere {n}"] = outcome(everywhere(spark), greatest_of_sources())
        names_by_tasks[n] = names(spark)
    return {
        "queries": found,
        "names": names_by_tasks,
        "files": files_of(Path("local")),
        "maps": maps(spark),
        "left": left_after(spark),
    }


def results_of_executors(spark: SparkSession) -> dict[str, Any]:
    return results(spark, (2,))


def climb(spark: SparkSession) -> dict[str, Any]:
    """An endless climb is traced over mapped indexes."""
    edges = edges_of(spark)
    df = vertices(spark, "0L").recursive_agg(
        "node", {"v": "max"}, step=lambda r: along(r, edges, "v + 1"), mode="trust", backend="spark"
    )
    try:
        df.collect()
    except Exception as problem:  # noqa: BLE001 - the text is the fact
        return {"raised": str(problem)[:600], "maps": maps(spark), "left": left_after(spark)}
    return {"raised": ""}


def maps(spark: SparkSession) -> int:
    """Return the number of mapped files of the driver's process."""
    pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())
    return sum("temp_local_" in line for line in Path(f"/proc/{pid}/maps").read_text().splitlines())


def cancelled(spark: SparkSession) -> dict[str, Any]:
    """The job is cancelled while files are mapped."""
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    raised: list[str] = []

    def run() -> None:
        try:
            greatest(spark, WIDE).count()
        except Exception as problem:  # noqa: BLE001 - the text is the fact
            raised.append(str(problem)[:300])

    thread = threading.Thread(target=run)
    thread.start()
    wait_until(lambda: maps(spark) > 0, 60, "a mapped file")
    spark.sparkContext.cancelAllJobs()
    thread.join(60)
    wait_until(lambda: maps(spark) == 0, 10, "that the files are not mapped any more")
    return {"raised": raised, "files": files_of(Path("local")), "left": left_after(spark)}


def not_mapped(spark: SparkSession) -> dict[str, Any]:
    """The indexes can be neither in memory nor mapped."""
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    estimate = ra.estimate(greatest(spark, WIDE))
    return {
        **refused(spark, greatest(spark, WIDE)),
        "fits": estimate.fits,
        "text": repr(estimate),
        "files": files_of(Path("local")),
        "maps": maps(spark),
    }


def reasons(spark: SparkSession) -> list[str]:
    """A task without room ends first, or a peer that reads its blocks: the error is the same."""
    return [refused(spark, greatest(spark, WIDE + time))["raised"] for time in range(8)]


if __name__ == "__main__":
    how = sys.argv[1] if len(sys.argv) > 1 else ""
    master, slots = ("local-cluster[2,1,1024]", 2) if how == "cluster" else ("local[7]", 7)
    with small_disk(Path("local"), 22 << 10) if how == "full" else nullcontext():
        spark = session(
            master,
            {
                "spark.driver.memory": "700m",
                "spark.memory.fraction": "0.005" if how == "cluster" else "0.008",
                "spark.buffer.pageSize": "64k",
                "spark.io.encryption.enabled": str(how == "encrypted").lower(),
                "spark.sql.adaptive.enabled": "false",
            },
            slots,
        )
        facts = {"full": (not_mapped, reasons), "encrypted": (not_mapped,), "cluster": (results_of_executors,)}
        print_facts(spark, *facts.get(how, (results, climb, cancelled)))
        spark.stop()
