"""Shortest paths without meetings: ``mpiexec -n 2 python -m benchmarks.asynchrony``.

Measures the engine first: seconds of the loop, and how much of them is spent in MPI, which bounds what asynchrony can
save. Then a prototype of PowerLog's asynchronous engine (section 5.3): messages of an adaptive size by
``Isend``, and an ``Iallreduce`` that ends the run. ``--lead`` are seconds in which a rank waits for others before it
passes the values that they have reached (0: it never waits, as in the paper). docs/balance.md has the figures.
"""

from __future__ import annotations

import argparse
import time
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
from mpi4py import MPI

from benchmarks.asynchronous_kernels import INFINITE, next_limit, pack, receive, relax
from benchmarks.datasets import open_graph
from benchmarks.rank_cpu import TimedComm
from benchmarks.scale.programs import table
from mpi_backend.loop.engine import run_plan
from mpi_backend.loop.tuples import Tuples
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_TEXT = "found(x, $MIN(0)) :- start(x). found(y, $MIN(d + w)) :- found(x, d), edge(x, y, w)."
_COLUMNS = {"edge": [(c, "bigint") for c in ("src", "dst", "w")], "start": [("v", "bigint")]}
DAMPING, RATIO, INTERVAL = 0.8, 2.0, 1e-3
"""The paper's damping, r, and interval between messages in seconds (it does not say which it uses)."""
_ROWS = 1024
"""Rows that a rank applies before it looks for messages."""
_TAG = 7


class LoopComm(TimedComm):
    """Ranks that count only the calls of the loop, also those of ``allreduce_min``. ``wall`` is their wall time."""

    wall = 0.0

    def _timed(self, call: Any, *arguments: Any) -> Any:  # noqa: ANN401 - any of the calls
        started_at = time.perf_counter()
        result = super()._timed(call, *arguments)
        self.wall += time.perf_counter() - started_at
        return result

    def allreduce_min(self, value: float) -> float:
        """Call ``Allreduce`` with MIN."""
        return float(self._timed(super().allreduce_min, value))


class Engine:
    """The engine's own loop. Ranks read the edges of the graph in turns."""

    def __init__(self, name: str) -> None:
        graph, world = open_graph(name), MPI.COMM_WORLD
        self._comm = LoopComm(world)
        resolved = resolve_text(parse(_TEXT), _COLUMNS)
        self._plan = compile_program(requested_program(resolved, ["found"]))
        edges = pq.read_table(graph.edges_file)
        inputs = {"edge": [edges.column(c).to_numpy() for c in range(3)], "start": [np.array(graph.sources[:1])]}
        self._sources = {}
        for n, source in enumerate(resolved.sources):
            columns = inputs.get(source.relation, [np.zeros(0, np.int64)])
            self._sources[n] = table([np.ascontiguousarray(c[world.rank :: world.size]) for c in columns])

    def run(self) -> tuple[float, float, float]:
        """Return the wall time of the loop, of its calls of MPI, and the CPU time outside of them."""
        comm, times = self._comm, []
        run_loop = Tuples.run

        def timed(loop: Tuples) -> None:
            MPI.COMM_WORLD.Barrier()
            comm.seconds = comm.wall = 0.0
            started_at, cpu_at = time.perf_counter(), time.process_time()
            run_loop(loop)
            times.extend((time.perf_counter() - started_at, comm.wall, time.process_time() - cpu_at - comm.seconds))

        Tuples.run = timed  # type: ignore[method-assign]
        try:
            run_plan(self._plan, dict(self._sources), comm)
        finally:
            Tuples.run = run_loop  # type: ignore[method-assign]
        return times[0], times[1], times[2]


class Asynchronous:
    """The prototype. Vertices lie on ranks by chance, as keys do by their hash."""

    def __init__(self, name: str, width: int, lead: float) -> None:
        world, graph = MPI.COMM_WORLD, open_graph(name)
        vertices = pq.read_table(graph.vertices_file).column(0).to_numpy()
        columns = pq.read_table(graph.edges_file)
        src, dst = (np.searchsorted(vertices, columns.column(c).to_numpy()) for c in range(2))
        self._count, self._width, self._lead = len(vertices), width, lead
        self._source = int(np.searchsorted(vertices, graph.sources[0]))
        self._owner = np.random.default_rng(1).integers(0, world.size, self._count).astype(np.int32)
        own = np.flatnonzero(self._owner[src] == world.rank)
        own = own[np.argsort(src[own], kind="stable")]
        self._offset = np.concatenate([[0], np.cumsum(np.bincount(src[own], minlength=self._count))])
        self._target = dst[own].astype(np.int32)
        self._weight = columns.column(2).to_numpy()[own]

    def run(self) -> tuple[float, float, int, int, int]:
        """Return wall and CPU time, then of all ranks: the sum of distances, edges visited, messages."""
        world = MPI.COMM_WORLD
        self._begin(world.rank, world.size)
        world.Barrier()
        started_at, cpu_at = time.perf_counter(), time.process_time()
        while True:
            self._receive()
            self._move_limit()
            if self._bounds[0]:
                self._visited += relax(
                    self._dist, self._offset, self._target, self._weight, self._owner, world.rank, self._near,
                    self._far, self._flags, self._bounds, self._buffers, self._lengths, _ROWS,
                )  # fmt: skip
            self._send()
            if not self._bounds[:2].any():
                time.sleep(0)
                if self._has_ended():
                    break
        wall, cpu = time.perf_counter() - started_at, time.process_time() - cpu_at
        own = (self._owner == world.rank) & (self._dist < INFINITE)
        totals = [int(world.allreduce(int(x))) for x in (self._dist[own].sum(), self._visited, self._sent)]
        return wall, cpu, totals[0], totals[1], totals[2]

    def _begin(self, rank: int, size: int) -> None:
        n = self._count
        self._dist = np.full(n, INFINITE)
        self._near, self._far = np.empty(8 * n, np.int32), np.empty(n, np.int32)
        self._flags = np.zeros((3, n), np.uint8)
        self._bounds = np.array([0, 0, self._width, self._width], np.int64)
        self._dist[self._source] = 0
        if self._owner[self._source] == rank:
            self._near[0], self._bounds[0], self._flags[0, self._source] = self._source, 1, 1
        self._buffers, self._lengths = np.empty((size, n), np.int32), np.zeros(size, np.int64)
        self._limits = np.where(np.arange(size) == rank, INFINITE, self._width)  # of the other ranks
        self._sizes, self._sent_at = np.full(size, 256.0), np.full(size, time.perf_counter())
        self._sent = self._received = self._visited = 0
        self._pending: list[Any] = []
        self._request: Any = None
        self._sums = np.zeros(2)
        self._sums_before: tuple[float, ...] | None = None
        self._waits_since = 0.0

    def _receive(self) -> None:
        world, status = MPI.COMM_WORLD, MPI.Status()
        while world.Iprobe(source=MPI.ANY_SOURCE, tag=_TAG, status=status):
            message = np.empty(status.Get_count(MPI.INT64_T), np.int64)
            world.Recv(message, source=status.source, tag=_TAG)
            self._received += 1
            self._limits[status.source] = message[-1]
            receive(message[:-1], self._dist, self._near, self._far, self._flags, self._bounds)
            self._waits_since = time.perf_counter()

    def _move_limit(self) -> None:
        """Make far rows near if no row is near, unless this rank leads and has not waited for long."""
        if self._bounds[0] or not self._bounds[1]:
            return
        leads = self._bounds[2] > self._limits.min()
        if leads and time.perf_counter() - self._waits_since <= self._lead:
            time.sleep(0)
            return
        next_limit(self._dist, self._near, self._far, self._flags, self._bounds)
        self._waits_since = time.perf_counter()

    def _send(self) -> None:
        """Send messages that have reached their size, or all if no row is near."""
        now = time.perf_counter()
        for peer in np.flatnonzero(self._lengths):
            count = int(self._lengths[peer])
            if self._bounds[0] and count < self._sizes[peer]:
                continue
            pace, expected = count / max(now - self._sent_at[peer], 1e-9), self._sizes[peer] / INTERVAL
            if not expected / RATIO <= pace <= expected * RATIO:
                self._sizes[peer] = max(1.0, DAMPING * INTERVAL * pace)
            message = np.append(pack(self._buffers[peer], count, self._dist, self._flags), self._bounds[2])
            self._lengths[peer], self._sent_at[peer] = 0, now
            self._pending.append((MPI.COMM_WORLD.Isend(message, dest=int(peer), tag=_TAG), message))
            self._sent += 1
        self._pending = [p for p in self._pending if not p[0].Test()]

    def _has_ended(self) -> bool:
        """Return whether two sums in a row have the same numbers, and every sent message was received."""
        if self._request is None:
            counts = np.array([float(self._sent), float(self._received)])
            self._request = MPI.COMM_WORLD.Iallreduce(counts, self._sums)
            self._counts = counts  # stays in memory until the request has ended
        if not self._request.Test():
            return False
        self._request = None
        sums = float(self._sums[0]), float(self._sums[1])
        before, self._sums_before = self._sums_before, sums
        return sums[0] == sums[1] and before == sums


def main() -> None:
    """Print a line for the engine and for each form of the prototype, on rank 0."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graph", default="grid-300")
    parser.add_argument("--widths", default="30,100,400")
    parser.add_argument("--leads", default="0,0.002")
    parser.add_argument("--repeat", type=int, default=20)
    options = parser.parse_args()
    world = MPI.COMM_WORLD
    engine = Engine(options.graph)
    forms = [(int(w), float(t)) for t in options.leads.split(",") for w in options.widths.split(",")]
    prototypes = {form: Asynchronous(options.graph, *form) for form in forms}
    measured: dict[Any, list[Any]] = {form: [] for form in (None, *forms)}
    for n in range(options.repeat + 1):
        wall, in_mpi, cpu = engine.run()
        rows = world.allgather((in_mpi, cpu))
        results = {None: (wall, min(r[0] for r in rows), max(r[1] for r in rows))}
        results |= {form: p.run() for form, p in prototypes.items()}
        if n:  # the first one compiles
            for form, result in results.items():
                measured[form].append(result)
    if world.rank == 0:
        print(f"{options.graph}, {world.size} ranks, medians of {options.repeat} runs (least of them), ms")
        wall, in_mpi, cpu = (_median(x) for x in zip(*measured.pop(None), strict=True))
        print(f"engine: loop {wall}, in MPI {in_mpi}, CPU outside of MPI {cpu}")
        for (width, lead), results in measured.items():
            walls, cpus, sums, edges, messages = zip(*results, strict=True)
            counts = f"{np.median(edges) / 1e6:.2f} M edges, {np.median(messages):.0f} messages, sum {sums[0]}"
            print(f"prototype, width {width}, lead {lead}: {_median(walls)}, CPU {_median(cpus)}, {counts}")


def _median(seconds: Sequence[float]) -> str:
    return f"{1e3 * np.median(seconds):.1f} ({1e3 * min(seconds):.1f})"


if __name__ == "__main__":
    main()
