"""The systems, by name. Each is a module with `start(name, memory) -> Session`, imported only in its own process.

`SYSTEMS` says where to find each, which queries it can answer and on which graphs `--all` tries it: what takes minutes
there (a job for each of 620 rounds, say) or tells little beside its neighbour is left out, and may still be asked for
by name.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from benchmarks.queries import CLOSURE, COMPONENTS, MULTI_SSSP, PAGERANK, QUERIES, SSSP, Checksum

if TYPE_CHECKING:
    from benchmarks.datasets import Graph


class Answer(NamedTuple):
    """What one run found: the checksum, the seconds of the loop alone where the system can say, other facts.

    The checksum is empty if the system answers nothing (`scan`).
    """

    checksum: Checksum
    loop: float | None
    facts: dict[str, Any]


class Session(Protocol):
    """A started system; what it started ends with its process."""

    version: str

    def answer(self, query: str, graph: Graph) -> Answer:
        """Go the whole way from the Parquet files to the checksum: what the worker times."""
        ...


@dataclass(frozen=True)
class System:
    """Where a system's `start(memory)` lies, and what `--all` asks of it (None: every graph of the query)."""

    name: str
    module: str
    about: str
    graphs: dict[str, frozenset[str] | None]

    def start(self, memory: str) -> Session:
        """Start it; `memory` is the heap of a JVM, where there is one."""
        module = importlib.import_module(f"benchmarks.systems.{self.module}")
        session: Session = module.start(self.name, memory)
        return session

    def answers_by_default(self, query: str, graph: str) -> bool:
        """Tell whether `--all` asks it that query of that graph."""
        allowed = self.graphs.get(query, frozenset())
        return allowed is None or graph in allowed


def _everything() -> dict[str, frozenset[str] | None]:
    return dict.fromkeys(QUERIES)


_RMAT = frozenset({"rmat-16", "rmat-18"})
_SMALL = frozenset({"rmat-16"})
_SOME: dict[str, frozenset[str] | None] = {
    SSSP.name: frozenset({"rmat-18", "rmat-20", "grid-300"}),
    COMPONENTS.name: frozenset({"rmat-18", "grid-300"}),
    PAGERANK.name: frozenset({"rmat-18"}),
    MULTI_SSSP.name: frozenset(),
    CLOSURE.name: frozenset({"random-10000-12000", "random-5000-10000"}),
}
_BUT_RMAT_20 = frozenset({"rmat-16", "rmat-18", "grid-300"})
_BUT_CLOSURE: dict[str, frozenset[str] | None] = dict.fromkeys(
    (SSSP.name, MULTI_SSSP.name, COMPONENTS.name, PAGERANK.name)
)

SYSTEMS: dict[str, System] = {
    system.name: system
    for system in (
        System("paralagg", "paralagg", "this project, Spark engine, local[2]", _everything()),
        System(
            "scan",
            "spark_scan",
            "Spark's own scan and sum of the columns that the query reads, local[2]",
            _everything(),
        ),
        System(
            "dataframe",
            "paralagg",
            "this project, plain-DataFrame executor, local[2]",
            {SSSP.name: _SMALL, COMPONENTS.name: _SMALL},
        ),
        System("connect", "connect", "this project over Spark Connect, one Python worker, local[2]", _SOME),
        System("connect-dataframe", "connect", "this project over Spark Connect, plain DataFrames, local[2]", {}),
        System("local", "ranks", "this project, a text on the MPI engine in one process, 1 thread", _everything()),
        System("mpi-1", "ranks", "this project, a text on one rank under its supervisor", _SOME),
        System("mpi-2", "ranks", "this project, a text on two ranks", _everything()),
        System("offload", "paralagg", "this project, Spark local[2] that offloads to two ranks", _SOME),
        System(
            "duckdb",
            "duckdb_using_key",
            "DuckDB, `USING KEY` (closure: `UNION`; PageRank: one statement a round), 2 threads",
            _everything(),
        ),
        System(
            "graphx",
            "graphx",
            "GraphX in the same Spark, local[2]",
            {SSSP.name: _RMAT, COMPONENTS.name: _RMAT, PAGERANK.name: _RMAT},
        ),
        System(
            "gapbs",
            "gapbs",
            "GAPBS (delta-stepping, Afforest, PageRank in doubles), 1 thread; from its sources in `.bench/gapbs`",
            _BUT_CLOSURE,
        ),
        System("numba", "numba_kernels", "hand-written kernels on dense ids, 1 thread", _everything()),
        System("scipy", "scipy_csgraph", "scipy.sparse, 1 thread", _BUT_CLOSURE),
        System(
            "networkit",
            "networkit_routines",
            "NetworKit (Dijkstra, breadth-first search), 1 thread",
            {SSSP.name: None, COMPONENTS.name: None},
        ),
        System(
            "igraph",
            "igraph_routines",
            "igraph (Dijkstra, breadth-first search), 1 thread",
            {SSSP.name: _BUT_RMAT_20, COMPONENTS.name: _BUT_RMAT_20},
        ),
    )
}
