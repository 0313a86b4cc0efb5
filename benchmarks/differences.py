"""PageRank on differences, and in orders other than rounds: ``python -m benchmarks.differences``.

Two tables: edges visited and CPU seconds of short kernels (``benchmarks.orders``), and of the engine in one process,
which recomputes programs with initial rows and adds differences from the base alone. ``dag-`` before the name of a
graph turns each edge from the smaller vertex to the larger one. docs/balance.md has the figures.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow.parquet as pq

from benchmarks import orders
from benchmarks.datasets import open_graph
from benchmarks.queries import DAMPING, PAGERANK_ROUNDS
from benchmarks.scale.programs import table
from mpi_backend.comm import SingleRank
from mpi_backend.loop.engine import run_plan
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.generators import Longs
    from benchmarks.orders import Doubles, Outcome
    from mpi_backend.state.types import Table
    from pyspark_paralagg.plan.plan import Plan

T = TypeVar("T")

GRAPHS = "rmat-16,rmat-18,dag-rmat-16,grid-300"
TOLERANCE = 1e-9
BLOCKS = 8
PART = 0.1
_MANY = 10_000
_COLUMNS = {"edge": [("src", "bigint"), ("dst", "bigint")], "vertex": [("v", "bigint")]}
_DEGREE = "degree(x, $COUNT) :- edge(x, _)."
_INITIAL = f"""
    rank(0, x, r) :- vertex(x), r = 1.0.
    rank(i + 1, x, $SUM({1 - DAMPING})) :- vertex(x).
    rank(i + 1, y, $SUM({DAMPING} / to_float(d) * r)) :- rank(i, x, r), edge(x, y), degree(x, d).
"""
_BASE_ALONE = f"""
    rank(x, $SUM({1 - DAMPING})) :- vertex(x).
    rank(y, $SUM({DAMPING} / to_float(d) * r)) :- rank(x, r), edge(x, y), degree(x, d).
"""
_TEXTS = {"recomputed (initial rows)": _INITIAL, "differences (base alone)": _BASE_ALONE}


@dataclass(frozen=True)
class Edges:
    """A graph with vertices 0 to ``count`` - 1."""

    count: int
    src: Longs
    dst: Longs

    def without(self, count: int) -> Edges:
        """Return the graph without ``count`` edges."""
        dropped = np.random.default_rng(0).choice(len(self.src), count, replace=False)
        return Edges(self.count, np.delete(self.src, dropped), np.delete(self.dst, dropped))

    @classmethod
    def read(cls, name: str) -> Edges:
        """Return a graph of ``benchmarks.datasets``."""
        graph = open_graph(name.removeprefix("dag-"))
        vertices = pq.read_table(graph.vertices_file).column(0).to_numpy()
        columns = pq.read_table(graph.edges_file)
        src, dst = (np.searchsorted(vertices, columns.column(c).to_numpy()) for c in range(2))
        if name.startswith("dag-"):
            src, dst = np.minimum(src, dst), np.maximum(src, dst)
        return cls(len(vertices), src, dst)


def _fastest(call: Callable[[], T], repeat: int) -> tuple[float, T]:
    """Return the least CPU seconds of ``repeat`` calls after a first one, and the result."""
    result, seconds = call(), []
    for _ in range(repeat):
        started_at = time.process_time()
        result = call()
        seconds.append(time.process_time() - started_at)
    return min(seconds), result


def _fixpoint(edges: Edges) -> Doubles:
    offset, _ = orders.by_vertex(edges.src, edges.dst, edges.count)
    into, source = orders.by_vertex(edges.dst, edges.src, edges.count)
    base, first = np.full(edges.count, 1 - DAMPING), np.ones(edges.count)
    return orders.recompute(offset, into, source, base, first, _MANY, 0.0)[0]


def kernel_rows(edges: Edges, warm: int, repeat: int) -> Iterator[tuple[Any, ...]]:
    """Yield (end, order, rounds, edges visited, changed rows, error, seconds) of each kernel.

    Ranks start at 1, or with ``warm`` at the fixpoint of the graph without so many edges.
    """
    n = edges.count
    offset, target = orders.by_vertex(edges.src, edges.dst, n)
    into, source = orders.by_vertex(edges.dst, edges.src, n)
    base, exact = np.full(n, 1 - DAMPING), _fixpoint(edges)
    first = _fixpoint(edges.without(warm)) if warm else np.ones(n)
    owners = {p: np.random.default_rng(p).integers(0, p, n).astype(np.int32) for p in (1, 2, 4)}

    def recompute(limit: int, tolerance: float) -> Outcome:
        return orders.recompute(offset, into, source, base, first, limit, tolerance)

    def add(limit: int, tolerance: float) -> Outcome:
        return orders.add_differences(offset, target, base, first, limit, tolerance)

    calls: list[tuple[str, str, Callable[[], Outcome]]] = [
        (f"{PAGERANK_ROUNDS} rounds", "recomputed", lambda: recompute(PAGERANK_ROUNDS, 0.0)),
        (f"{PAGERANK_ROUNDS} rounds", "differences", lambda: add(PAGERANK_ROUNDS, 0.0)),
        ("1e-9", "recomputed", lambda: recompute(_MANY, TOLERANCE)),
        ("1e-9", "differences", lambda: add(_MANY, TOLERANCE)),
        ("1e-9", "differences, all in place",
         lambda: orders.largest_first(offset, target, base, first, 0.0, TOLERANCE)),
        ("1e-9", "differences, largest first",
         lambda: orders.largest_first(offset, target, base, first, PART, TOLERANCE)),
    ]  # fmt: skip
    for ranks, owner in owners.items():
        name = f"recomputed in {BLOCKS} blocks, {ranks} rank{'s' if ranks > 1 else ''}"
        calls.append(
            ("1e-9", name, lambda o=owner: orders.in_place(offset, into, source, base, first, BLOCKS, o, TOLERANCE))  # type: ignore[misc]
        )
    for end, order, call in calls:
        seconds, (found, rounds, visited, changed) = _fastest(call, repeat)
        yield end, order, rounds, visited / len(target), changed, _error(found, exact), seconds


def engine_rows(edges: Edges, repeat: int) -> Iterator[tuple[Any, ...]]:
    """Yield (end, form, rounds, edges visited, CPU seconds of a round) of the engine in one process."""
    inputs = {"edge": [edges.src, edges.dst], "vertex": [np.arange(edges.count)]}
    for limit, end in (
        (f"iterations={PAGERANK_ROUNDS}", f"{PAGERANK_ROUNDS} rounds"),
        ("tolerance=0.000000001", "1e-9"),
    ):
        for form, text in _TEXTS.items():
            resolved = resolve_text(parse(f".limit rank({limit})\n{_DEGREE}{text}"), _COLUMNS)
            plan = compile_program(requested_program(resolved, ["rank"]))
            names = [s.relation for s in resolved.sources]
            sources = {n: table(inputs.get(name, [np.zeros(0, np.int64)])) for n, name in enumerate(names)}
            runs = [_run(plan, dict(sources)) for _ in range(repeat + 1)][1:]
            rounds, visits, seconds = min(runs, key=lambda r: r[2])
            yield end, form, rounds, visits / len(edges.src), seconds


def _run(plan: Plan, sources: dict[int, Table]) -> tuple[int, int, float]:
    """Return the rounds of a run, the edges visited, and the CPU seconds of a round after the first one."""
    times: list[float] = []

    def progress(name: str, _: object) -> None:
        if name == "rank":
            times.append(time.thread_time())

    run = run_plan(plan, sources, SingleRank(), progress=progress)
    visited = sum(e["work"] for e in run.per_iteration if e["relation"] == "rank")
    return len(times), visited, (times[-1] - times[0]) / (len(times) - 1)


def _error(found: Doubles, exact: Doubles) -> float:
    return float(np.abs(found - exact).sum())


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", default=GRAPHS)
    parser.add_argument(
        "--warm", type=int, default=0, help="start at the fixpoint without so many edges (kernels only)"
    )
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    graphs = {name: Edges.read(name) for name in options.graphs.split(",")}
    print("| graph | end | order | rounds | visits of each edge | changed rows | Σ error | CPU, ms |")
    print("|---|---|---|--:|--:|--:|--:|--:|")
    for name, edges in graphs.items():
        for end, order, rounds, visits, changed, error, seconds in kernel_rows(edges, options.warm, options.repeat):
            part = "" if np.isnan(changed) else f"{changed:.0%}"
            counts = f"{rounds} | {visits:.1f} | {part} | {error:.0e}"
            print(f"| {name} | {end} | {order} | {counts} | {1e3 * seconds:.1f} |")
    print("\n| graph | end | engine | rounds | visits of each edge | CPU, ms a round | all rounds |")
    print("|---|---|---|--:|--:|--:|--:|")
    for name, edges in graphs.items():
        for end, form, rounds, visits, seconds in engine_rows(edges, options.repeat):
            milliseconds = 1e3 * seconds
            times = f"{milliseconds:.2f} | {rounds * milliseconds:.1f}"
            print(f"| {name} | {end} | {form} | {rounds} | {visits:.1f} | {times} |")


if __name__ == "__main__":
    main()
