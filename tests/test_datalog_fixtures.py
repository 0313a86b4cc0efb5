"""Every fixture that a text can say: its ``program.dl`` gives the rows of ``step.py``, whatever runs it.

The Spark engine by the command, plain DataFrames, and the reference interpreter, which knows no Spark. Most texts give
the Plan of their step, which ``test_fixtures.py`` runs with every number of partitions; the others run with them here.
Rows are compared, not types: a ``number`` has 64 bits, where a step may keep fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from datalog.fixtures import ALL, CASES, WITHOUT_NAN, WITHOUT_NULLS, Case
from datalog.interpreter import evaluate
from datalog.same_plan import strata_of
from datalog.simulate import simulate_whole
from rows import frame, parse, read_table, rows_of
from spark_versions import SPARK
from test_fixtures import SETTINGS, load

import pyspark_paralagg as ra
from pyspark_paralagg.command.cli import OK, main
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

OTHER_TYPES = ("bfs_hops", "company_control", "hops_limited_return", "limit_just_met", "pagerank_20_rounds_initial")
OTHER_TYPES += ("pagerank_dangling_20_rounds", "pagerank_dangling_tolerance", "pagerank_powerlog", "all_trusted")
OTHER_TYPES += ("bit_and_filters", "company_control_hops")
"""A number of the text has 64 bits, a float is a double; the step has smaller types."""
OTHER_RULES = ("cat_paths", "components", "critical_path", "first_routes", "kcfa", "most_probable_path", "semi_join")
OTHER_RULES += ("cores", "same_generation_cousins", "step_ignores_relation", "two_colours", "two_strata")
"""The text says the same by other rules, such as one for each direction of an edge."""
OTHER_PLAN = (*OTHER_TYPES, *OTHER_RULES)
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


@pytest.mark.rotates(runs=3)
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


@pytest.mark.parametrize("name", CASES)
def test_text_gives_the_plan_of_the_step(spark: SparkSession, name: str) -> None:
    tables = {path.stem: frame(spark, *read_table(path)) for path in ALL[name].path.parent.glob("*.tsv")}
    of_step = load(ALL[name].path.parent / "step.py").run(tables, backend="spark")
    of_text = _results(spark, ALL[name], "spark")
    steps = strata_of(of_step.values() if isinstance(of_step, dict) else [of_step])
    assert steps
    if SPARK < (4, 0) and name == "cyk":
        pytest.skip("Spark 3.5 guesses other sizes of facts, so it broadcasts others")
    assert (strata_of(of_text.values()) == steps) is (name not in OTHER_PLAN)


@pytest.mark.rotates(runs=6, by=("name",))
@pytest.mark.parametrize(("partitions", "aqe"), SETTINGS)
@pytest.mark.parametrize("name", OTHER_PLAN)
def test_text_gives_the_rows_of_the_fixture(spark: SparkSession, name: str, partitions: int, *, aqe: bool) -> None:
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    spark.conf.set("spark.sql.adaptive.enabled", str(aqe).lower())
    _run(spark, ALL[name], "spark")


@pytest.mark.rotates(runs=3)
@pytest.mark.parametrize("name", ON_DATAFRAMES)
def test_text_gives_the_rows_of_the_fixture_on_plain_dataframes(spark: SparkSession, name: str) -> None:
    _run(spark, ALL[name], "dataframe")


def _run(spark: SparkSession, case: Case, backend: str) -> None:
    case.compare({name: rows_of(df) for name, df in _results(spark, case, backend).items()})


def _results(spark: SparkSession, case: Case, backend: str) -> Mapping[str, DataFrame]:
    inputs = {name: frame(spark, *table) for name, table in case.inputs.items()}
    return ra.datalog(spark, case.source, inputs, backend=backend)
