"""Test the gang where it applies the best rows first, or one value of a carried key at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from ordered_cases import CASES, LABELS, OrderedCase
from pyspark.errors import PySparkException
from rows import arrow_frame
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from spark_versions import RUN_ERRORS

import pyspark_paralagg as ra
from pyspark_paralagg.session.condition import condition_of

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

VERTICES, EDGES = 300, 900
TASKS = pytest.mark.parametrize("tasks", [1, 2, 7])


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> OrderedCase:
    """Return a program over the graph, and its expected rows."""
    return CASES[request.param]()


def form_of(spark: SparkSession, case: OrderedCase, tasks: int, one_task_rows: int) -> str:
    """Check the rows of a case. Return the form of its run."""
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    spark.conf.set("spark.paralagg.oneTask.maxRows", one_task_rows)
    frames = {name: arrow_frame(spark, table) for name, table in case.facts.items()}
    found = ra.datalog(spark, case.text, frames, backend="spark")["found"]
    assert sorted(tuple(r) for r in found.collect()) == case.rows
    report = ra.report(found)
    assert report is not None
    return report.form


@pytest.mark.parametrize("one_task_rows", [0, 1 << 20])
@TASKS
def test_the_best_rows_first(spark: SparkSession, case: OrderedCase, tasks: int, one_task_rows: int) -> None:
    form = form_of(spark, case, tasks, one_task_rows)
    assert form.endswith(f"in {tasks} tasks" if tasks > 1 and not one_task_rows else "in one task")


@pytest.mark.parametrize(("tasks", "heavy_parts"), [(2, 100), (7, 1 << 20)])
def test_edges_of_hubs_change_no_row(spark: SparkSession, case: OrderedCase, tasks: int, heavy_parts: int) -> None:
    spark.conf.set("spark.paralagg.heavyParts", heavy_parts)
    form = form_of(spark, case, tasks, 0)
    assert (" spread" in form) == (case.text != LABELS)  # its rows all have a few edges


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spark.paralagg.oneTask.maxRows", "-1"),
        ("spark.paralagg.oneTask.maxRows", "few"),
        ("spark.paralagg.checkpoint.interval", "0"),
    ],
)
def test_a_conf_that_is_no_number(
    spark: SparkSession, request: pytest.FixtureRequest, tmp_path: Path, key: str, value: str
) -> None:
    folder = "spark.paralagg.checkpoint.dir"
    ra.attach(spark, {folder: tmp_path.as_uri()})
    request.addfinalizer(lambda: (ra.attach(spark, {folder: None}), spark.conf.unset(key)))
    spark.conf.set(key, value)
    edges = np.array([[0, 1]])
    with pytest.raises(PySparkException, match=f"PARALAGG_BAD_CONF.*{key} is '{value}'"):
        distances_from(spark, edges_of(spark, edges, np.ones(1, np.int64)), [0]).collect()


def edges_of(spark: SparkSession, edges: np.ndarray, weights: np.ndarray) -> DataFrame:  # type: ignore[type-arg]
    """Return edges of a known size, which may be copied to every task."""
    return arrow_frame(spark, pa.table({"src": edges[:, 0], "dst": edges[:, 1], "w": weights}))


def distances_from(spark: SparkSession, edges: DataFrame, sources: list[int]) -> DataFrame:
    """Return the distances from each source, which carries a day and its number."""
    rows = spark.createDataFrame([(s,) for s in sources], "s bigint")
    base = rows.selectExpr("date_add(DATE '2024-01-01', cast(s % 3 AS int)) AS day", "s AS node", "s", "0L AS dist")
    return base.recursive_agg(
        ["day", "node", "s"],
        {"dist": "min"},
        backend="spark",
        step=lambda d: d.join(edges, d.node == edges.src).select(
            d.day, edges.dst.alias("node"), d.s, (d.dist + edges.w).alias("dist")
        ),
    )


@TASKS
def test_one_carried_value_at_a_time(spark: SparkSession, tasks: int) -> None:
    """The carried keys stand before and behind the key that moves."""
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    edges = np.unique(np.random.default_rng(5).integers(0, VERTICES, (EDGES, 2)), axis=0)
    weights = np.random.default_rng(6).integers(1, 100, len(edges))
    found = distances_from(spark, edges_of(spark, edges, weights), list(range(40)))
    assert "one carried value at a time" in ra.explain(found)
    matrix = coo_array((weights, (edges[:, 0], edges[:, 1])), shape=(VERTICES, VERTICES)).tocsr()
    expected = [
        (s % 3 + 1, n, s, int(d))
        for s, row in enumerate(dijkstra(matrix, indices=range(40)))
        for n, d in enumerate(row)
        if np.isfinite(d)
    ]
    rows = found.selectExpr("day(day)", "node", "s", "dist").collect()
    assert sorted(tuple(r) for r in rows) == sorted(expected)
    # Rows lie where the query expects those of their keys: this needs no shuffle.
    assert found.groupBy("day", "node", "s").count().where("count > 1").count() == 0
    report = ra.report(found)
    assert report is not None
    assert (report.tuples, report.form) == (len(expected), "one carried value at a time")


@TASKS
def test_more_carried_values_than_are_evaluated_one_at_a_time(spark: SparkSession, tasks: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    sources = list(range(4097 * tasks))
    edges = np.stack([np.arange(len(sources)), np.arange(len(sources)) + len(sources)], axis=1)
    found = distances_from(spark, edges_of(spark, edges, np.ones(len(edges), np.int64)), sources)
    assert found.selectExpr("count(*)", "sum(dist)").first() == (2 * len(sources), len(sources))


@TASKS
def test_an_error_of_one_value_ends_all(spark: SparkSession, tasks: int) -> None:
    """Only paths from source 17 overflow."""
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    edges = np.array([[s, s + 40] for s in range(40)] + [[57, 97]])
    weights = np.where(edges[:, 0] % 40 == 17, np.iinfo(np.int64).max, 1)
    with pytest.raises(RUN_ERRORS) as caught:
        distances_from(spark, edges_of(spark, edges, weights), list(range(40))).collect()
    assert condition_of(caught.value) == "ARITHMETIC_OVERFLOW"


@TASKS
def test_an_endless_climb_of_one_value_names_the_cycle(spark: SparkSession, tasks: int) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    edges = np.array([[s, s + 40] for s in range(40)] + [[57, 98], [98, 57]])
    weights = np.where(edges[:, 0] == 98, -9, 1)
    with pytest.raises(RUN_ERRORS, match="PARALAGG_NO_FIXPOINT") as caught:
        distances_from(spark, edges_of(spark, edges, weights), list(range(40))).collect()
    assert "(node=57)" in str(caught.value)
    assert "(node=98)" in str(caught.value)
