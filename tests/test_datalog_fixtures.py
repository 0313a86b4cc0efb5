"""Every fixture that a text can say: its ``program.dl`` gives the rows of ``step.py``, whatever runs it.

The Spark engine, plain DataFrames, the command, and the reference interpreter, which knows no Spark. A text becomes the
same Program as a step, whose fixtures run with every number of partitions; here each case runs with two of them. Rows
are compared, not types: a ``number`` has 64 bits, where a step may keep fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from datalog.fixtures import ALL, CASES, WITHOUT_NAN, WITHOUT_NULLS, Case
from datalog.interpreter import evaluate
from datalog.simulate import simulate_whole
from rows import frame, parse, rows_of

import pyspark_paralagg as ra
from pyspark_paralagg.command.cli import OK, main
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SETTINGS = [
    pytest.param(name, partitions, aqe, id=f"{name}-{partitions}-{'aqe' if aqe else 'plain'}")
    for number, name in enumerate(CASES)
    for partitions, aqe in ((2, True), ((1, 7)[number % 2], False))
]
ON_DATAFRAMES = ("cat_paths", "components", "earliest_date", "interval_merging", "mutual_even_odd", "points_to")
ON_DATAFRAMES += ("initial_is_forgotten", "shortest_path_tree", "unreachable")
"""A round is a query there, so a few stand for all: what they differ in is how a text becomes a step."""


@pytest.mark.parametrize("name", WITHOUT_NAN)
def test_reference_gives_the_rows_of_the_fixture(name: str) -> None:
    case = ALL[name]
    found = evaluate(case.text, {relation: set(rows) for relation, (_, rows) in case.inputs.items()})
    case.compare({relation: list(found[relation]) for relation in case.expected})


@pytest.mark.parametrize("name", WITHOUT_NAN)
def test_one_plan_for_the_whole_text_gives_the_rows_of_the_fixture(name: str) -> None:
    """Without Spark, on two simulated tasks."""
    case = ALL[name]
    found = simulate_whole(resolve_text(case.text, case.types), {r: rows for r, (_, rows) in case.inputs.items()}, 2)
    case.compare({relation: found[relation] for relation in case.expected})


@pytest.mark.parametrize("name", CASES)
def test_command_gives_the_rows_of_the_fixture(spark: SparkSession, tmp_path: Path, name: str) -> None:
    """From text to text; by Parquet what text cannot say: nulls, and types that Datalog has no name for."""
    case = ALL[name]
    is_text = case.is_declared and name in WITHOUT_NULLS
    for relation, (ddl, rows) in case.inputs.items():
        if is_text:
            lines = ("\t".join(str(value) for value in row) for row in rows)
            (tmp_path / f"{relation}.facts").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        else:
            frame(spark, ddl, rows).write.parquet(str(tmp_path / f"{relation}.parquet"))
    out = tmp_path / "out"
    form = "csv" if is_text else "parquet"
    command = ["run", str(case.path), "--facts", str(tmp_path), "--out", str(out), "--format", form, "--quiet"]
    assert main(command) == OK
    assert {p.name for p in out.iterdir()} == {f"{relation}.{form}" for relation in case.expected}
    case.compare({relation: _written(out / f"{relation}.{form}", ddl) for relation, (ddl, _) in case.expected.items()})


def _written(file: Path, ddl: str) -> list[tuple[Any, ...]]:
    if file.suffix == ".parquet":
        return [tuple(row.values()) for row in pq.read_table(file).to_pylist()]
    kinds = [column.rpartition(" ")[2] for column in ddl.split(", ")]
    lines = file.read_text(encoding="utf-8").splitlines()
    return [tuple(map(parse, line.split("\t"), kinds)) for line in lines]


@pytest.mark.parametrize(("name", "partitions", "aqe"), SETTINGS)
def test_text_gives_the_rows_of_the_fixture(spark: SparkSession, name: str, partitions: int, *, aqe: bool) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    spark.conf.set("spark.sql.adaptive.enabled", str(aqe).lower())
    _run(spark, ALL[name], "spark")


@pytest.mark.parametrize("name", ON_DATAFRAMES)
def test_text_gives_the_rows_of_the_fixture_on_plain_dataframes(spark: SparkSession, name: str) -> None:
    _run(spark, ALL[name], "dataframe")


def _run(spark: SparkSession, case: Case, backend: str) -> None:
    inputs = {name: frame(spark, *table) for name, table in case.inputs.items()}
    found = ra.datalog(spark, case.source, inputs, backend=backend)
    case.compare({name: rows_of(df) for name, df in found.items()})
