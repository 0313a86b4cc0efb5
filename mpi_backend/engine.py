"""All strata of a Plan in order: what a rank computes between its inputs and its results."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from mpi_backend.bitmaps import Bitmaps, run_bitmaps
from mpi_backend.builder import Builder
from mpi_backend.decomposed import Decomposed
from mpi_backend.facts import Facts
from mpi_backend.fixpoint import EndlessClimbError, Fixpoint
from mpi_backend.inputs import Table, read_inputs
from mpi_backend.kernels.lists import present
from mpi_backend.trace import endless

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mpi_backend.builder import Routed
    from mpi_backend.comm import Comm
    from mpi_backend.fixpoint import Progress
    from mpi_backend.loop import Loop
    from mpi_backend.part import Part
    from mpi_backend.strings import Strings
    from pyspark_paralagg.errors import FixpointError
    from pyspark_paralagg.plan.plan import Plan


@dataclass
class Run:
    """What a run gave on this rank: rows of each relation, and what was counted."""

    results: dict[str, Table] = field(default_factory=dict)
    iterations: int = 0
    tuples: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"load": 0.0, "loop": 0.0, "store": 0.0})
    per_iteration: list[dict[str, Any]] = field(default_factory=list)
    bytes: int = 0

    def add_seconds(self, began: float, loaded: float, looped: float) -> None:
        """Of a stratum that ends now."""
        self.seconds["load"] += loaded - began
        self.seconds["loop"] += looped - loaded
        self.seconds["store"] += time.perf_counter() - looped


def run_plan(
    plan: Plan,
    sources: Mapping[int, Table],
    comm: Comm,
    *,
    buckets: int | None = None,
    ansi: bool = True,
    progress: Progress | None = None,
) -> Run:
    """Evaluates ``plan`` over this rank's rows of each source. Collective."""
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
    progress: Progress | None,
) -> None:
    began = time.perf_counter()
    inputs = read_inputs(facts, sources, run.results, comm, ansi=ansi)
    builder = Builder(facts, inputs, comm, buckets)
    routed = builder.route()
    if facts.stratum.bitmap is not None and not any(s.has_null_keys for s in routed.shape.relations.values()):
        _run_bitmaps(facts, routed, inputs.strings, comm, run, began)
        return
    if Decomposed.fits(facts, routed, comm):
        _run_decomposed(Decomposed(facts, routed, inputs, comm, ansi=ansi), facts, comm, run, began, ansi=ansi)
        return
    loop = builder.build(routed)
    comm.sent = 0
    fixpoint = Fixpoint(loop, ansi=ansi, progress=progress)
    loaded = time.perf_counter()
    try:
        fixpoint.run()
    except EndlessClimbError as climb:
        raise _endless(loop, climb, ansi=ansi) from climb.overflow
    looped = time.perf_counter()
    for p in loop.parts.values():
        run.results[p.name] = rows_of(p, loop)
    run.add_seconds(began, loaded, looped)
    run.iterations += fixpoint.stats.iterations
    run.tuples += int(comm.sum(np.array([float(p.rows) for p in loop.parts.values()])).sum())
    run.per_iteration += fixpoint.stats.per_iteration()
    run.bytes = max(run.bytes, loop.bytes)


def _endless(loop: Loop, climb: EndlessClimbError, *, ansi: bool) -> FixpointError:
    """Runs again, noting where changes come from: the error that names the cycle."""
    for p in loop.parts.values():
        p.restart(traced=True)
    for i in loop.indexes.values():
        i.clear()
    return endless(Fixpoint(loop, ansi=ansi, traced=True), loop, climb)


def _run_bitmaps(facts: Facts, routed: Routed, strings: Strings, comm: Comm, run: Run, began: float) -> None:
    [relation] = facts.stratum.relations
    assert facts.stratum.bitmap is not None  # noqa: S101 - for the type checker
    edges = [routed.static[i] for i in facts.stratum.bitmap.edges]
    bitmaps = Bitmaps(facts.stratum, routed.starts[relation.name][0], edges, strings)
    loaded = time.perf_counter()
    told = run_bitmaps(bitmaps, comm)
    looped = time.perf_counter()
    run.results[relation.name] = bitmaps.rows()
    run.add_seconds(began, loaded, looped)
    run.iterations += told["iterations"]
    run.tuples += told["tuples"]
    run.bytes = max(run.bytes, bitmaps.bytes)


def _run_decomposed(decomposed: Decomposed, facts: Facts, comm: Comm, run: Run, began: float, *, ansi: bool) -> None:
    [relation] = facts.stratum.relations
    loaded = time.perf_counter()
    try:
        decomposed.run()
    except EndlessClimbError as climb:
        raise _endless(decomposed.loop, climb, ansi=ansi) from climb.overflow
    looped = time.perf_counter()
    run.results[relation.name] = decomposed.rows()
    run.add_seconds(began, loaded, looped)
    run.iterations += int(-comm.least(-float(decomposed.iterations)))
    run.tuples += int(comm.sum(np.array([float(decomposed.tuples)]))[0])
    run.bytes = max(run.bytes, decomposed.bytes)


def rows_of(p: Part, loop: Loop) -> Table:
    """The rows of a relation on this rank: keys, then dependents."""
    ids = present(p.state.f, min(len(p.keys), p.state.capacity))
    columns = [p.key_column(c, ids, loop.strings) for c in range(len(p.of.keys))]
    for j in range(len(p.of.dependents)):
        nulls = p.state.k[j, ids] == 0 if p.shape.dependents[j] else None
        columns.append(p.value_column(j, p.state.v[j, ids], nulls, loop.strings))
    return Table(tuple(columns), len(ids))
