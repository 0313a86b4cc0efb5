"""How the gang reads: each row of a file once, whatever pieces it is cut into; shuffled inputs without a detour."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, Row, SparkSession

ROWS = 300_000
KEYS = 1_000


def write_numbers(folder: Path, row_group: int, files: int = 1) -> None:
    """Numbers from 0 that hardly compress: more than the megabyte below which nothing is cut."""
    for i in range(files):
        numbers = range(i * ROWS // files, (i + 1) * ROWS // files)
        table = pa.table({"n": numbers, "k": [n * 7919 % KEYS for n in numbers]})
        pq.write_table(table, folder / f"part-{i}.parquet", row_group_size=row_group, use_dictionary=False)


def rows_by_key(df: DataFrame, **options: str) -> DataFrame:
    """Counts and sums base rows by key, so a row that was lost or read twice shows; the step adds nothing."""
    base = df.selectExpr("k", "1L as rows", "n as total")
    return base.recursive_agg(
        "k", {"rows": "count", "total": "sum"}, step=lambda r: r.where("k < 0"), backend="spark", **options
    )


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("names", ["NULL", "IF(id < 0, 'a', NULL)", "IF(id = 1, 'a', NULL)"])
def test_a_column_of_strings_without_strings(spark: SparkSession, names: str, partitions: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    base = spark.range(3).selectExpr(f"CAST({names} AS string) AS name", "id")

    def greatest(rows: DataFrame) -> list[Row]:
        step = rows.recursive_agg("name", {"id": "max"}, step=lambda r: r.where("id > 9"), backend="spark")
        return step.orderBy("name").collect()

    assert greatest(base) == base.groupBy("name").agg(F.max("id").alias("id")).orderBy("name").collect()
    assert greatest(base.where("id < 0")) == []


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize(("row_group", "files"), [(10_000, 1), (ROWS, 1), (50_000, 5)])
def test_every_row_of_a_file_is_read_once(
    spark: SparkSession, tmp_path: Path, partitions: int, row_group: int, files: int
) -> None:
    write_numbers(tmp_path, row_group, files)
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    df = spark.read.parquet(str(tmp_path))
    found = {r.k: (r.rows, r.total) for r in rows_by_key(df).collect()}
    assert len(found) == KEYS
    assert found == {
        r.k: (r.rows, r.total)
        for r in df.groupBy("k").agg(F.count("*").alias("rows"), F.sum("n").alias("total")).collect()
    }


def test_shuffled_inputs_come_in_few_partitions_and_without_a_stage_between(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", 50)
    spark.conf.set("spark.sql.adaptive.enabled", "true")
    numbers = spark.range(10_000).selectExpr("id as n", "id % 100 as k")
    found = rows_by_key(numbers.repartition("k"))
    spark.sparkContext.setJobGroup("inputs", "a shuffled input")
    rows = {r.k: r.total for r in found.collect()}
    tracker = spark.sparkContext.statusTracker()
    stages = {s for job in tracker.getJobIdsForGroup("inputs") for s in tracker.getJobInfo(job).stageIds}
    ran = [info for s in stages if (info := tracker.getStageInfo(s)) is not None and info.numCompletedTasks > 0]
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert rows == {k: sum(range(k, 10_000, 100)) for k in range(100)}
    assert len(ran) == 3, [(s.name, s.numTasks) for s in ran]  # the map side of the shuffle, the gang, the result
    plan = found._jdf.queryExecution().executedPlan().toString()
    assert "AQEShuffleRead coalesced" in plan


def test_a_shuffled_input_without_aqe(spark: SparkSession) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", 7)
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    numbers = spark.range(10_000).selectExpr("id as n", "id % 100 as k")
    found = rows_by_key(numbers.repartition("k"))
    assert {r.k: r.total for r in found.collect()} == {k: sum(range(k, 10_000, 100)) for k in range(100)}
    assert sum(r.total for r in found.collect()) == sum(range(10_000))  # again, from the shuffle that is still there


@pytest.mark.parametrize("aqe", ["true", "false"])
def test_a_file_that_base_and_step_read_is_read_once(spark: SparkSession, tmp_path: Path, aqe: str) -> None:
    """A chain of edges, read in three ways: as vertices, forwards and backwards."""
    spark.conf.set("spark.sql.adaptive.enabled", aqe)
    pq.write_table(pa.table({"a": range(1, 5_000), "b": range(5_000 - 1)}), tmp_path / "edges.parquet")
    edges = spark.read.parquet(str(tmp_path))
    found = edges.selectExpr("a AS node", "a AS label").recursive_agg(
        "node",
        {"label": "min"},
        step=lambda d: (
            d.join(edges, d.node == edges.a)
            .select(edges.b.alias("node"), d.label)
            .union(d.join(edges, d.node == edges.b).select(edges.a.alias("node"), d.label))
        ),
        backend="spark",
    )
    spark.sparkContext.setJobGroup(f"read-once-{aqe}", "a file that is read in three ways")
    assert found.selectExpr("count(*)", "sum(label)").first() == (5_000, 5_000)
    tracker = spark.sparkContext.statusTracker()
    stages = {s for job in tracker.getJobIdsForGroup(f"read-once-{aqe}") for s in tracker.getJobInfo(job).stageIds}
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    store = spark.sparkContext._jsc.sc().statusStore()
    assert sum(store.lastStageAttempt(s).inputRecords() for s in stages) == 5_000 - 1


@pytest.mark.parametrize("partitions", [1, 2, 7])
@pytest.mark.parametrize("kind", ["numbers", "strings"])
def test_unions_of_columns_of_one_file_are_read_once(
    spark: SparkSession, tmp_path: Path, kind: str, partitions: int
) -> None:
    """Chains of 20 vertices in a file of edges, taken both ways by a union. Keys are long, equal in front, or null."""
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    spark.conf.set("spark.sql.adaptive.enabled", partitions != 2)

    def name(n: int) -> int | str:
        return n if kind == "numbers" else f"https://example.org/überall/{n % 7}/{'x' * (n % 40)}/{n}"

    pairs = [(name(n), name(n + 1)) for n in range(4_000) if n % 20 != 19] + [(None, name(5_000))]
    a, b = zip(*pairs, strict=True)
    pq.write_table(pa.table({"a": a, "b": b}), tmp_path / "edges.parquet", row_group_size=1_000)
    edges = spark.read.parquet(str(tmp_path))
    both = edges.union(edges.select(edges.b.alias("a"), edges.a.alias("b")))
    found = both.select(both.a.alias("node"), both.a.alias("label")).recursive_agg(
        "node",
        {"label": "min"},
        step=lambda d: d.join(both, d.node == both.a).select(both.b.alias("node"), d.label),
        backend="spark",
    )
    group = f"union-{kind}-{partitions}"
    spark.sparkContext.setJobGroup(group, "a union of columns of one file")
    rows = {r.node: r.label for r in found.collect()}
    expected = {
        name(n): min(
            (name(m) for m in range(n - n % 20, n - n % 20 + 20)), key=lambda k: k if kind == "numbers" else k.encode()
        )
        for n in range(4_000)
    }
    assert rows == expected | {name(5_000): name(5_000), None: name(5_000)}
    tracker = spark.sparkContext.statusTracker()
    stages = {s for job in tracker.getJobIdsForGroup(group) for s in tracker.getJobInfo(job).stageIds}
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    store = spark.sparkContext._jsc.sc().statusStore()
    assert sum(store.lastStageAttempt(s).inputRecords() for s in stages) == len(pairs)


SHARING = """
near(-3).
near(y) :- near(x), y = x + 1, y <= 3.
to(0).
to(y) :- to(x), near(d), d != 0, 6 / d = x, y = x + 100.
to(y) :- to(x), near(d), d > 1, y = x + d, y < 50.
to(y) :- to(x), near(d), y = x + 7 * d, y > -50, y < 50.
"""


@pytest.mark.parametrize("aqe", ["true", "false"])
@pytest.mark.parametrize("backend", ["spark", "local"])
def test_inputs_of_one_result_share_it_and_evaluate_only_their_own_rows(
    spark: SparkSession, backend: str, aqe: str
) -> None:
    """In ANSI mode 6 / 0 is an error, which a rule without that row must not get from one that has it."""
    spark.conf.set("spark.sql.ansi.enabled", "true")
    spark.conf.set("spark.sql.adaptive.enabled", aqe)
    found = ra.datalog(spark, SHARING, backend=backend)["to"]
    plan = found._jdf.queryExecution().analyzed().toString()
    assert plan.count("RecursiveAggregate near") == 1
    assert "(6 div d" in plan
    near, expected, new = range(-3, 4), {0}, {0}
    while new:
        jumps = {x + 100 for x in new for d in near if d != 0 and int(6 / d) == x}
        steps = {x + d for x in new for d in near if d > 1} | {x + 7 * d for x in new for d in near}
        new = (jumps | {y for y in steps if -50 < y < 50}) - expected
        expected |= new
    assert {row[0] for row in found.collect()} == expected
    assert {94, 103} < expected
