"""Evaluate all strata of a Plan in order, from a rank's inputs to its results."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mpi_backend.load.inputs import read_inputs, used_inputs
from mpi_backend.load.loop_builder import LoopBuilder
from mpi_backend.load.place_edges import place_edges
from mpi_backend.loop.bit_rows_loop import BitRowsLoop
from mpi_backend.loop.bitmap_loop import BitmapLoop
from mpi_backend.loop.decomposed import Decomposed
from mpi_backend.loop.tuples import Tuples
from mpi_backend.state.facts import HEAVY_PARTS, Facts
from mpi_backend.state.order import numbered
from mpi_backend.state.types import Table
from pyspark_paralagg.program.functor import SIGN
from pyspark_paralagg.program.names import visible_names

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from mpi_backend.comm import Comm
    from mpi_backend.loop.fixpoint_loop import Progress
    from mpi_backend.loop.loop_stats import Counts
    from mpi_backend.state.sub_buckets import Refinement
    from pyspark_paralagg.plan.plan import Plan

    PlanProgress = Callable[[str, Counts], None]


class Evaluation(Protocol):
    """A loaded stratum, with one of the methods that the Plan allows for it."""

    @property
    def form(self) -> str:
        """Return how the loop is evaluated, for the report."""

    @property
    def iterations(self) -> int:
        """Return the number of applications of the step."""

    @property
    def per_iteration(self) -> list[dict[str, Any]]:
        """Return one entry for each iteration and relation; empty if the method does not count them."""

    def run(self) -> None:
        """Run to the fixpoint or to the limit. Collective."""

    @property
    def tuples(self) -> int:
        """Return the number of rows on this rank, settled ones too."""

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""

    def results(self) -> dict[str, Table]:
        """Return this rank's rows of each relation."""


@dataclass
class Run:
    """The result of a run on this rank: rows of each relation, and counts in all and for each stratum (``strata``)."""

    results: dict[str, Table] = field(default_factory=dict)
    iterations: int = 0
    tuples: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: {"load": 0.0, "loop": 0.0, "store": 0.0})
    per_iteration: list[dict[str, Any]] = field(default_factory=list)
    strata: list[dict[str, Any]] = field(default_factory=list)
    bytes: int = 0


def run_plan(
    plan: Plan,
    sources: dict[int, Table],
    comm: Comm,
    *,
    buckets: int | None = None,
    sub_buckets: int = 1,
    refinement: Refinement | None = None,
    heavy_parts: float = HEAVY_PARTS,
    roll_over_rows: int = 0,
    ansi: bool = True,
    counted: Collection[str] = (),
    progress: PlanProgress | None = None,
) -> Run:
    """Evaluate ``plan`` over this rank's rows of each source. Collective.

    ``sources`` loses each source when the last stratum that reads it has it: the largest arrays of a run are freed
    while indexes are built.
    ``progress`` is called after each iteration with the names of the relations and their counts. Results of relations
    in ``counted`` may have no columns, only a number of rows: those that no other relation reads, alone in a stratum.
    """
    run = Run()
    unread = frozenset(counted) - {i.relation for i in plan.inputs}
    inputs = {i.id: i for i in plan.inputs}
    placement = (sub_buckets, heavy_parts, refinement, roll_over_rows) if comm.size > 1 else (1, heavy_parts)
    functors = {SIGN + f.name: f for f in plan.functors}
    all_facts = [replace(Facts.for_stratum(s, inputs, *placement), functors=functors) for s in plan.strata]
    reads = [{i.source for i in used_inputs(facts) if i.relation is None} for facts in all_facts]
    for n, facts in enumerate(all_facts):
        later = set().union(*reads[n + 1 :])
        own = {s: sources[s] if s in later else sources.pop(s) for s in reads[n]}
        _run_stratum(facts, own, comm, run, buckets or comm.size, ansi=ansi, counted=unread, progress=progress)
    return run


def _run_stratum(
    facts: Facts,
    sources: dict[int, Table],
    comm: Comm,
    run: Run,
    buckets: int,
    *,
    ansi: bool,
    counted: Collection[str],
    progress: PlanProgress | None,
) -> None:
    names = [r.name for r in facts.stratum.relations]
    stratum_progress = None if progress is None else partial(progress, "_".join(visible_names(names)))
    started_at = time.perf_counter()
    evaluation = _evaluation(facts, sources, comm, run, buckets, ansi=ansi, progress=stratum_progress)
    loaded_at = time.perf_counter()
    evaluation.run()
    looped_at = time.perf_counter()
    is_counted = len(names) == 1 and names[0] in counted and not facts.stratum.relations[0].settled
    results = {names[0]: Table((), evaluation.tuples)} if is_counted else evaluation.results()
    run.results |= results | {r.name: numbered(results[r.name], comm) for r in facts.stratum.relations if r.numbered}
    seconds = {"load": loaded_at - started_at, "loop": looped_at - loaded_at, "store": time.perf_counter() - looped_at}
    for name, value in seconds.items():
        run.seconds[name] += value
    tuples = int(comm.allreduce_sum(np.array([float(evaluation.tuples)]))[0])
    iterations = int(-comm.allreduce_min(-float(evaluation.iterations)))
    counts = {"iterations": iterations, "tuples": tuples, "seconds": seconds}
    run.strata.append({"relations": names, "form": evaluation.form, **counts})
    run.iterations += iterations
    run.tuples += tuples
    run.per_iteration += evaluation.per_iteration
    run.bytes = max(run.bytes, evaluation.bytes)


def _evaluation(
    facts: Facts,
    sources: dict[int, Table],
    comm: Comm,
    run: Run,
    buckets: int,
    *,
    ansi: bool,
    progress: Progress | None,
) -> Evaluation:
    """Load a stratum. Use the first form that the Plan and the data allow: those for bits, decomposition, tuples.

    Rows are removed from ``sources`` and from the inputs once a later form has them, so that arrays can be freed.
    """
    inputs = read_inputs(facts, sources, run.results, comm, ansi=ansi)
    sources.clear()
    facts = place_edges(facts, inputs, comm)
    builder = LoopBuilder(facts, inputs, comm, buckets, ansi=ansi)
    routed = builder.route()
    if BitmapLoop.fits(facts, routed):
        return BitmapLoop(facts, routed, inputs.strings)
    bit_rows = BitRowsLoop.load(facts, routed, inputs.strings, comm)
    if bit_rows is not None:
        return bit_rows
    if Decomposed.fits(facts, routed, comm):
        return Decomposed(facts, routed, inputs, comm, ansi=ansi)
    inputs.tables.clear()
    return Tuples(builder.build(routed), ansi=ansi, progress=progress)
