"""The benchmarks' own smoke test: generators are what they say and stay the same, systems agree, a mismatch is loud.

No times are asserted. Spark is not started here: DuckDB, Numba, scipy, NetworKit and igraph are enough to
run the harness from end to end.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("duckdb", reason="the extra `bench` is not installed")
pytest.importorskip("igraph", reason="the extra `bench` is not installed")
pytest.importorskip("matplotlib", reason="the extra `bench` is not installed")
pytest.importorskip("networkit", reason="the extra `bench` is not installed")
pytest.importorskip("numba", reason="the extra `bench` is not installed")
pytest.importorskip("scipy", reason="the extra `bench` is not installed")

from benchmarks import differences, generators, pictures, runner, table
from benchmarks.datasets import GraphAbsentError, open_graph
from benchmarks.queries import QUERIES, same
from benchmarks.systems import SYSTEMS, numba_kernels

if TYPE_CHECKING:
    from collections.abc import Callable

PROJECT = Path(__file__).parent.parent
LIGHT = ("duckdb", "igraph", "networkit", "numba", "scipy")  # systems that start in no time
RMAT_10 = (12116, 5965415, 6005446, 611071)  # edges, sums of src, dst and weight: cached graphs depend on it


@pytest.mark.parametrize(
    "make",
    [
        lambda: generators.rmat(8),
        lambda: generators.grid(7),
        lambda: generators.directed_grid(7),
        lambda: generators.tree(4),
        lambda: generators.uniform(50, 90),
    ],
)
def test_generators_repeat_themselves_and_give_distinct_edges(make: Callable[[], generators.Edges]) -> None:
    first, second = make(), make()
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))
    src, dst, weight = first
    assert not np.any(src == dst)
    assert len(set(zip(src.tolist(), dst.tolist(), strict=True))) == len(src)
    assert weight.min() >= 1
    assert weight.max() <= 100
    assert {column.dtype for column in first} == {np.dtype(np.int64)}


def test_rmat_is_pinned() -> None:
    src, dst, weight = generators.rmat(10)
    assert (len(src), int(src.sum()), int(dst.sum()), int(weight.sum())) == RMAT_10


def test_rmat_has_hubs_where_a_uniform_graph_has_none() -> None:
    hub = int(np.bincount(generators.rmat(10)[0]).max())
    assert hub > 5 * int(np.bincount(generators.uniform(1 << 10, 16 << 10)[0]).max())


def test_grid_has_four_neighbours_both_ways() -> None:
    src, dst, _ = generators.grid(5)
    edges = set(zip(src.tolist(), dst.tolist(), strict=True))
    assert edges == {(b, a) for a, b in edges}
    assert {b for a, b in edges if a == 12} == {7, 11, 13, 17}
    assert {b for a, b in edges if a == 0} == {1, 5}


def test_directed_grid_goes_right_and_down() -> None:
    src, dst, _ = generators.directed_grid(5)
    assert sorted(set((dst - src).tolist())) == [1, 5]
    assert len(src) == len(generators.grid(5)[0]) / 2
    assert sorted(dst[src == 9].tolist()) == [14]  # at the right side


def test_sources_have_most_outgoing_edges_and_small_ids_at_a_tie(tmp_path: Path) -> None:
    graph = open_graph("grid-9", tmp_path)  # 49 inner vertices with four edges each
    assert graph.sources == [10, 11, 12, 13, 14, 15, 16, 19, 20, 21]
    assert graph.source == 10
    assert open_graph("grid-9", tmp_path) == graph  # as read again


def test_graphs_are_written_once_with_several_row_groups(tmp_path: Path) -> None:
    graph = open_graph("rmat-13", tmp_path)
    written = Path(graph.edges_file).stat().st_mtime_ns
    assert open_graph("rmat-13", tmp_path) == graph
    assert Path(graph.edges_file).stat().st_mtime_ns == written
    edges = pq.ParquetFile(graph.edges_file)
    assert edges.metadata.num_row_groups == 8
    assert edges.schema_arrow.names == ["src", "dst", "w"]
    assert edges.metadata.num_rows == graph.edges


def test_a_graph_nobody_knows_is_named(tmp_path: Path) -> None:
    with pytest.raises(GraphAbsentError, match="no graph named petersen"):
        open_graph("petersen", tmp_path)


@pytest.mark.parametrize("query", list(QUERIES))
@pytest.mark.parametrize("name", ["rmat-8", "grid-9", "tree-4", "random-60-80"])
def test_systems_agree(query: str, name: str, tmp_path: Path) -> None:
    graph = open_graph(name, tmp_path)
    systems = [name for name in LIGHT if query in SYSTEMS[name].graphs]
    answers = [SYSTEMS[system].start("1g").answer(query, graph).checksum for system in systems]
    assert len(answers) >= 2
    assert all(same(answers[0], answer) for answer in answers)


def test_both_closure_kernels_count_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = open_graph("random-3000-6000", tmp_path)  # cyclic, and more than one block of sources
    session = numba_kernels.start("numba", "1g")
    by_bitmaps = session.answer("closure", graph).checksum
    monkeypatch.setattr(numba_kernels, "LARGEST_DENSE", 0)
    assert session.answer("closure", graph).checksum == by_bitmaps


def test_a_run_from_the_command_line_measures_and_compares(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    chosen = ["--query", "sssp", "--graph", "rmat-8", "--system", "duckdb,numba", "--repeat", "1"]
    command = [sys.executable, "-m", "benchmarks", *chosen, "--cache", str(tmp_path / "cache"), "--output", str(page)]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603
    assert done.returncode == 0, done.stderr
    measured = [line for line in page.read_text().splitlines() if line.startswith("| sssp | rmat-8 |")]
    assert [line.split(" | ")[2] for line in measured] == ["duckdb", "numba"]
    assert all(line.endswith("| agrees |") for line in measured)
    assert (tmp_path / "cache" / "raw.json").exists()


def test_a_wrong_answer_is_loud() -> None:
    def measurement(system: str, total: int) -> runner.Measurement:
        turn = {"whole": 1.0, "loop": None, "checksum": [3, total], "facts": {}}
        return runner.Measurement("sssp", "rmat-8", system, turns=[turn])

    found = [measurement("duckdb", 10), measurement("numba", 10), measurement("paralagg", 11)]
    runner.compare(found)
    assert [m.agrees for m in found] == [True, True, False]
    page = table.page(found, [], {}, runner.Settings(Path()))
    assert "**Not all is well:**" in page
    assert "- **MISMATCH** sssp, rmat-8, paralagg: [3, 11]" in page


@pytest.mark.parametrize(
    ("facts", "shown"), [({"held_bytes": 150, "iterations": 4, "sent_bytes_round": 8.0}, "1.5"), ({}, "≤ 20")]
)
def test_bytes_a_row_are_what_is_told_or_an_upper_bound(facts: dict[str, float], shown: str) -> None:
    turn = {"whole": 1.0, "loop": None, "checksum": [100], "facts": facts}
    one = runner.Measurement("closure", "tree-4", "mpi-2", turns=[turn], memory_mb=[2.002], before_mb=[2.0])
    (row,) = table.rows([one])
    assert row.split(" | ")[-2] == shown


def test_one_against_one_leaves_both_in_doubt() -> None:
    turns = [[{"whole": 1.0, "loop": None, "checksum": [n], "facts": {}}] for n in (1, 2)]
    found = [runner.Measurement("closure", "tree-4", "duckdb", turns=turn) for turn in turns]
    runner.compare(found)
    assert [m.agrees for m in found] == [False, False]


def test_a_worker_over_its_cap_is_ended(tmp_path: Path) -> None:
    graph = open_graph("rmat-8", tmp_path)
    settings = runner.Settings(tmp_path, repeat=1, cap_seconds=0.0)
    (measurement,) = runner.measure("sssp", graph, ["duckdb"], settings)
    assert measurement.failure == "over 0 s"
    assert measurement.whole() is None


def test_the_pictures_are_drawn_from_the_rows_of_the_page() -> None:
    page = pictures.PAGE.read_text(encoding="utf-8")
    results = pictures.read(page)
    facts = dict(fact.split(": ", 1) for fact in page.split("\n\n")[2].split("; ") if ": " in fact)
    origin = f"python -m benchmarks --all; {facts['processor']}, {facts['cores']} cores; {facts['date']}"
    above = page.partition("\n## Results\n")[0]
    assert [line for line in above.splitlines() if line.startswith("![")] == [
        f"![{title}](images/{name}.svg)" for name, (title, _) in pictures.PICTURES.items()
    ]
    for name in pictures.PICTURES:
        picture = (pictures.PAGE.parent / "images" / f"{name}.svg").read_text(encoding="utf-8")
        assert f"rows: sha256 {results.digest}" in picture, "run python -m benchmarks.pictures"
        assert f">{origin}<" in picture


def measured(system: str, graph: str, seconds: float, *, agrees: bool | None = True) -> runner.Measurement:
    turn = {"whole": seconds, "loop": seconds / 4, "checksum": [1], "facts": {}}
    return runner.Measurement("sssp", graph, system, turns=[turn], memory_mb=[10.0], before_mb=[0.0], agrees=agrees)


def test_lines_and_bars_have_the_numbers_of_the_table(tmp_path: Path) -> None:
    graphs = [open_graph(name, tmp_path) for name in ("rmat-8", "rmat-9")]
    times = {("duckdb", "rmat-8"): 0.5, ("duckdb", "rmat-9"): 2.0, ("local", "rmat-8"): 0.25, ("local", "rmat-9"): 1.0}
    rows = [measured(system, graph, seconds) for (system, graph), seconds in times.items()]
    rows += [
        measured("scipy", "rmat-8", 0.125, agrees=False),
        runner.Measurement("sssp", "rmat-8", "igraph", failure="x"),
    ]
    rows += [measured("duckdb", pictures.SIDE_BY_SIDE, 8.0)]
    machine = {"date": "2026-01-02", "cores": "2", "processor": "it", "load": "0.1"}
    results = pictures.read(table.page(rows, graphs, machine, runner.Settings(tmp_path)))
    assert results.origin == "python -m benchmarks --all; it, 2 cores; 2026-01-02"
    lines = pictures.by_size(results, "sssp").axes[0].get_lines()
    assert {line.get_label(): [list(line.get_xdata()), list(line.get_ydata())] for line in lines} == {
        system: [[graph.edges for graph in graphs], [times[system, graph.name] for graph in graphs]]
        for system in ("duckdb", "local")
    }
    (bar,) = pictures.side_by_side(results, "loop, s", "", "linear").axes[0].patches
    assert bar.get_width() == 2.0


def test_pictures_without_data_are_left_out_and_illustrating_twice_changes_nothing(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    rows = [measured("local", pictures.SIDE_BY_SIDE, 1.0)]
    page.write_text(table.page(rows, [], {"date": "2026-01-02"}, runner.Settings(tmp_path)))
    pictures.illustrate(page)
    once = page.read_text()
    pictures.illustrate(page)
    assert page.read_text() == once
    drawn = sorted(file.stem for file in (tmp_path / "images").iterdir())
    assert (
        drawn
        == re.findall(r"^!\[.+\]\(images/(\w+)\.svg\)$", once, re.MULTILINE)
        == ["benchmark_loop", "benchmark_memory"]
    )


def test_orders_of_pagerank_end_at_the_same_ranks() -> None:
    src, dst, _ = generators.rmat(8)
    edges = differences.Edges(1 << 8, src, dst)
    rows = list(differences.kernel_rows(edges, warm=0, repeat=1))
    ended = [error for end, *_, error, _ in rows if end == "1e-9"]
    assert len(ended) == 7
    assert max(ended) < 1e-8
    twenty = [error for end, *_, error, _ in rows if end == "20 rounds"]
    assert twenty[0] == pytest.approx(twenty[1])
    visits = {order: visited for end, order, _, visited, *_ in rows if end == "1e-9"}
    assert visits["differences, all in place"] < visits["differences"] <= visits["recomputed"]
