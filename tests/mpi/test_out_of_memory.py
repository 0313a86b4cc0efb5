"""Test ranks that run out of memory or are killed: the job soon fails with rank and host, and no process is left."""

from __future__ import annotations

import re
import socket
import sys
import time
from typing import TYPE_CHECKING

import pytest
from mpi.harm import Harm, kill, processes_in, starve
from pyspark.errors import QueryExecutionException

import pyspark_paralagg as ra
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytest.importorskip("numba", reason="the MPI engine needs numba")
pytest.importorskip("mpi4py", reason="ranks need mpi4py")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of other processes are Linux's")

PROMPT_SECONDS = 8
CLEARED_SECONDS = 5
ENDLESS = 10**12
STARVED = (
    r"\[PARALAGG_MPI_OUT_OF_MEMORY\] the rank ran out of memory at \d{3,} MB: .+ \(rank {rank} on {host}\)\."
    r"\nTraceback \(most recent call last\):\n(?s:.+)MemoryError.*\n(?s:.*)Hint: "
    "use more machines, or fewer ranks on each"
)
KILLED = (
    r"\[PARALAGG_MPI_RANK_FAILED\] a rank was killed by signal 9 \(rank {rank} on {host}\)\.(?s:.*)"
    r"Hint: find the sender of the signal"
)


@pytest.fixture
def session(spark: SparkSession, tmp_path: Path) -> Iterator[SparkSession]:
    """Configure two ranks with their files in ``tmp_path``."""
    settings = {conf.MPI_RANKS: "2", conf.MPI_OVERSUBSCRIBE: "true", conf.MPI_STAGING_DIR: str(tmp_path)}
    ra.attach(spark, {key.name: value for key, value in settings.items()})
    yield spark
    ra.attach(spark, dict.fromkeys(key.name for key in settings))


def numbered_tree(spark: SparkSession, below: int, backend: str) -> DataFrame:
    """Derive 2n and 2n + 1 from each n < ``below``, from 1 on: the rows double in each round."""

    def step(tree: DataFrame) -> DataFrame:
        inner = tree.where(f"node < {below}")
        return inner.selectExpr("2 * node as node").union(inner.selectExpr("2 * node + 1 as node"))

    return ra.recursive_agg(spark.range(1, 2).selectExpr("id as node"), "node", step=step, backend=backend)


def is_cleared(folder: Path) -> bool:
    until = time.monotonic() + CLEARED_SECONDS
    while (is_left := bool(processes_in(folder)) or any(folder.iterdir())) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_left


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize(
    ("backend", "rank", "harm", "error"),
    [("local", 0, starve, STARVED), ("mpi", 1, starve, STARVED), ("mpi", 0, kill, KILLED)],
)
def test_a_rank_without_memory_ends_the_job_with_an_error(  # noqa: PLR0913, PLR0917 - the cases, and where they run
    session: SparkSession, tmp_path: Path, backend: str, rank: int, harm: Callable[[int], None], error: str
) -> None:
    harmed = Harm(tmp_path, rank, harm)
    with pytest.raises(QueryExecutionException) as caught:
        numbered_tree(session, ENDLESS, backend).collect()
    ended = time.monotonic()
    assert harmed.done is not None
    assert ended - harmed.done < PROMPT_SECONDS
    expected = error.replace("{rank}", str(rank)).replace("{host}", re.escape(socket.gethostname()))
    assert re.match(expected, str(caught.value)), str(caught.value)
    assert is_cleared(tmp_path)
    assert numbered_tree(session, 4, backend).count() == 7
