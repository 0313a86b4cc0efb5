"""Under mpiexec, run cases of the model in strict rounds: ``python -m benchmarks.scale.on_ranks FILE CASE ...``.

A case is ``query,graph,placement``. The file gets for each case, from all ranks, the counts of each round and the CPU
time of the engine in it, without the time in MPI's calls. ``--repeat N`` keeps the least CPU time of N runs.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.scale.graphs import make
from benchmarks.scale.placement import sub_buckets_of
from benchmarks.scale.programs import QUERIES, compile_query, tables
from mpi_backend.comm import MpiComm
from mpi_backend.load import place_edges
from mpi_backend.load.inputs import read_inputs
from mpi_backend.load.loop_builder import LoopBuilder
from mpi_backend.loop.engine import run_plan
from mpi_backend.loop.fixpoint_loop import FixpointLoop
from mpi_backend.loop.ordered import Ordered
from mpi_backend.state.facts import HEAVY_PARTS, Facts

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import LoopState

_COPIES, _DERIVED = "copies", "derived"


class RecordingComm(MpiComm):
    """Ranks that record the words sent to each rank, by the exchange that sends them, and the CPU time in MPI."""

    def __init__(self, comm: Any) -> None:  # noqa: ANN401 - mpi4py's, which is optional
        super().__init__(comm)
        self.exchange_name = ""
        self.words: dict[str, Array] = {}
        self.mpi_seconds = 0.0

    def exchange_and_vote(self, words: Array, counts: Array, votes: Array) -> tuple[Array, Array, Array]:
        """Exchange, and record."""
        started_at = time.thread_time()
        result = super().exchange_and_vote(words, counts, votes)
        self.mpi_seconds += time.thread_time() - started_at
        sent = self.words.setdefault(self.exchange_name, np.zeros(self.size, np.int64))
        sent += np.where(np.arange(self.size) == self.rank, 0, counts)
        return result

    def allgather(self, votes: Array) -> Array:
        """Gather, and record the time."""
        started_at = time.thread_time()
        result = super().allgather(votes)
        self.mpi_seconds += time.thread_time() - started_at
        return result


class Recorder:
    """The counts of one run on this rank, by round: work, words to each rank of both exchanges, CPU seconds."""

    def __init__(self, loop: LoopState, comm: RecordingComm, fixpoint: FixpointLoop) -> None:
        self._loop = loop
        self._comm = comm
        self.rounds: list[dict[str, Any]] = []
        runner = fixpoint._runner  # noqa: SLF001 - the loop has no hooks
        self._run_rules = runner.run_rules
        runner.run_rules = self._rules  # type: ignore[method-assign]
        self._name(fixpoint._exchange, _DERIVED)  # noqa: SLF001
        mirrors = fixpoint._passes._mirrors  # noqa: SLF001
        self._name(fixpoint._copies if mirrors is None else mirrors, _COPIES)  # noqa: SLF001
        self._started_at = 0.0

    def run(self, fixpoint: FixpointLoop) -> None:
        """Run the loop to its end."""
        self._comm.words = {}
        self._started_at, self._comm.mpi_seconds = time.thread_time(), 0.0
        fixpoint.run()
        self._end_round()

    def _name(self, exchange: Any, name: str) -> None:  # noqa: ANN401 - one of three classes
        run: Callable[..., Any] = exchange.run

        def named(*arguments: Any) -> Any:  # noqa: ANN401
            self._comm.exchange_name = name
            return run(*arguments)

        exchange.run = named

    def _rules(self) -> None:
        if self.rounds:
            self._end_round()
        copies = self._comm.words.pop(_COPIES, None)
        self._comm.words = {}
        before, self._loop.work = self._loop.work, 0
        self._run_rules()
        work, self._loop.work = self._loop.work, before + self._loop.work
        self.rounds.append({"work": work, _COPIES: [] if copies is None else copies.tolist()})

    def _end_round(self) -> None:
        """Add the exchange of derived rows, and the time since the last round, to the round before."""
        derived = self._comm.words.pop(_DERIVED, None)
        seconds = time.thread_time() - self._started_at - self._comm.mpi_seconds
        self.rounds[-1] |= {_DERIVED: [] if derived is None else derived.tolist(), "seconds": seconds}
        self._started_at, self._comm.mpi_seconds = time.thread_time(), 0.0


def run(query: str, graph: str, placement: str, comm: RecordingComm) -> tuple[list[dict[str, Any]], str]:
    """Run a case on this rank. Return the rounds, and the placement of edges that the engine has decided."""
    loop = _load(query, graph, placement, comm)
    fixpoint = FixpointLoop(loop, ansi=True)
    recorder = Recorder(loop, comm, fixpoint)
    recorder.run(fixpoint)
    return recorder.rounds, "" if loop.facts.placement is None else str(loop.facts.placement)


def _load(query: str, graph: str, placement: str, comm: RecordingComm) -> LoopState:
    sub_buckets = sub_buckets_of(placement)
    is_mirrored = placement in ("mirrors", "hybrid") and QUERIES[query].may_mirror
    place_edges.EDGES_A_RANK = 0 if placement == "mirrors" else 2
    for limited in (False, True) if is_mirrored else (True,):
        plan, _ = compile_query(query, limited=limited)
        sources = tables(query, make(graph), comm.rank, comm.size, limited=limited)
        below = run_plan(replace(plan, strata=plan.strata[:-1]), dict(sources), comm).results
        heavy_parts = HEAVY_PARTS if placement == "hybrid" else 0
        facts = Facts.for_stratum(plan.strata[-1], {i.id: i for i in plan.inputs}, sub_buckets, heavy_parts)
        inputs = read_inputs(facts, sources, below, comm, ansi=True)
        facts = place_edges.place_edges(facts, inputs, comm)
        if limited or facts.mirror is not None:
            break
    builder = LoopBuilder(facts, inputs, comm, comm.size, ansi=True)
    return builder.build(builder.route())


def main() -> None:
    """Run the cases, one after the other."""
    from mpi4py import MPI  # noqa: PLC0415 - optional

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("cases", nargs="+", metavar="query,graph,placement")
    parser.add_argument("--repeat", type=int, default=1)
    options = parser.parse_args()
    Ordered.fits = staticmethod(lambda _loop, _runner: False)  # type: ignore[assignment,method-assign]
    world = MPI.COMM_WORLD
    results = {}
    for case in options.cases:
        query, graph, placement = case.split(",")
        runs = [run(query, graph, placement, RecordingComm(world)) for _ in range(options.repeat)]
        (rounds, form), *others = runs
        for other, _ in others:
            for mine, its in zip(rounds, other, strict=True):
                mine["seconds"] = min(mine["seconds"], its["seconds"])
        gathered = world.gather(rounds, 0)
        if gathered is not None:
            results[case] = {"form": form, "ranks": gathered}
    if world.Get_rank() == 0:
        options.file.write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main()
