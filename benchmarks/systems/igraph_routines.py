"""igraph: graph routines in C behind Python, one thread.

No PageRank: it goes on to convergence instead of a number of rounds, and its ranks sum to 1. No closure (it has none).
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import igraph
import numpy as np

from benchmarks.systems import Answer
from benchmarks.systems.dense_ids import read_dense

if TYPE_CHECKING:
    from benchmarks.datasets import Graph


class IGraph:
    """No state: every run reads the files again."""

    version = f"igraph {igraph.__version__}"

    def answer(self, query: str, graph: Graph) -> Answer:
        """Read, build the graph, then call the routine; the loop is the latter alone, lists in and out and all."""
        vertices, src, dst, weight, sources = read_dense(graph)
        # A list of pairs: arrays are read number by number, 3x slower (rmat-14).
        edges = igraph.Graph(len(vertices), list(zip(src.tolist(), dst.tolist(), strict=True)), directed=True)
        if query == "sssp":
            edges.es["w"] = weight.tolist()
            start = perf_counter()
            [found] = edges.distances(int(sources[0]), weights="w")
            loop = perf_counter() - start
            dist = np.array(found)
            reached = np.isfinite(dist)
            return Answer((int(reached.sum()), int(dist[reached].sum())), loop, {})
        if query == "components":
            start = perf_counter()
            clusters = edges.connected_components(mode="weak")
            loop = perf_counter() - start
            component = np.array(clusters.membership)
            smallest = np.full(len(clusters), np.iinfo(np.int64).max)
            np.minimum.at(smallest, component, vertices)
            return Answer((len(vertices), int(smallest[component].sum())), loop, {})
        raise NotImplementedError(f"igraph does not answer {query}")


def start(_name: str, _memory: str) -> IGraph:
    """Nothing to set up."""
    return IGraph()
