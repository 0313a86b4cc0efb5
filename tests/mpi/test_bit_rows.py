"""Test rows of bits on one and on several ranks: the rows of the definition, and tuples where bits do not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from bit_cases import TEXTS, BitCase, bit_case, many_values
from mpi.staged import Staged, run_on_ranks

from mpi_backend.comm import SingleRank
from mpi_backend.load.files import table_of
from mpi_backend.loop import bit_rows_loop
from mpi_backend.loop.engine import run_plan
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from pathlib import Path

SEEDS = range(6)


def staged(case: BitCase) -> Staged:
    """Return the case for this engine."""
    return Staged(resolve_text(parse(case.text), {}), case.facts, sorted(case.rows))


def forms(program: Staged) -> list[str]:
    """Return the forms in which the engine evaluates the strata of a program."""
    columns = {i.source: i.columns for i in program.plan.inputs if i.relation is None}
    tables = {n: table_of(c, program.sources[n].to_batches()) for n, c in columns.items()}
    return [s["form"] for s in run_plan(program.plan, tables, SingleRank()).strata]


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("seed", SEEDS)
def test_the_rows_of_the_definition(name: str, seed: int) -> None:
    case = bit_case(name, seed, are_strings=seed % 2 == 1)
    program = staged(case)
    assert {n: sorted(rows) for n, rows in program.run_local().items()} == case.rows
    assert forms(program) == ["rows of bits"]


@pytest.mark.parametrize("seed", SEEDS[:2])
def test_rows_of_several_blocks(seed: int) -> None:
    case = many_values(seed)
    program = staged(case)
    assert {n: sorted(rows) for n, rows in program.run_local().items()} == case.rows
    assert forms(program) == ["rows of bits"]


@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_ranks_exchange_the_edges_that_they_add(tmp_path: Path, ranks: int) -> None:
    cases = {f"{name} {seed}": bit_case(name, seed, are_strings=seed % 2 == 1) for name in TEXTS for seed in SEEDS}
    cases["many values"] = many_values(ranks)
    programs = {name: staged(case) for name, case in cases.items()}
    for name, program in programs.items():
        program.write(tmp_path / name)
    run_on_ranks(tmp_path, "x", ranks)
    for name, program in programs.items():
        found = program.read(tmp_path / name / "out-x")
        assert {n: sorted(rows) for n, rows in found.items()} == cases[name].rows, name


def test_a_null_key_is_a_row_of_tuples() -> None:
    case = bit_case("points-to", 0)
    new = pa.concat_tables([case.facts["new"], pa.table({"v": pa.array([None], pa.int64()), "w": [5]})])
    program = staged(BitCase(case.text, {**case.facts, "new": new}, case.rows))
    found = program.run_local()
    assert forms(program) == ["rows, in one process"]
    assert sorted(row for row in found["pt"] if row[0] is not None) == case.rows["pt"]
    assert (None, 5) in found["pt"]


def test_too_many_rows_are_tuples(monkeypatch: pytest.MonkeyPatch) -> None:
    case = bit_case("points-to", 0)
    monkeypatch.setattr(bit_rows_loop, "_MAX_PLACES", 10)
    program = staged(case)
    assert {n: sorted(rows) for n, rows in program.run_local().items()} == case.rows
    assert forms(program) == ["rows, in one process"]
