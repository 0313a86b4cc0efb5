"""All strata of a Plan in order: what a rank computes between its inputs and its results."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from mpi_backend.builder import Builder
from mpi_backend.facts import Facts
from mpi_backend.fixpoint import EndlessClimbError, Fixpoint
from mpi_backend.inputs import Table, read_inputs
from mpi_backend.kernels.lists import present
from mpi_backend.shape import column_types
from mpi_backend.trace import endless
from mpi_backend.types import Column, words_of_doubles

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpi_backend.comm import Comm
    from mpi_backend.loop import Loop
    from mpi_backend.part import Part
    from pyspark_paralagg.plan.plan import Plan

    Watch = Callable[[str, int, int, int], None]


@dataclass
class Run:
    """What a run gave on this rank: rows of each relation, and what was counted, of each stratum too (``strata``)."""

    results: dict[str, Table] = field(default_factory=dict)
    iterations: int = 0
    tuples: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"load": 0.0, "loop": 0.0, "store": 0.0})
    per_iteration: list[dict[str, Any]] = field(default_factory=list)
    strata: list[dict[str, Any]] = field(default_factory=list)
    bytes: int = 0


def run_plan(
    plan: Plan,
    sources: Mapping[int, Table],
    comm: Comm,
    *,
    buckets: int | None = None,
    ansi: bool = True,
    progress: Watch | None = None,
) -> Run:
    """Evaluates ``plan`` over this rank's rows of each source. Collective.

    ``progress`` hears of each iteration: the relations, its number, rows that changed, rows there are.
    """
    run = Run()
    inputs = {i.id: i for i in plan.inputs}
    for stratum in plan.strata:
        _run_stratum(Facts(stratum, inputs), sources, comm, run, buckets or comm.size, ansi=ansi, progress=progress)
    return run


def _run_stratum(
    facts: Facts,
    sources: Mapping[int, Table],
    comm: Comm,
    run: Run,
    buckets: int,
    *,
    ansi: bool,
    progress: Watch | None,
) -> None:
    began = time.perf_counter()
    inputs = read_inputs(facts, sources, run.results, comm, ansi=ansi)
    loop = Builder(facts, inputs, comm, buckets).build()
    comm.sent = 0
    names = [r.name for r in facts.stratum.relations]
    visible = [n for n in names if "@" not in n] or names
    heard = None if progress is None else partial(progress, "_".join(visible))
    fixpoint = Fixpoint(loop, ansi=ansi, progress=heard)
    loaded = time.perf_counter()
    try:
        fixpoint.run()
    except EndlessClimbError as climb:
        for p in loop.parts.values():
            p.restart(traced=True)
        for i in loop.indexes.values():
            i.clear()
        raise endless(Fixpoint(loop, ansi=ansi, traced=True), loop, climb) from climb.overflow
    looped = time.perf_counter()
    for p in loop.parts.values():
        run.results[p.name] = rows_of(p, loop)
    seconds = {"load": loaded - began, "loop": looped - loaded, "store": time.perf_counter() - looped}
    for name, value in seconds.items():
        run.seconds[name] += value
    tuples = int(comm.sum(np.array([float(p.rows) for p in loop.parts.values()])).sum())
    counted = {"iterations": fixpoint.stats.iterations, "tuples": tuples, "seconds": seconds}
    run.strata.append({"relations": names, **counted})
    run.iterations += fixpoint.stats.iterations
    run.tuples += tuples
    run.per_iteration += fixpoint.stats.per_iteration()
    run.bytes = max(run.bytes, loop.bytes)


def rows_of(p: Part, loop: Loop) -> Table:
    """The rows of a relation on this rank: keys, then dependents."""
    ids = present(p.state.f, min(len(p.keys), p.state.capacity))
    k = len(p.of.keys)
    texts = loop.strings.all() if any(t.kind == "text" for t in column_types(p.of)) else None
    columns = []
    for c, of in enumerate(column_types(p.of)):
        nulls = None
        if c < k:
            words = p.keys.keys[c, ids]
            if p.shape.keys[c]:
                nulls = (p.keys.keys[k, ids] >> c & 1) != 0
        else:
            words = p.state.v[c - k, ids]
            if of.kind == "fraction":
                words = words_of_doubles(words.view(np.float64))
            if p.shape.dependents[c - k]:
                nulls = p.state.k[c - k, ids] == 0
        columns.append(Column(of, words, nulls, texts if of.kind == "text" else None))
    return Table(tuple(columns), len(ids))
