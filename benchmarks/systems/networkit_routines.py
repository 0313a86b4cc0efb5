"""NetworKit: graph routines in C++ behind Python, one thread.

No PageRank: it takes the rounds and the damping that are asked for, but divides by the sum at the end, and the sum is
part of the answer. No closure (it has none). Tried and not taken for components (rmat-14): `WeaklyConnectedComponents`
of the directed graph, 2x slower; `ParallelConnectedComponents`, 2-3x slower on one thread and on two.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import networkit
import numpy as np

from benchmarks.systems import Answer
from benchmarks.systems.dense_ids import read_dense

if TYPE_CHECKING:
    from benchmarks.datasets import Graph

_UNREACHED = np.finfo(np.float64).max


class NetworKit:
    """No state: every run reads the files again."""

    version = f"NetworKit {networkit.__version__}"

    def answer(self, query: str, graph: Graph) -> Answer:
        """Read, build the graph, then call the routine; the loop is the latter alone."""
        vertices, src, dst, weight, sources = read_dense(graph)
        ends = (src.astype(np.uint64), dst.astype(np.uint64))  # 32 bits are misread
        if query == "sssp":
            weighted = (weight.astype(np.float64), ends)
            edges = networkit.GraphFromCoo(weighted, len(vertices), weighted=True, directed=True)
            start = perf_counter()
            search = networkit.distance.Dijkstra(edges, int(sources[0]), storePaths=False).run()
            loop = perf_counter() - start
            dist = np.asarray(search.getDistances(asarray=True))
            reached = dist != _UNREACHED
            return Answer((int(reached.sum()), int(dist[reached].sum())), loop, {})
        if query == "components":
            edges = networkit.GraphFromCoo(ends, len(vertices))  # undirected
            start = perf_counter()
            search = networkit.components.ConnectedComponents(edges).run()
            loop = perf_counter() - start
            component = np.array(search.getPartition().getVector())
            smallest = np.full(search.numberOfComponents(), np.iinfo(np.int64).max)
            np.minimum.at(smallest, component, vertices)
            return Answer((len(vertices), int(smallest[component].sum())), loop, {})
        raise NotImplementedError(f"NetworKit does not answer {query}")


def start(_name: str, _memory: str) -> NetworKit:
    """On one thread, which is as many as these routines use."""
    networkit.setNumberOfThreads(1)
    return NetworKit()
