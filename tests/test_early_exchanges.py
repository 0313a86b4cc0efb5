"""Test that exchanges within an iteration change no row on the Spark engine, and that the report counts them.

The programs are those of ``mpi/test_roll_over.py``; the engine in one process, which exchanges nothing, has the rows.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from mpi.staged import Staged
from mpi.test_refining import COLUMNS, inputs
from mpi.test_roll_over import ALL, ERRORS, FAILING
from spark_versions import RUN_ERRORS

import pyspark_paralagg as ra
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LEFT, RIGHT = 4000, 200
TEXTS = ALL | {
    "two of one": "p(x, y) :- q(x, y). q(x, y) :- edge(x, y, _). q(y, z) :- p(x, y), edge(x, z, _). "
    "p(z, x) :- q(x, y), edge(y, z, _).",
}


@pytest.fixture(autouse=True)
def all_tasks(spark: SparkSession) -> None:
    """No relation is evaluated in one task, and no input is copied to all tasks: rows have to be exchanged."""
    spark.conf.set("spark.paralagg.oneTask.maxRows", 0)
    spark.conf.set("spark.paralagg.broadcast.maxBytes", 0)


def columns_of(text: str) -> dict[str, list[tuple[str, str]]]:
    return {name: columns for name, columns in COLUMNS.items() if f"{name}(" in text}


def query(spark: SparkSession, text: str, tasks: int, limit: int | None) -> DataFrame:
    """Return relation ``p`` of a text."""
    spark.conf.set("spark.sql.shuffle.partitions", tasks)
    if limit is not None:
        spark.conf.set("spark.paralagg.rollOverRows", limit)
    frames = {
        name: spark.createDataFrame(inputs()[name], ", ".join(f"{c} {t}" for c, t in columns))
        for name, columns in columns_of(text).items()
    }
    return ra.datalog(spark, text, frames, backend="spark")["p"]


def form(df: DataFrame) -> str:
    report = ra.report(df)
    assert report is not None
    return report.form


def early(df: DataFrame) -> int:
    """Return the number of early exchanges of the last run."""
    [number] = re.findall(r"(\d+) early exchanges?", form(df)) or ["0"]
    return int(number)


@pytest.fixture(scope="module", params=TEXTS)
def case(request: pytest.FixtureRequest) -> tuple[str, list[tuple[object, ...]]]:
    """Return a text, and the rows of ``p``."""
    text = TEXTS[request.param]
    staged = Staged(resolve_text(parse(text), columns_of(text)), inputs(), ["p"])
    return text, sorted(staged.run_local()["p"], key=repr)


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize(("tasks", "limit"), [(1, 1), (2, 1), (2, 7), (7, 1), (7, 7)])
def test_early_exchanges_change_no_row(
    spark: SparkSession, case: tuple[str, list[tuple[object, ...]]], tasks: int, limit: int
) -> None:
    text, expected = case
    df = query(spark, text, tasks, limit)
    assert sorted(map(tuple, df.collect()), key=repr) == expected
    assert (early(df) > 0) == (tasks > 1), form(df)


@pytest.mark.parametrize(("limit", "least"), [(20_000, 8), (100_000, 2)])
def test_few_rows_of_others_are_held(spark: SparkSession, limit: int, least: int) -> None:
    """One round derives all pairs of a bowtie. Rules pause soon after the limit, and ghosts that were sent are gone."""
    text = "p(x, y, $MIN(1)) :- edge(x, y). p(x, z, $MIN(v + 1)) :- p(x, y, v), edge(y, z)."
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    spark.conf.set("spark.paralagg.rollOverRows", limit)
    left = spark.range(LEFT).selectExpr("-id - 1 as x", "0L as y")
    right = spark.range(RIGHT).selectExpr("1L as x", "id + 2 as y")
    edges = left.union(right).union(spark.sql("select 0L, 1L"))
    df = ra.datalog(spark, text, edge=edges, backend="spark")["p"]
    assert df.count() == LEFT * RIGHT + 2 * (LEFT + RIGHT) + 1
    report = ra.report(df)
    assert report is not None
    words = sum(r["bytes"] for r in report.rounds) / 8
    assert least <= early(df) <= words / 2 / limit  # each sends at least the limit; `count` reads no value of a row


@pytest.mark.parametrize("limit", [None, 0])
def test_few_rows_are_sent_at_the_end_of_an_iteration(spark: SparkSession, limit: int | None) -> None:
    df = query(spark, ALL["shortest"], 2, limit)
    df.count()
    assert "early" not in form(df)


@pytest.mark.parametrize("tasks", [2, 7])
@pytest.mark.parametrize("text", FAILING)
def test_all_tasks_end_with_the_same_error(spark: SparkSession, text: str, tasks: int) -> None:
    """A task whose sum overflows in an early exchange takes part in those of tasks that continue."""
    with pytest.raises(RUN_ERRORS, match=ERRORS[text]):
        query(spark, FAILING[text], tasks, 1).collect()
