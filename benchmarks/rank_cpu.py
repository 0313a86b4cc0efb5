"""CPU seconds of the busiest rank outside of MPI, for a closure: ``mpiexec -n 4 python -m benchmarks.rank_cpu``.

Waiting ranks spin, and ranks may share cores, so neither wall time nor CPU time of a process says what a rank computes.
The trees are those of ``benchmarks.sub_buckets``. Prints a line without sub-buckets, and one with ``auto``.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np
from mpi4py import MPI

from benchmarks.scale.programs import table
from benchmarks.sub_buckets import trees
from mpi_backend.comm import MpiComm
from mpi_backend.loop.engine import run_plan
from mpi_backend.state.sub_buckets import Refinement
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.whole import whole_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from collections.abc import Callable

_TEXT = "p(x, y) :- edge(x, y). p(x, z) :- p(x, y), edge(y, z)."
_COLUMNS = {"edge": [("x", "bigint"), ("y", "bigint")]}


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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tree", default="binary")
    parser.add_argument("--vertices", type=int, default=1 << 17)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    comm = TimedComm(MPI.COMM_WORLD)
    resolved = resolve_text(parse(_TEXT), _COLUMNS)
    empty = {n for n, source in enumerate(resolved.sources) if not source.is_external}
    plan = compile_program(whole_program(resolved.program, empty))
    edges = [np.ascontiguousarray(c[comm.rank :: comm.size]) for c in trees(options.vertices)[options.tree]]
    sources = {}
    for n in range(len(resolved.sources)):
        words = [c[:0] for c in edges] if n in empty else edges
        sources[n] = table(words)
    for refinement in (None, Refinement(2)):
        results = []
        for _ in range(options.repeat):
            comm.seconds = 0.0
            started_at = time.process_time()
            run = run_plan(plan, dict(sources), comm, refinement=refinement)
            own = time.process_time() - started_at - comm.seconds
            results.append(np.array(MPI.COMM_WORLD.allgather(own)))
        best = min(results, key=lambda r: float(r.max()))
        if comm.rank == 0:
            form = run.strata[-1]["form"]
            print(f"busiest rank {best.max():.2f} s, average {best.mean():.2f} s: {form}", flush=True)


if __name__ == "__main__":
    main()
