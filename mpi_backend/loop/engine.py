"""All strata of a Plan in order: what a rank computes between its inputs and its results."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mpi_backend.exchange.mirrors import mirrored
from mpi_backend.load.builder import Builder
from mpi_backend.load.inputs import read_inputs
from mpi_backend.loop.bitmaps import Bitmaps
from mpi_backend.loop.decomposed import Decomposed
from mpi_backend.loop.tuples import Tuples
from mpi_backend.state.facts import Facts
from mpi_backend.state.spread import spread

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mpi_backend.comm import Comm
    from mpi_backend.loop.fixpoint import Progress
    from mpi_backend.loop.stats import Counts
    from mpi_backend.state.types import Table
    from pyspark_paralagg.plan.plan import Plan

    Watch = Callable[[str, Counts], None]


class Evaluation(Protocol):
    """A stratum that is loaded: one of the ways in which the Plan allows to evaluate it."""

    @property
    def iterations(self) -> int:
        """Applications of the step."""

    @property
    def per_iteration(self) -> list[dict[str, Any]]:
        """One entry for each iteration and relation, where these were counted."""

    def run(self) -> None:
        """To the fixpoint, or to the limit. Collective."""

    @property
    def tuples(self) -> int:
        """Rows on this rank."""

    @property
    def bytes(self) -> int:
        """Held in memory."""

    def results(self) -> dict[str, Table]:
        """This rank's rows of each relation."""


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
    sub_buckets: int = 1,
    ansi: bool = True,
    progress: Watch | None = None,
) -> Run:
    """Evaluates ``plan`` over this rank's rows of each source. Collective.

    ``progress`` hears of each iteration: the relations, and how far they are.
    """
    run = Run()
    inputs = {i.id: i for i in plan.inputs}
    for stratum in plan.strata:
        changed, where = spread(stratum, sub_buckets if comm.size > 1 else 1)
        facts = Facts(changed, inputs, where)
        _run_stratum(facts, sources, comm, run, buckets or comm.size, ansi=ansi, progress=progress)
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
    names = [r.name for r in facts.stratum.relations]
    visible = [n for n in names if "@" not in n] or names
    heard = None if progress is None else partial(progress, "_".join(visible))
    began = time.perf_counter()
    evaluation = _evaluation(facts, sources, comm, run, buckets, ansi=ansi, progress=heard)
    loaded = time.perf_counter()
    evaluation.run()
    looped = time.perf_counter()
    run.results |= evaluation.results()
    seconds = {"load": loaded - began, "loop": looped - loaded, "store": time.perf_counter() - looped}
    for name, value in seconds.items():
        run.seconds[name] += value
    tuples = int(comm.sum(np.array([float(evaluation.tuples)]))[0])
    iterations = int(-comm.least(-float(evaluation.iterations)))
    run.strata.append({"relations": names, "iterations": iterations, "tuples": tuples, "seconds": seconds})
    run.iterations += iterations
    run.tuples += tuples
    run.per_iteration += evaluation.per_iteration
    run.bytes = max(run.bytes, evaluation.bytes)


def _evaluation(
    facts: Facts,
    sources: Mapping[int, Table],
    comm: Comm,
    run: Run,
    buckets: int,
    *,
    ansi: bool,
    progress: Progress | None,
) -> Evaluation:
    """Loads a stratum. Bitmaps, else value by value, else tuples: the first that the Plan and the data allow."""
    inputs = read_inputs(facts, sources, run.results, comm, ansi=ansi)
    facts = mirrored(facts, inputs, comm)
    builder = Builder(facts, inputs, comm, buckets)
    routed = builder.route()
    if Bitmaps.fits(facts, routed):
        return Bitmaps(facts, routed, inputs.strings)
    if Decomposed.fits(facts, routed, comm):
        return Decomposed(facts, routed, inputs, comm, ansi=ansi)
    return Tuples(builder.build(routed), ansi=ansi, progress=progress)
