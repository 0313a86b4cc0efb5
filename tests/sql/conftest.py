"""Views that every test of SQL reads: a random graph with hubs and cycles, one without cycles, and a tree."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rows import frame, rows_of
from spark_versions import since

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

Rows = list[tuple[object, ...]]

TABLES = {
    "graph": "src bigint, dst bigint, w bigint",
    "parts": "whole bigint, part bigint, qty bigint",
    "parent": "child bigint, parent bigint",
    "few": "src bigint, dst bigint, w bigint",
}


def _rows() -> dict[str, Rows]:
    dice = random.Random(7)  # noqa: S311 - a test's dice
    edges: Rows = [
        (int(80 * dice.random() ** 2), int(80 * dice.random() ** 2), dice.randint(1, 50)) for _ in range(300)
    ]
    parts: Rows = [(n, dice.randint(n + 1, n + 6), dice.randint(1, 3)) for n in range(12) for _ in range(2)]
    parent: Rows = [(n, n // 2) for n in range(1, 40)]
    return {
        "graph": edges,
        "parts": parts,
        "parent": parent,
        "few": [(1, 2, 4), (2, 3, 5), (3, 1, 1), (3, 4, 1), (1, 4, 20)],
    }


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip all tests but those of the refusal where Spark parses no recursive query."""
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.path.name != "test_old_spark.py":
            item.add_marker(since("4.0", "Spark 3.5 parses no recursive query"))


@pytest.fixture(scope="session")
def views(spark_session: SparkSession) -> None:
    """The views, in the session."""
    for name, rows in _rows().items():
        frame(spark_session, TABLES[name], rows).createOrReplaceTempView(name)


@pytest.fixture(scope="session")
def oracle() -> Iterator[Callable[[str], Rows]]:
    """The same tables in DuckDB, which Python 3.10 does not get: what a query gives there."""
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as db:
        for name, rows in _rows().items():
            db.execute(f"CREATE TABLE {name} ({TABLES[name]})")
            places = ", ".join("?" * len(rows[0]))
            db.executemany(f"INSERT INTO {name} VALUES ({places})", rows)  # noqa: S608 - the test's own tables
        yield lambda query: db.execute(query).fetchall()


@pytest.fixture
def run(spark: SparkSession, views: None) -> Iterator[Callable[[str], Rows]]:  # noqa: ARG001 - made once
    """What a query gives in Spark; the shim's Python is put back afterwards."""
    python = spark.sparkContext.getConf().get("spark.paralagg.python")
    yield lambda query: rows_of(spark.sql(query))
    ra.attach(spark, {"spark.paralagg.python": python})
