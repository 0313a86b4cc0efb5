"""Replay the strict rounds of a query over vertices once, for all numbers of ranks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.queries import PAGERANK_ROUNDS
from benchmarks.scale import kernels
from mpi_backend.state.index import place_rows

if TYPE_CHECKING:
    from benchmarks.generators import Longs
    from benchmarks.scale.graphs import Graph
    from benchmarks.scale.programs import Query
    from mpi_backend.kernels.compiler import Array

MODES = {"sssp": kernels.ADD}


@dataclass(frozen=True)
class Edges:
    """Edges in the order of their sources: ``offsets`` by source, targets, weights, and the input's row of each.

    Components follow an edge both ways: from row n on, the input's rows stand for the reverse edges (``is_reverse``).
    """

    offsets: Longs
    targets: Array
    weights: Longs
    rows: Array
    is_reverse: Array


@dataclass(frozen=True)
class Rounds:
    """The replay: the rows that drive each round and their values. The last round derives nothing that improves."""

    query: Query
    graph: Graph
    edges: Edges
    rows: list[Array]
    values: list[Longs]
    state: Longs
    mode: int = field(default=kernels.COPY)


def follow(query: Query, graph: Graph) -> Edges:
    """Return the edges that the query's rules follow, by source."""
    src, dst, weight = graph.src, graph.dst, graph.weight
    rows = np.arange(len(src), dtype=np.int32)
    is_reverse = np.zeros(len(src), np.bool_)
    if query.is_undirected:
        src, dst, weight = np.concatenate([src, dst]), np.concatenate([dst, src]), np.tile(weight, 2)
        rows, is_reverse = np.tile(rows, 2), np.repeat([False, True], len(rows))
    offsets, order = place_rows(src.astype(np.int32), graph.size, None)
    return Edges(
        np.asarray(offsets, np.int64), dst[order].astype(np.int32), weight[order], rows[order], is_reverse[order]
    )


def replay(query: Query, graph: Graph) -> Rounds:
    """Run the query in strict rounds.

    >>> from benchmarks.scale.graphs import make
    >>> from benchmarks.scale.programs import QUERIES
    >>> [rows.tolist() for rows in replay(QUERIES["reach"], make("string-4")).rows]
    [[0], [1], [2], [3]]
    """
    edges = follow(query, graph)
    if query.is_recomputed:
        values = [np.zeros(len(graph.vertices), np.int64)] * PAGERANK_ROUNDS
        return Rounds(query, graph, edges, [graph.vertices] * PAGERANK_ROUNDS, values, np.zeros(0, np.int64))
    mode = MODES.get(query.name, kernels.COPY)
    state, pending = np.full(graph.size, kernels.NO_VALUE), np.empty(graph.size, np.int64)
    is_pending, out = np.zeros(graph.size, np.bool_), np.empty(graph.size, np.int64)
    rows = graph.vertices if query.name == "components" else np.array([graph.start])
    state[rows] = rows if query.name == "components" else 0
    rounds = Rounds(query, graph, edges, [], [], state, mode)
    while len(rows):
        rounds.rows.append(rows)
        rounds.values.append(state[rows])
        step = rows, state[rows], edges.offsets, edges.targets, edges.weights, mode
        derived = out[: kernels.run_round(*step, pending, is_pending, out)]
        is_pending[derived] = False
        rows = np.sort(derived[pending[derived] < state[derived]])
        state[rows] = pending[rows]
    return rounds
