"""Run on two executors of one core: `plain`, or `secured` by authentication and encryption of network and disk."""

from __future__ import annotations

import importlib.util
import json
import random
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kept_table import Table, edge
from probes import blocks_on_executors, broadcast_id, iterations_now, left_after, sessions_in_executors
from pyspark import InheritableThread
from queries import endless_rounds, paths, scattered_distances, scattered_edges
from rows import assert_same_rows, frame, read_table, rows_of
from stage import print_facts, session, wait_until

import pyspark_paralagg as ra
from pyspark_paralagg.session.attach import bridge

if TYPE_CHECKING:
    from types import ModuleType

    from pyspark.sql import DataFrame, SparkSession

FIXTURES = Path(__file__).parent.parent / "fixtures"
CASES = (
    "sssp",
    "components",
    "pagerank_20_rounds_initial",
    "string_keys_and_min",
    "closure_nonlinear",
    "closure_left",
    "min_by_parent",
    "mutual_even_odd",
    "cat_paths",
    "first_routes",
    "two_colours",
    "points_to",
)
SECURED = {
    "spark.authenticate": "true",
    "spark.authenticate.secret": "of this test only",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}
VERTICES = 20_000
WIDTH = 100
BOWTIE = "p(x, y, $SUM(w)) :- edge(x, y, w). p(x, z, $SUM(v * w)) :- p(x, y, v), edge(y, z, w)."
BOWTIE_ROWS = sorted(
    [(f"left{n}", "middle", 1) for n in range(WIDTH)]
    + [("middle", f"right{n}", 1) for n in range(WIDTH)]
    + [(f"left{n}", f"right{m}", 1) for n in range(WIDTH) for m in range(WIDTH)]
)


def executors(spark: SparkSession) -> int:
    """Return the number of executors, without the driver, once both have started; Spark may begin before."""

    def number() -> int:
        return len(spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos()) - 1

    wait_until(lambda: number() == 2, 60, "two executors")
    return number()


def fixtures(spark: SparkSession) -> dict[str, str]:
    """Run each fixture, with AQE on and off, and all or large hubs, if not `secured`. Return `ok` or the difference."""
    results = {}
    for aqe in ("false",) if sys.argv[1] == "secured" else ("true", "false"):
        spark.conf.set("spark.sql.adaptive.enabled", aqe)
        spark.conf.set("spark.paralagg.heavyParts", 1 << 20 if aqe == "true" else 8)  # all rows are hubs, or large ones
        for case in CASES:
            results[f"{case} aqe={aqe}"] = check(spark, case)
    return results


def check(spark: SparkSession, case: str) -> str:
    """Run a fixture on the gang of two."""
    tables = {p.stem: read_table(p) for p in sorted((FIXTURES / case).glob("*.tsv"))}
    frames = {name: frame(spark, *t) for name, t in tables.items() if not name.startswith("expected")}
    results = load(FIXTURES / case / "step.py").run(frames, backend="spark")
    by_name = {f"expected.{k}": v for k, v in results.items()} if isinstance(results, dict) else {"expected": results}
    for name, df in by_name.items():
        try:
            assert_same_rows(rows_of(df), tables[name][1])
        except AssertionError as difference:
            return f"{name}: {difference}"
        if tasks(df) != 2:
            return f"{name}: {tasks(df)} tasks"
    return "ok"


def tasks(df: DataFrame) -> int:
    """Return the number of tasks of the last gang of ``df``."""
    return int(json.loads(bridge(df.sparkSession).report(df._jdf))["tasks"])


def load(path: Path) -> ModuleType:
    """Return the fixture's module."""
    spec = importlib.util.spec_from_file_location(path.parent.name, path)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def large_messages(spark: SparkSession) -> dict[str, Any]:
    """Run a graph whose rounds send more to the other executor than fits into a vote."""
    df = paths(spark.range(1).selectExpr("id as node", "0L as dist"), scattered_edges(spark, VERTICES), backend="spark")
    rows = {row.node: row.dist for row in df.collect()}
    report = ra.report(df)
    assert report is not None
    return {"right": rows == scattered_distances(VERTICES), "bytes": int(report.to_pandas()["bytes"].max())}


def large_messages_of_strings(spark: SparkSession) -> dict[str, Any]:
    """Run the same with long keys, so that a dictionary of some megabytes is exchanged."""
    name = "concat('a-vertex-with-a-rather-long-name-', {})"
    edges = scattered_edges(spark, VERTICES).selectExpr(
        f"{name.format('src')} as src", f"{name.format('dst')} as dst", "w"
    )
    df = paths(spark.range(1).selectExpr(f"{name.format('id')} as node", "0L as dist"), edges, backend="spark")
    rows = {int(row.node.rsplit("-", 1)[1]): row.dist for row in df.collect()}
    return {"right": rows == scattered_distances(VERTICES)}


def early_exchanges(spark: SparkSession) -> dict[str, Any]:
    """Run a bowtie, of which one round derives all pairs, without and with early exchanges, some in blocks."""
    pairs = [(name, n) for n in range(WIDTH) for name in ("left", "right")]
    vertices = spark.createDataFrame(pairs, "side string, n long").selectExpr("side", "side || n as name")
    edges = vertices.selectExpr(
        "if(side = 'left', name, 'middle') as x", "if(side = 'left', 'middle', name) as y", "1L as w"
    )
    spark.conf.set("spark.paralagg.broadcast.maxBytes", 0)
    results = {}
    for limit in (0, 1, 3_000):
        spark.conf.set("spark.paralagg.rollOverRows", limit)
        df = ra.datalog(spark, BOWTIE, edge=edges, backend="spark")["p"]
        rows = sorted(tuple(row) for row in df.collect())
        report = ra.report(df)
        assert report is not None
        results[str(limit)] = [rows == BOWTIE_ROWS, "early exchange" in report.form, report.iterations]
    spark.conf.unset("spark.paralagg.broadcast.maxBytes")
    spark.conf.unset("spark.paralagg.rollOverRows")
    return results


def kept_state(spark: SparkSession) -> dict[str, Any]:
    """Insert edges thrice, and delete some; each executor goes on from its part of the state, and knows new names."""
    spark.conf.set("spark.paralagg.broadcast.maxBytes", "0")
    rng = random.Random(16)  # noqa: S311 - reproducible
    found = {}
    for case in ("shortest paths", "names of components"):
        table = Table(spark, case, [edge(rng, 60) for _ in range(90)])
        forms = [table.insert([edge(rng, nodes) for _ in range(8)]) for nodes in (60, 60, 90, 200)]
        rows = len(table.rows)
        found[case] = {
            "forms": [*forms, table.change([edge(rng, 300) for _ in range(8)], table.edges[:3])],
            "rows": rows,
        }
    return found


def kept_indexes(spark: SparkSession) -> list[list[Any]]:
    """Query one graph from several starts; return the form of each run, and whether its rows are right.

    The indexes of the first run expect no null, so the last one loads the graph, in the stage that looked for them.
    """
    spark.conf.set("spark.paralagg.broadcast.maxBytes", "0")
    spark.conf.set("spark.paralagg.oneTask.maxRows", "0")
    frame(spark, "src string, dst string, w bigint", [(f"n{n}", f"n{n + 1}", 1) for n in range(50)]).repartition(
        4
    ).write.parquet("line")
    forms = []
    for start in ("n40", "n3", "m", "n45", None):
        spark.conf.set("spark.paralagg.keepIndexes", "true")
        base = frame(spark, "node string, dist bigint", [(start, 0), ("n48", 0)])
        df = paths(base, spark.read.parquet("line"), backend="spark")
        rows = {row.node: row.dist for row in df.collect()}
        first = int(start[1:]) if start and start[0] == "n" else 48
        expected = {f"n{n}": n - first for n in range(first, 48)} | {start: 0, "n48": 0, "n49": 1, "n50": 2}
        report = ra.report(df)
        assert report is not None
        forms.append([report.form, rows == expected])
    spark.conf.unset("spark.paralagg.keepIndexes")
    return forms


def cancelled_run(spark: SparkSession) -> dict[str, Any]:
    """Cancel a loop that sends messages as blocks: the caller returns, and executors keep nothing."""
    sc = spark.sparkContext
    first = broadcast_id(spark)
    df = endless_rounds(spark, keys=1_000_000)  # its blocks exist long enough to be observed
    raised: list[str] = []

    def query() -> None:
        sc.setJobGroup("cluster", "endless", interruptOnCancel=False)
        try:
            df.count()
        except Exception as problem:  # noqa: BLE001 - the text is the fact
            raised.append(str(problem))

    thread = InheritableThread(target=query)
    thread.start()
    blocks: list[str] = []

    def sees_blocks() -> bool:
        meeting = 2 * iterations_now(spark)  # an iteration is two meetings
        blocks.extend(blocks_on_executors(spark, range(first, first + 3), range(meeting, meeting + 8)))
        return bool(blocks)

    wait_until(sees_blocks, 60, "blocks between executors")  # otherwise, finding none afterwards proves nothing
    cancelled_at = time.monotonic()
    sc.cancelJobGroup("cluster")
    thread.join()
    seconds = time.monotonic() - cancelled_at
    wait_until(lambda: set(sessions_in_executors(spark)) == {0}, 10, "executors have no gang session")
    free = time.monotonic() - cancelled_at
    remaining = blocks_on_executors(spark, range(first, broadcast_id(spark)), range(200))
    return {"seconds": seconds, "free": free, "raised": raised, "blocks": remaining, "left": left_after(spark)}


if __name__ == "__main__":
    secured = sys.argv[1] == "secured"
    spark = session("local-cluster[2,1,1024]", SECURED if secured else {})
    shared = (large_messages, large_messages_of_strings, early_exchanges, kept_state, kept_indexes, cancelled_run)
    print_facts(spark, executors, fixtures, *shared)
    spark.stop()
