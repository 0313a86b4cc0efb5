"""``backend="python"`` in a classic session: the engine in a Python worker; ``tests/connect`` has Spark Connect."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import pytest
from pyspark import TaskContext
from rows import rows_of
from test_fixtures import CASES, check

import pyspark_paralagg as ra
from pyspark_paralagg.session import workers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("numba", reason="the engine needs numba")


@pytest.mark.rotates(runs=10)
@pytest.mark.parametrize("case", CASES)
def test_fixture(spark: SparkSession, case: str) -> None:
    check(spark, case, "python")


def counting(spark: SparkSession, **options: object) -> DataFrame:
    base = spark.range(1).selectExpr("id as node", "0L as hops")
    return base.recursive_agg(
        "node",
        {"hops": "min"},
        step=lambda d: d.where("node < 9").selectExpr("node + 1 as node", "hops + 1 as hops"),
        backend="python",
        **options,
    )


def test_report_is_found_after_further_transformations(spark: SparkSession) -> None:
    result = counting(spark)
    assert ra.report(result) is None
    further = result.where("hops > 2")
    assert len(rows_of(further)) == 7
    report = ra.report(further)
    assert report is not None
    assert (report.backend, report.iterations, report.tuples) == ("python", 10, 10)
    assert "Executor: python" in ra.explain(further)
    assert ra.report(spark.range(1)) is None


def test_limit_is_an_error_with_its_code(spark: SparkSession) -> None:
    with pytest.raises(Exception, match="FixpointError: PARALAGG_LIMIT_REACHED"):
        counting(spark, max_iterations=2).collect()


def test_auto_never_takes_it(spark: SparkSession) -> None:
    base = spark.range(1).selectExpr("id as node")
    result = base.recursive_agg("node", step=lambda d: d.where("node < 3").selectExpr("node + 1 as node"))
    assert "Executor: spark" in ra.explain(result)


def test_a_worker_that_starts_late_counts(spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """On a busy machine the second of two workers started after the first had waited for it."""
    waiting, waits, first_is_done = workers._waiting, list[float](), tmp_path / "first-is-done"

    def late_at_first(seconds: float) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        waits.append(seconds)
        wait = waiting(seconds)
        if len(waits) > 1:
            return wait

        def late(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            first = context is None or context.partitionId() == 0
            while not first and not first_is_done.exists():
                time.sleep(0.05)
            yield from wait(batches)
            if first:
                first_is_done.touch()

        return late

    monkeypatch.setattr(workers, "_waiting", late_at_first)
    monkeypatch.setattr(workers, "_SLOTS", WeakKeyDictionary())
    assert workers.tasks_at_once(spark, 2) == 2
    assert workers.tasks_at_once(spark, 2) == 2
    assert len(waits) == 2
