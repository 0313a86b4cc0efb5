"""Compare the delta with the side that it looks up: ``python -m benchmarks.sides``.

A vote on the side of a join (Sun et al. 2023, PARALAGG, algorithm 1) has a choice only in non-linear rules, and can
save only where the delta is larger than the relation that is looked up. The table has for each program:

- the work of the loop: rows of joined sides that rules read; the part of it in non-linear rules; the part of it in
  rules and iterations whose delta is the larger side,
- the driver rows that the smaller side would save, of all driver rows and rows read,
- the CPU seconds of the lookups of these rows, and those of the loop.

Rounds are exact, so the sums over all ranks are those of one process, in which this runs.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.generators import directed_grid, grid, rmat, tree, uniform
from benchmarks.scale.programs import table
from mpi_backend.comm import SingleRank
from mpi_backend.kernels.flags import IN_DELTA, PRESENT
from mpi_backend.load.inputs import read_inputs
from mpi_backend.load.loop_builder import LoopBuilder
from mpi_backend.loop import fixpoint_loop
from mpi_backend.loop.runner import Runner
from mpi_backend.loop.tuples import Tuples
from mpi_backend.state.facts import Facts
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.whole import whole_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.plan.plan import Probe
from pyspark_paralagg.program.expr import Col

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.generators import Longs
    from mpi_backend.codegen.rule import RuleKernel

_PAIRS = "p(x, y) :- edge(x, y, _). "
TEXTS = {
    "closure, non-linear": _PAIRS + "p(x, z) :- p(x, y), p(y, z).",
    "closure, linear": _PAIRS + "p(x, z) :- p(x, y), edge(y, z, _).",
    "shortest paths, non-linear": "p(x, y, $MIN(w)) :- edge(x, y, w). p(x, z, $MIN(v + w)) :- p(x, y, v), p(y, z, w).",
    "odd and even paths": _PAIRS + "q(x, z) :- p(x, y), p(y, z). p(x, z) :- q(x, y), p(y, z).",
    "same generation": "p(x, y) :- edge(a, x, _), edge(a, y, _). p(x, y) :- edge(a, x, _), p(a, b), edge(b, y, _).",
    "points-to": "p(v, o) :- new(v, o). p(v, o) :- assign(v, w), p(w, o). p(v, o) :- load(v, w), p(w, a), h(a, o). "
    "h(a, o) :- store(v, w), p(v, a), p(w, o).",
}
GRAPHS = {
    "rmat-9": lambda: rmat(9, 4),
    "rmat-8": lambda: rmat(8, 8),
    "random-2000-2400": lambda: uniform(2000, 2400),
    "random-400-800": lambda: uniform(400, 800),
    "tree-10": lambda: tree(10),
    "tree-6": lambda: tree(6),
    "dgrid-25": lambda: directed_grid(25),
    "grid-15": lambda: grid(15),
}
CASES = [
    ("closure, non-linear", ("rmat-9", "random-2000-2400", "tree-10", "dgrid-25")),
    ("shortest paths, non-linear", ("rmat-8", "random-400-800", "tree-10", "grid-15")),
    ("odd and even paths", ("rmat-8", "random-2000-2400", "tree-10")),
    ("points-to", ("random pairs",)),
    ("same generation", ("tree-6", "random-400-800")),
    ("closure, linear", ("random-2000-2400",)),
]
_COLUMNS = {
    "edge": [("x", "bigint"), ("y", "bigint"), ("w", "bigint")],
    **{name: [("x", "bigint"), ("y", "bigint")] for name in ("new", "assign", "load", "store")},
}


@dataclass
class Counts:
    """The counts of one run: rows read, driver rows, and the part of them where the delta is the larger side."""

    work: int = 0
    non_linear: int = 0
    larger_delta: int = 0
    drivers: int = 0
    saved: int = 0
    lookup_seconds: float = 0.0


class CountingRunner(Runner):
    """A runner that compares the sizes of both sides before it applies a rule."""

    counts = Counts()

    def _run_rule(self, rule: RuleKernel) -> None:
        loop, counts = self._loop, self.counts
        driver, before = loop.driver(rule.rule), loop.work
        super()._run_rule(rule)
        work, delta = loop.work - before, driver.size
        counts.work += work
        counts.drivers += delta
        probe = next((s for s in rule.rule.steps if isinstance(s, Probe) and s.recursive), None)
        if probe is None:
            return
        counts.non_linear += work
        index = loop.indexes[probe.index]
        flags = index.part.state.f & (PRESENT | IN_DELTA)
        side = int(np.count_nonzero(flags == PRESENT if probe.version == "old" else flags & PRESENT))
        if delta <= side:
            return
        counts.larger_delta += work
        counts.saved += delta - side
        names = [k.name for k in probe.keys if isinstance(k, Col) and k.name in rule.rule.driver.binds]
        columns = [rule.rule.driver.binds.index(n) for n in names] or [0]
        # With an input between driver and side, a row stands for its lookups by the driver's first key.
        keys = np.ascontiguousarray(driver.keys.keys[driver.current[:delta]][:, columns]).ravel()
        index.groups.find(keys[: index.groups.words])  # loads the kernel
        started_at = time.process_time()
        index.groups.find(keys)
        counts.lookup_seconds += (time.process_time() - started_at) * (delta - side) / delta


def run(text: str, tables: dict[str, Sequence[Longs]]) -> tuple[Counts, float, int]:
    """Return the counts, the seconds of the loop (the second of two runs) and the number of iterations."""
    resolved = resolve_text(parse(text), {name: _COLUMNS[name] for name in tables})
    empty = {n for n, source in enumerate(resolved.sources) if not source.is_external}
    plan = compile_program(whole_program(resolved.program, empty))
    sources = {}
    for n, source in enumerate(resolved.sources):
        columns = [np.zeros(0, np.int64)] * len(source.columns) if n in empty else tables[source.relation]
        sources[n] = table(columns)
    comm = SingleRank()
    seconds = 0.0
    for runner in (CountingRunner, Runner):  # the first run loads the kernels and counts
        fixpoint_loop.Runner = runner  # type: ignore[misc]
        CountingRunner.counts = CountingRunner.counts if runner is Runner else Counts()
        facts = Facts.for_stratum(plan.strata[-1], {i.id: i for i in plan.inputs})
        builder = LoopBuilder(facts, read_inputs(facts, sources, {}, comm, ansi=True), comm, 1, ansi=True)
        tuples = Tuples(builder.build(builder.route()), ansi=True)
        started_at = time.process_time()
        tuples.run()
        seconds = time.process_time() - started_at
    return CountingRunner.counts, seconds, tuples.iterations


def points_to(variables: int = 6000, objects: int = 1500) -> dict[str, Sequence[Longs]]:
    """Return uniform inputs of the analysis: assigns for nine tenths of the variables, loads and stores for a tenth."""
    draw = np.random.default_rng(11)
    pairs: dict[str, Sequence[Longs]] = {"new": (draw.integers(0, variables, objects), np.arange(objects))}
    for name, count in (("assign", variables * 9 // 10), ("load", variables // 10), ("store", variables // 10)):
        pairs[name] = tuple(draw.integers(0, variables, (2, count)))
    return pairs


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="a part of a program's name")
    only = parser.parse_args().only or ""
    columns = "program | graph | rounds | work | in non-linear rules | delta larger | rows saved"
    print(f"| {columns} | lookups saved, s | loop, s |\n|---|---|--:|--:|--:|--:|--:|--:|--:|")
    for program, graphs in CASES:
        for graph in graphs if only in program else ():
            tables = points_to() if graph == "random pairs" else {"edge": GRAPHS[graph]()}
            counts, seconds, rounds = run(TEXTS[program], tables)
            shares = [counts.non_linear / counts.work, counts.larger_delta / counts.work]
            shares.append(counts.saved / (counts.work + counts.drivers))
            text = " | ".join(f"{s:.1%}".replace("%", " %") for s in shares)
            times = f"{counts.lookup_seconds:.4f} | {seconds:.2f}"
            print(f"| {program} | {graph} | {rounds} | {counts.work:,} | {text} | {times} |", flush=True)


if __name__ == "__main__":
    main()
