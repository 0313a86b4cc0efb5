"""The table and the picture of ``benchmarks.refresh``, from invented timings."""

from __future__ import annotations

import pytest

pytest.importorskip("delta")

from benchmarks.refresh import HEADER, Timing, draw, median, totals


def timing(query: str, kind: str, whole: float, full: float, rows: int = 10) -> Timing:
    phases = {"changes": 0.1, "fixpoint": whole / 2, "write": 0.2}
    return Timing("day", query, rows, kind, "a reason", phases, whole, full)


def test_a_day_is_summed_by_table_and_for_all() -> None:
    day = [timing("sssp", "incremental", 1.0, 2.0), timing("sssp", "full", 4.0, 4.0), timing("reach", "none", 1.0, 4.0)]
    assert list(totals(day)) == [
        "| day, total | sssp | 2 refreshes | 1 incremental, 1 full, 0 none | | 5.0 | 6.0 | 0.83 | |",
        "| day, total | reach | 1 refreshes | 0 incremental, 0 full, 1 none | | 1.0 | 4.0 | 0.25 | |",
        "| day, total | all | 3 refreshes | 1 incremental, 1 full, 1 none | | 6.0 | 10.0 | 0.60 | |",
    ]


def test_a_row_has_the_medians_and_as_many_cells_as_the_header() -> None:
    row = median([timing("sssp", "incremental", whole, 4.0) for whole in (9.0, 1.0, 2.0)]).line()
    assert row == "| day | sssp | 10 | incremental | 1.00 | 2.00 | 4.00 | 0.50 | a reason |"
    assert {line.count("|") for line in [*HEADER.splitlines(), row]} == {10}


def test_the_picture_has_three_lines_for_each_query() -> None:
    sizes = [timing(query, "incremental", 1.0, 2.0, rows) for query in ("components", "sssp") for rows in (1, 100)]
    lines = draw(sizes, "rmat-8").axes[0].get_lines()
    assert [line.get_label() for line in lines[:3]] == [
        "components: refresh",
        "components: its fixpoint",
        "components: full",
    ]
    assert [list(line.get_ydata()) for line in lines] == [[1.0, 1.0], [0.5, 0.5], [2.0, 2.0]] * 2
