"""The rows that ``ra.maintain`` computes: once, whatever reads them, and kept until ``free``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from rows import frame

import pyspark_paralagg as ra
from pyspark_paralagg.maintenance.rows import MAX_DRIVER_ROWS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from pyarrow import RecordBatch
    from pyspark.sql import DataFrame, SparkSession

    Tables = Mapping[str, DataFrame]

STARTS = "node bigint, dist bigint"


def noted(file: Path) -> Callable[[Iterator[RecordBatch]], Iterator[RecordBatch]]:
    """Return a function of batches that adds a line to ``file`` each time it runs."""
    name = str(file)

    def note(batches: Iterator[RecordBatch]) -> Iterator[RecordBatch]:
        with open(name, "a", encoding="utf-8") as lines:  # noqa: PTH123 - runs in a worker
            lines.write("read\n")
        yield from batches

    return note


def chain(top: int) -> Callable[[DataFrame, Tables], DataFrame]:
    return lambda d, _: d.selectExpr("node + 1 AS node", "dist + 1 AS dist").where(f"node < {top}")


def test_a_full_run_is_computed_once(spark: SparkSession, tmp_path: Path) -> None:
    starts = frame(spark, STARTS, [(0, 0)]).coalesce(1).mapInArrow(noted(tmp_path / "reads"), STARTS)
    new = ra.maintain(
        frame(spark, STARTS, [(0, 5), (7, 7)]),
        keys="node",
        aggs={"dist": "sum"},
        sources={"starts": starts},
        inserted={"starts": frame(spark, STARTS, [(0, 0)])},
        base=lambda t: t["starts"],
        step=chain(3),
        mode="iterate",
        max_iterations=10,
        backend="spark",
    )
    counts = [len(new.rows.collect()), len(new.upserts.collect()), len(new.removed.collect())]
    assert (new.kind, counts) == ("full", [3, 3, 1])
    assert (tmp_path / "reads").read_text() == "read\n"


def persisted(spark: SparkSession) -> set[int]:
    return set(spark.sparkContext._jsc.getPersistentRDDs().keySet())


@pytest.mark.parametrize("kind", ["full", "incremental"])
def test_many_computed_rows_are_freed(spark: SparkSession, kind: str) -> None:
    top = MAX_DRIVER_ROWS + 10
    options: dict[str, Any] = {"max_iterations": 5, "on_limit": "return"} if kind == "full" else {}
    numbers = spark.range(1, top).selectExpr("id AS node", "id AS dist")
    before = persisted(spark)
    new = ra.maintain(
        frame(spark, STARTS, [(0, 0)]),
        keys="node",
        aggs={"dist": "min"},
        sources={"starts": numbers.unionAll(frame(spark, STARTS, [(0, 0)]))},
        inserted={"starts": numbers},
        base=lambda t: t["starts"],
        step=lambda d, t: d.join(t["starts"], d.node == t["starts"].dist + 1).select(d.node, d.dist),
        backend="spark",
        **options,
    )
    assert (new.kind, new.rows.count()) == (kind, top)
    kept = persisted(spark) - before  # Spark may drop those of other tests at any time
    assert kept
    new.free()
    new.free()
    assert not persisted(spark) & kept
