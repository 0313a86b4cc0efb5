"""scipy: compiled graph routines on a sparse matrix, one thread. No closure (scipy has none)."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import scipy
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from benchmarks.queries import DAMPING, PAGERANK_ROUNDS, SOURCES
from benchmarks.systems import Answer
from benchmarks.systems.dense_ids import read_dense

if TYPE_CHECKING:
    from benchmarks.datasets import Graph


class Scipy:
    """No state: every run reads the files again."""

    version = f"scipy {scipy.__version__}"

    def answer(self, query: str, graph: Graph) -> Answer:
        """Read, build the matrix, then call the routine; the loop is the latter alone."""
        vertices, src, dst, weight, sources = read_dense(graph)
        shape = (len(vertices), len(vertices))
        if query in SOURCES:
            matrix = csr_array((weight.astype(np.float64), (src, dst)), shape)
            start = perf_counter()
            dist = dijkstra(matrix, indices=sources[: SOURCES[query]])
            loop = perf_counter() - start
            reached = np.isfinite(dist)
            return Answer((int(reached.sum()), int(dist[reached].sum())), loop, {})
        if query == "components":
            matrix = csr_array((np.ones(len(src), np.int8), (src, dst)), shape)
            start = perf_counter()
            count, component = connected_components(matrix, directed=True, connection="weak")
            loop = perf_counter() - start
            smallest = np.full(count, np.iinfo(np.int64).max)
            np.minimum.at(smallest, component, vertices)
            return Answer((len(vertices), int(smallest[component].sum())), loop, {})
        if query == "pagerank":
            degree = np.bincount(src, minlength=len(vertices))
            matrix = csr_array((DAMPING / degree[src], (dst, src)), shape)
            start = perf_counter()
            rank = np.ones(len(vertices))
            for _ in range(PAGERANK_ROUNDS):
                rank = (1 - DAMPING) + matrix @ rank
            return Answer((len(rank), float(rank.sum()), float((rank * rank).sum())), perf_counter() - start, {})
        raise NotImplementedError(f"scipy does not answer {query}")


def start(_name: str, _memory: str) -> Scipy:
    """Nothing to set up."""
    return Scipy()
