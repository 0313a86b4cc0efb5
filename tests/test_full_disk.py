"""A staging directory on a full disk: an error that names it, from the tasks that write and from the ranks."""

from __future__ import annotations

import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from small_disk import may_mount, small_disk

import pyspark_paralagg as ra
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("numba")
ROWS = 200_000
INPUT_KB = 6200
"""What the rows of the edges take in the staging directory, and a little more; the result takes 3,200 KB."""


@pytest.fixture
def staging(spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """``staging(kilobytes)`` gives the staging directory, which has so much space."""
    if not may_mount():
        pytest.skip("this user may not mount file systems")
    with ExitStack() as mounted:

        def small(kilobytes: int) -> Path:
            folder = mounted.enter_context(small_disk(tmp_path / "disk", kilobytes))
            ra.attach(spark, {conf.MPI_STAGING_DIR.name: folder})
            return folder

        yield small
        ra.attach(spark, {conf.MPI_STAGING_DIR.name: None})


def hops(spark: SparkSession) -> DataFrame:
    edges = spark.range(0, ROWS, 1, 2).selectExpr("id AS src", "id + 1 AS dst", "1L AS w")
    start = spark.createDataFrame([(i, 0) for i in range(3)], "node bigint, dist bigint")
    return start.recursive_agg(
        "node",
        {"dist": "min"},
        step=lambda d: d.join(edges, d.node == edges.src).select(
            edges.dst.alias("node"), (d.dist + edges.w).alias("dist")
        ),
        backend="local",
    )


@pytest.mark.parametrize(
    ("kilobytes", "words"),
    [
        (4, "rows for ranks cannot be written to {}"),
        (3000, "rows for ranks cannot be written to {}"),
        (INPUT_KB + 400, "No space left on device"),
    ],
)
def test_full_staging_disk(spark: SparkSession, staging: Callable[[int], Path], kilobytes: int, words: str) -> None:
    folder = staging(kilobytes)
    with pytest.raises(Exception, match="PARALAGG_MPI_STAGING") as e:
        hops(spark).count()
    assert words.format(folder) in str(e.value)
    assert "spark.paralagg.mpi.stagingDir" in str(e.value)
    assert "Traceback" not in str(e.value)
    until = time.monotonic() + 20  # Spark tells its listeners of a job's end a little later
    while any(folder.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    assert list(folder.iterdir()) == []


def test_enough_space_is_no_error(spark: SparkSession, staging: Callable[[int], Path]) -> None:
    staging(2 * INPUT_KB)
    assert hops(spark).count() == ROWS + 1
