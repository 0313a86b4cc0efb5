"""CPU seconds of the busiest rank outside of MPI: ``mpiexec -n 4 python -m benchmarks.rank_cpu``.

Waiting ranks spin, and ranks may share cores, so neither wall time nor CPU time of a process says what a rank computes.
A closure of a tree of ``benchmarks.sub_buckets``: a line without sub-buckets, and one with ``auto``, loading included.
With ``--star in-star`` the components of a star of ``benchmarks.balance``, the loop alone: a line with each edge at its
target, and one with the edges of hubs spread (``heavyParts``).
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from benchmarks.balance import QUERIES, stars
from benchmarks.scale.programs import table
from benchmarks.sub_buckets import trees
from mpi_backend.comm import MpiComm
from mpi_backend.loop.engine import run_plan
from mpi_backend.loop.tuples import Tuples
from mpi_backend.state.facts import HEAVY_PARTS
from mpi_backend.state.sub_buckets import Refinement
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.whole import whole_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.loop.engine import Run
    from mpi_backend.state.types import Table
    from pyspark_paralagg.plan.plan import Plan

CLOSURE = "p(x, y) :- edge(x, y). p(x, z) :- p(x, y), edge(y, z)."
STAR = QUERIES["components"].replace(", _)", ")")
_COLUMNS = {"edge": [("x", "bigint"), ("y", "bigint")], "vertex": [("x", "bigint")]}
_NO_HUBS = 1e-9


class TimedComm(MpiComm):
    """The ranks of a run. ``seconds`` is the CPU time in the calls that a loop makes."""

    seconds = 0.0

    def _timed(self, call: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401 - any of the calls
        started_at = time.process_time()
        result = call(*arguments)
        self.seconds += time.process_time() - started_at
        return result

    def allreduce_sum(self, votes: Any) -> Any:  # noqa: ANN401, D102 - as in MpiComm
        return self._timed(super().allreduce_sum, votes)

    def allgather(self, votes: Any) -> Any:  # noqa: ANN401, D102 - as in MpiComm
        return self._timed(super().allgather, votes)

    def exchange_and_vote(self, words: Any, counts: Any, votes: Any) -> Any:  # noqa: ANN401, D102 - as in MpiComm
        return self._timed(super().exchange_and_vote, words, counts, votes)


def main() -> None:
    """Print the table on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tree", default="binary")
    parser.add_argument("--vertices", type=int, default=1 << 17)
    parser.add_argument("--star", choices=("out-star", "in-star", "both"))
    parser.add_argument("--leaves", type=int, default=1 << 20)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    comm = TimedComm(MPI.COMM_WORLD)
    if options.star is None:
        inputs = {"edge": trees(options.vertices)[options.tree]}
        ways: list[dict[str, Any]] = [{"refinement": None}, {"refinement": Refinement(2)}]
        measure, text = _outside_of_mpi, CLOSURE
    else:
        edge = stars(options.leaves)[options.star]
        inputs = {"edge": edge, "vertex": (np.unique(np.concatenate(edge)),)}
        ways, measure, text = [{"heavy_parts": _NO_HUBS}, {"heavy_parts": HEAVY_PARTS}], _of_loop, STAR
    plan, sources = _program(text, {n: [c[comm.rank :: comm.size] for c in columns] for n, columns in inputs.items()})
    for way in ways:
        results = []
        for _ in range(options.repeat):
            own, run = measure(partial(run_plan, plan, dict(sources), comm, **way), comm)
            results.append(np.array(MPI.COMM_WORLD.allgather(own)))
        best = min(results, key=lambda r: float(r.max()))
        if comm.rank == 0:
            ratio = best.max() / best.mean()
            form = run.strata[-1]["form"]
            print(f"busiest rank {best.max():.3f} s, average {best.mean():.3f} s, {ratio:.2f}: {form}", flush=True)


def _program(text: str, inputs: Mapping[str, Sequence[Array]]) -> tuple[Plan, dict[int, Table]]:
    """Return the Plan of a text, and this rank's rows of its sources."""
    resolved = resolve_text(parse(text), {name: _COLUMNS[name] for name in inputs})
    empty = {n for n, source in enumerate(resolved.sources) if not source.is_external}
    plan = compile_program(whole_program(resolved.program, empty))
    sources = {}
    for n, source in enumerate(resolved.sources):
        columns = inputs.get(source.relation, inputs["edge"])
        sources[n] = table([np.ascontiguousarray(c[: 0 if n in empty else None]) for c in columns])
    return plan, sources


def _outside_of_mpi(call: Callable[[], Run], comm: TimedComm) -> tuple[float, Run]:
    comm.seconds = 0.0
    started_at = time.process_time()
    run = call()
    return time.process_time() - started_at - comm.seconds, run


def _of_loop(call: Callable[[], Run], comm: TimedComm) -> tuple[float, Run]:
    spent = 0.0
    whole = Tuples.run

    def timed(self: Tuples) -> None:
        nonlocal spent
        comm.seconds, started_at = 0.0, time.process_time()
        whole(self)
        spent = time.process_time() - started_at - comm.seconds

    Tuples.run = timed  # type: ignore[method-assign]
    try:
        run = call()
    finally:
        Tuples.run = whole  # type: ignore[method-assign]
    return spent, run


if __name__ == "__main__":
    main()
