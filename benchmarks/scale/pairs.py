"""Replay and count the transitive closure, whose rows are pairs (x, y). The Plan places them by y, as the papers do.

So pairs are joined with edges where these lie, and each round sends derived pairs to the owner of their second vertex.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.scale import kernels
from benchmarks.scale.counts import count as count_vertices
from benchmarks.scale.many_ranks import OneOfMany
from benchmarks.scale.placement import STRINGS, copies, sub_buckets_of
from benchmarks.scale.programs import table
from benchmarks.scale.replay import Rounds, follow
from benchmarks.scale.replay import replay as replay_vertices
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.owner import owners_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.generators import Longs
    from benchmarks.scale.graphs import Graph
    from benchmarks.scale.placement import Placement
    from benchmarks.scale.programs import Query
    from benchmarks.scale.replay import Edges
    from mpi_backend.kernels.compiler import Array

MAX_PAIRS = 1 << 25


class TooManyPairsError(Exception):
    """The closure has more than ``MAX_PAIRS`` pairs."""


def _add(keys: KeyMap, words: Longs) -> Array:
    """Add keys of one word. Return whether each was new: a key that occurs twice is new once."""
    known = len(keys)
    ids, first = np.unique(keys.add(words), return_index=True)
    is_new = np.zeros(len(words), np.bool_)
    is_new[first[ids >= known]] = True
    return is_new


@dataclass(frozen=True)
class PairRounds:
    """The replay: the pairs that drive each round, as ``x * size + y``."""

    query: Query
    graph: Graph
    edges: Edges
    rows: list[Longs]


def replay(query: Query, graph: Graph) -> Rounds | PairRounds:
    """Replay a query over vertices or pairs.

    >>> from benchmarks.scale.graphs import make
    >>> from benchmarks.scale.programs import QUERIES
    >>> [len(rows) for rows in replay(QUERIES["closure"], make("string-4")).rows]
    [3, 2, 1]
    """
    if not query.has_pairs:
        return replay_vertices(query, graph)
    edges, pairs = follow(query, graph), KeyMap(1)
    rows = graph.src * graph.size + graph.dst
    pairs.add(rows)
    found = PairRounds(query, graph, edges, [])
    while len(rows):
        found.rows.append(rows)
        if query.is_one_round:
            break
        x, _, at = _derive(rows, edges, graph.size)
        derived = x * graph.size + edges.targets[at]
        rows = derived[_add(pairs, derived)]
        if len(pairs) > MAX_PAIRS:
            raise TooManyPairsError(graph.name)
    return found


def count(rounds: Rounds | PairRounds, placement: Placement) -> Iterator[Longs]:
    """Yield the counts of each round (``counts.count``)."""
    return count_vertices(rounds, placement) if isinstance(rounds, Rounds) else _count_pairs(rounds, placement)


def _count_pairs(rounds: PairRounds, placement: Placement) -> Iterator[Longs]:
    size, ranks, edges = rounds.graph.size, placement.ranks, rounds.edges
    sub_buckets = sub_buckets_of(placement.name) if ranks > 1 else 1
    to_all = copies(size, ranks, sub_buckets)
    sent = KeyMap(1)
    for rows in rounds.rows:
        counts = np.zeros((kernels.COUNTS, ranks), np.int64)
        own = _owners(rows, size, ranks, sub_buckets)
        counts[kernels.CHANGED] = np.bincount(own, minlength=ranks)
        if sub_buckets > 1:
            for r in to_all[:, rows % size]:
                is_other = r != own
                counts[kernels.COPIES_SENT] += np.bincount(own[is_other], minlength=ranks)
                counts[kernels.COPIES_RECEIVED] += np.bincount(r[is_other], minlength=ranks)
            counts[kernels.COPY_PARTNERS] = _partners(np.tile(own, len(to_all)), to_all[:, rows % size].ravel(), ranks)
        x, _, at = _derive(rows, edges, size)
        visitor = placement.edge_rank[at]
        counts[kernels.WORK] = np.bincount(visitor, minlength=ranks)
        derived = x * size + edges.targets[at]
        target = _owners(derived, size, ranks, sub_buckets)
        is_ghost = visitor != target
        visitor, target, derived = visitor[is_ghost].astype(np.int64), target[is_ghost], derived[is_ghost]
        is_new = _add(sent, visitor * (size * size) + derived)
        visitor, target = visitor[is_new], target[is_new]
        counts[kernels.ROWS_SENT] = np.bincount(visitor, minlength=ranks)
        counts[kernels.ROWS_RECEIVED] = np.bincount(target, minlength=ranks)
        counts[kernels.PARTNERS] = _partners(visitor, target, ranks)
        yield counts


def _partners(sender: Array, receiver: Array, ranks: int) -> Longs:
    """Return the number of other ranks to which each rank sends."""
    is_other = sender != receiver
    pairs = np.unique(sender[is_other].astype(np.int64) * ranks + receiver[is_other])
    return np.bincount(pairs // ranks, minlength=ranks)


def _derive(rows: Longs, edges: Edges, size: int) -> tuple[Longs, Longs, Longs]:
    """Return for each derived pair the first vertex and the middle one, and the position of its edge."""
    x, y = rows // size, rows % size
    first, degree = edges.offsets[y], edges.offsets[y + 1] - edges.offsets[y]
    ends = np.cumsum(degree)
    at = np.arange(int(ends[-1])) + np.repeat(first - (ends - degree), degree)
    return np.repeat(x, degree), np.repeat(y, degree), at


def _owners(rows: Longs, size: int, ranks: int, sub_buckets: int) -> Array:
    """Return the owner of each pair: by its second vertex, in the sub-bucket of the first."""
    pairs = table([rows // size, rows % size])
    return owners_of(pairs, (1,), (0,), STRINGS, OneOfMany(0, ranks), ranks, sub_buckets, masked=False)
