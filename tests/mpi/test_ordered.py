"""Test the loop that applies the best rows first: results do not depend on how often the compiled loop returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from mpi.staged import Staged, run_on_ranks
from ordered_cases import CASES

from mpi_backend.loop import ordered
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from pathlib import Path

    from mpi.staged import Row

pytestmark = pytest.mark.rotates(runs=3)

MAX_ROWS = (1, 300, 1 << 22)
"""Rows after which the loop returns: at once, in the middle of a pass, never."""


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> tuple[Staged, list[Row]]:
    """Return a program over the graph, and its expected rows."""
    case = CASES[request.param]()
    staged = Staged(resolve_text(parse(case.text, request.param), case.columns), case.facts, ["found"])
    assert staged.plan.strata[-1].ordered_by == 0
    return staged, case.rows


@pytest.mark.parametrize("max_rows", MAX_ROWS)
def test_in_one_process(case: tuple[Staged, list[Row]], max_rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    staged, rows = case
    monkeypatch.setattr(ordered, "_ROWS_PER_CALL", max_rows)
    assert sorted(staged.run_local()["found"]) == rows


@pytest.mark.rotates(runs=4, by=("case",))
@pytest.mark.parametrize(
    ("edges_a_rank", "heavy_parts", "ranks"), [(-1, 0, 2), (-1, 20, 3), (1000, 20, 3), (1000, 1e9, 2)]
)
def test_on_ranks_with_mirrors(
    case: tuple[Staged, list[Row]], edges_a_rank: int, heavy_parts: float, ranks: int, tmp_path: Path
) -> None:
    """Of all rows or, if edges lie at their sources, of heavy ones. Few, some or all ends are heavy."""
    staged, rows = case
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", ranks, "--edges-a-rank", edges_a_rank, "--heavy-parts", heavy_parts)
    assert sorted(staged.read(tmp_path / "case" / "out-x")["found"]) == rows


@pytest.mark.rotates(runs=3, by=("case",))
@pytest.mark.parametrize("max_rows", MAX_ROWS)
@pytest.mark.parametrize("ranks", [2, 3])
def test_on_ranks(case: tuple[Staged, list[Row]], ranks: int, max_rows: int, tmp_path: Path) -> None:
    staged, rows = case
    staged.write(tmp_path / "case")
    run_on_ranks(tmp_path, "x", ranks, "--enough", max_rows, "--edges-a-rank", 1000)
    assert sorted(staged.read(tmp_path / "case" / "out-x")["found"]) == rows
