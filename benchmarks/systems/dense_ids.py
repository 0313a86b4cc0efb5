"""Reading a graph into numpy arrays with vertices numbered 0..n-1, for the systems that need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.datasets import Graph
    from benchmarks.generators import Longs


class DenseGraph(NamedTuple):
    """`vertices[i]` is the id of vertex number i; src, dst and sources are numbers."""

    vertices: Longs
    src: NDArray[np.int32]
    dst: NDArray[np.int32]
    weight: NDArray[np.int32]
    sources: Longs


def read_dense(graph: Graph) -> DenseGraph:
    """Read edges and vertices; ids are looked up in an array as long as the largest id, small in all our graphs."""
    table = pq.read_table(graph.edges_file)
    vertices = pq.read_table(graph.vertices_file)["v"].to_numpy()
    number = np.zeros(int(vertices.max()) + 1, np.int32)
    number[vertices] = np.arange(len(vertices), dtype=np.int32)
    src, dst = number[table["src"].to_numpy()], number[table["dst"].to_numpy()]
    sources = number[graph.sources].astype(np.int64)
    return DenseGraph(vertices, src, dst, table["w"].to_numpy().astype(np.int32), sources)
