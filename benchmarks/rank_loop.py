"""The loop of a query on each rank, apart from loading: ``mpiexec -n 2 python -m benchmarks.rank_loop sssp``.

Rank 0 prints a line of JSON for the network (unless there is one rank), then one for each run: seconds of the loop, and
for each rank its seconds in MPI, CPU seconds outside of MPI, calls of MPI (meetings), and the bytes that all network
interfaces but loopback sent during the loop; then seconds and bytes of loading, without the reading of files.
``benchmarks.two_hosts`` runs it on two hosts.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from mpi4py import MPI

from benchmarks.asynchrony import LoopComm
from benchmarks.datasets import DEFAULT_CACHE, Graph, open_graph
from benchmarks.scale.programs import compile_query, table
from mpi_backend.comm import SingleRank
from mpi_backend.loop.engine import run_plan
from mpi_backend.loop.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.generators import Longs
    from mpi_backend.loop.engine import Run
    from mpi_backend.state.types import Table

_EMPTY_MEETINGS = 1000
_WORDS = 1 << 22


class MeetingComm(LoopComm):
    """Ranks that count the calls of MPI that all ranks make together."""

    meetings = 0

    def _timed(self, call: Any, *arguments: Any) -> Any:  # noqa: ANN401 - any of the calls
        self.meetings += 1
        return super()._timed(call, *arguments)

    def _alltoallv_piece(self, out: tuple[Any, Any], into: tuple[Any, Any], low: int) -> None:
        self.meetings += 1  # in addition to the Alltoall of its counts
        super()._alltoallv_piece(out, into, low)


@dataclass(frozen=True)
class RankLoop:
    """Hold what a rank did in one loop, and in the loading before it."""

    wall: float
    in_mpi: float
    cpu: float
    meetings: int
    interface_bytes: int
    load: float
    load_bytes: int


def interface_bytes() -> int:
    """Return the bytes that this network's interfaces have sent, without loopback."""
    lines = [line.split(":") for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    return sum(int(counts.split()[8]) for name, counts in lines if name.strip() != "lo")


def read_graph(query: str, graph: Graph) -> dict[int, Table]:
    """Return this rank's rows of each source of a query: every n-th row group of the edges' file, or every n-th row."""
    world = MPI.COMM_WORLD
    file = pq.ParquetFile(graph.edges_file)
    groups = list(range(world.rank, file.num_row_groups, world.size))
    edges = file.read_row_groups(groups, use_threads=False)
    vertices = pq.read_table(graph.vertices_file).column(0).to_numpy()
    own: dict[str, list[Longs]] = {
        "edge": [edges.column(c).to_numpy() for c in range(3)],
        "vertex": [vertices[world.rank :: world.size].copy()],
        "start": [np.array(graph.sources[:1])[world.rank :: world.size].copy()],
    }
    plan, names = compile_query(query, limited=False)
    return {n: table(own[names[n]]) for n in {i.source for i in plan.inputs if i.relation is None}}


def measure(query: str, sources: dict[int, Table]) -> tuple[Run, RankLoop]:
    """Run a query. Return its result and this rank's part of the loop."""
    world, plan = MPI.COMM_WORLD, compile_query(query, limited=False)[0]
    comm = MeetingComm(world)
    loops: list[RankLoop] = []
    run_loop = Tuples.run
    world.Barrier()
    load_at, load_sent = time.perf_counter(), interface_bytes()

    def timed(loop: Tuples) -> None:
        world.Barrier()
        load = time.perf_counter() - load_at
        comm.seconds, comm.wall, comm.meetings = 0.0, 0.0, 0
        sent, started_at, cpu_at = interface_bytes(), time.perf_counter(), time.process_time()
        run_loop(loop)
        wall, cpu = time.perf_counter() - started_at, time.process_time() - cpu_at - comm.seconds
        meetings = comm.meetings
        world.Barrier()  # the other rank has received all words
        loop_bytes = interface_bytes() - sent
        loops.append(RankLoop(wall, comm.wall, cpu, meetings, loop_bytes, load, sent - load_sent))

    Tuples.run = timed  # type: ignore[method-assign]
    try:
        run = run_plan(plan, dict(sources), comm if world.size > 1 else SingleRank())
    finally:
        Tuples.run = run_loop  # type: ignore[method-assign]
    return run, loops[-1]


def digest(found: Table) -> str:
    """Return a hash of the sorted rows of all ranks. Collective; other ranks than 0 return an empty text."""
    rows = MPI.COMM_WORLD.gather(np.column_stack([c.words for c in found.columns]), 0)
    if rows is None:
        return ""
    whole = np.concatenate(rows)
    return hashlib.sha256(whole[np.lexsort(whole.T[::-1])].tobytes()).hexdigest()


def network() -> dict[str, float]:
    """Return the seconds of a meeting without words, and the bytes a second that each rank sends in a large one."""
    comm = MeetingComm(MPI.COMM_WORLD)
    votes = np.zeros(8)
    for _ in range(10):
        comm.allgather(votes)
    started_at = time.perf_counter()
    for _ in range(_EMPTY_MEETINGS):
        comm.allgather(votes)
    empty = (time.perf_counter() - started_at) / _EMPTY_MEETINGS
    words = np.zeros(_WORDS, np.int64)
    counts = np.where(np.arange(comm.size) == comm.rank, 0, _WORDS // (comm.size - 1))
    comm.alltoallv(words, counts)
    started_at = time.perf_counter()
    comm.alltoallv(words, counts)
    return {"empty_meeting": empty, "bytes_a_second": 8 * _WORDS / (time.perf_counter() - started_at)}


def phases(run: Run) -> dict[str, float]:
    """Return the seconds of each phase on this rank."""
    sums: dict[str, float] = {}
    for entry in run.per_iteration:
        for phase, seconds in entry["phases"].items():
            sums[phase] = sums.get(phase, 0.0) + seconds
    return sums


def runs(query: str, graph: Graph, repeat: int) -> Iterator[dict[str, Any]]:
    """Yield the facts of each run on rank 0. The first run, which compiles, is left out."""
    world = MPI.COMM_WORLD
    sources = read_graph(query, graph)
    for n in range(repeat + 1):
        run, own = measure(query, sources)
        ranks = world.gather(vars(own), 0)
        rows = digest(run.results["found"])
        if n and ranks is not None:
            yield {
                "form": run.strata[-1]["form"],
                "ranks": ranks,
                "rows": rows,
                "iterations": run.iterations,
                "report_bytes": sum(i["bytes"] for i in run.per_iteration),
                "work": sum(i["work"] for i in run.per_iteration),
                "phases": phases(run),
            }


def main() -> None:
    """Print lines of JSON on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("query", choices=("sssp", "components"))
    parser.add_argument("--graph", default="rmat-20")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="folder of the graphs")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    if MPI.COMM_WORLD.size > 1:
        facts = network()
        if MPI.COMM_WORLD.rank == 0:
            print(json.dumps(facts), flush=True)
    for facts in runs(options.query, open_graph(options.graph, options.cache), options.repeat):
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
