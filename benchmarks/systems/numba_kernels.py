"""The bare metal: short Numba kernels on dense ids, one thread. What a generated loop can hope for.

`whole` reads the Parquet files with pyarrow and numbers the vertices; `loop` is the kernel alone,
its index (CSR) already built.
"""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING

import numba
import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.queries import DAMPING, PAGERANK_ROUNDS, SOURCES
from benchmarks.systems import Answer
from benchmarks.systems.dense_ids import read_dense

if TYPE_CHECKING:
    from benchmarks.datasets import Graph
    from benchmarks.generators import Longs

BLOCK_WORDS = 16  # the closure takes 64 * 16 sources at once, a bit each
LARGEST_DENSE = 1 << 15  # vertices; a larger graph whose closure can be counted at all has a sparse one: no bitmaps
_UNREACHED = np.iinfo(np.int64).max

Ints = NDArray[np.int32]


@njit(cache=True)
def _csr(src: Ints, dst: Ints, weight: Ints, n: int) -> tuple[Longs, Ints, Ints]:
    """Return (offsets, targets, weights) by a counting sort on `src`."""
    offset = np.zeros(n + 1, np.int64)
    for i in range(len(src)):
        offset[src[i] + 1] += 1
    for v in range(n):
        offset[v + 1] += offset[v]
    place, target, cost = offset[:-1].copy(), np.empty(len(src), np.int32), np.empty(len(src), np.int32)
    for i in range(len(src)):
        target[place[src[i]]], cost[place[src[i]]] = dst[i], weight[i]
        place[src[i]] += 1
    return offset, target, cost


@njit(cache=True)
def _shortest_paths(offset: Longs, target: Ints, cost: Ints, source: int) -> Longs:
    """Bellman-Ford in rounds: only vertices that improved in the last round push (the semi-naive delta)."""
    n = len(offset) - 1
    dist, queued = np.full(n, _UNREACHED, np.int64), np.zeros(n, np.bool_)
    delta, new, size = np.empty(n, np.int32), np.empty(n, np.int32), 1
    delta[0], dist[source] = source, 0
    while size:
        found = 0
        for i in range(size):
            queued[delta[i]] = False
        for i in range(size):
            v = delta[i]
            for j in range(offset[v], offset[v + 1]):
                u, d = target[j], dist[v] + cost[j]
                if d < dist[u]:
                    dist[u] = d
                    if not queued[u]:
                        queued[u] = True
                        new[found] = u
                        found += 1
        delta, new, size = new, delta, found
    return dist


@njit(cache=True)
def _components(src: Ints, dst: Ints, n: int) -> Ints:
    """Smallest label over both directions, in place, until nothing changes (no pointer jumping, no union-find)."""
    label, changed = np.arange(n).astype(np.int32), True
    while changed:
        changed = False
        for i in range(len(src)):
            a, b = label[src[i]], label[dst[i]]
            if a < b:
                label[dst[i]] = a
                changed = True
            elif b < a:
                label[src[i]] = b
                changed = True
    return label


@njit(cache=True)
def _pagerank(offset: Longs, source: Ints, degree: Longs, rounds: int) -> NDArray[np.float64]:
    """Pull over incoming edges."""
    n = len(offset) - 1
    rank, share = np.ones(n), np.zeros(n)
    for _ in range(rounds):
        for v in range(n):
            share[v] = DAMPING * rank[v] / degree[v] if degree[v] else 0.0
        for v in range(n):
            total = 1 - DAMPING
            for j in range(offset[v], offset[v + 1]):
                total += share[source[j]]
            rank[v] = total
    return rank


@njit(cache=True)
def _closure_size(offset: Longs, target: Ints) -> int:
    """Count pairs, a block of sources at a time: a vertex holds a bitmap of the block's sources that reach it."""
    n, pairs = len(offset) - 1, 0
    for first in range(0, n, 64 * BLOCK_WORDS):
        reached, fresh = np.zeros((n, BLOCK_WORDS), np.uint64), np.zeros((n, BLOCK_WORDS), np.uint64)
        waiting, queue, head, tail = np.zeros(n, np.bool_), np.empty(n + 1, np.int32), 0, 0
        for v in range(first, min(n, first + 64 * BLOCK_WORDS)):
            bit = np.uint64(1) << np.uint64((v - first) & 63)
            fresh[v, (v - first) >> 6] |= bit  # the path of no edge: starts the search, is not a pair
            queue[tail] = v
            tail += 1
            waiting[v] = True
        while head != tail:
            v = queue[head]
            head = head + 1 if head < n else 0
            waiting[v] = False
            moving = fresh[v].copy()
            fresh[v] = 0
            for j in range(offset[v], offset[v + 1]):
                u, some = target[j], np.uint64(0)
                for k in range(BLOCK_WORDS):
                    new = moving[k] & ~reached[u, k]
                    reached[u, k] |= new
                    fresh[u, k] |= new
                    some |= new
                if some and not waiting[u]:
                    waiting[u] = True
                    queue[tail] = u
                    tail = tail + 1 if tail < n else 0
        for v in range(n):
            for k in range(BLOCK_WORDS):
                word = reached[v, k]
                while word:
                    word &= word - np.uint64(1)
                    pairs += 1
    return pairs


@njit(cache=True)
def _closure_size_sparse(offset: Longs, target: Ints) -> int:
    """Count pairs, one source at a time: what the current source has reached carries its stamp."""
    n, pairs = len(offset) - 1, 0
    stamp, queue = np.full(n, -1, np.int32), np.empty(n + 1, np.int32)
    for source in range(n):
        queue[0], head, tail = source, 0, 1
        while head != tail:
            v = queue[head]
            head += 1
            for j in range(offset[v], offset[v + 1]):
                u = target[j]
                if stamp[u] != source:
                    stamp[u] = source
                    queue[tail] = u
                    tail += 1
        pairs += tail - 1
    return pairs


class Numba:
    """No state: every run reads the files again."""

    version = f"Numba {numba.__version__}"

    def answer(self, query: str, graph: Graph) -> Answer:
        """Read, build the index, then run the kernel; the loop is the latter alone."""
        vertices, src, dst, weight, sources = read_dense(graph)
        n = len(vertices)
        if query == "components":
            start = perf_counter()
            label = _components(src, dst, n)
            loop = perf_counter() - start
            return Answer((n, int(vertices[label].sum())), loop, {})
        if query == "pagerank":
            offset, source, _ = _csr(dst, src, weight, n)
            degree = np.bincount(src, minlength=n)
            start = perf_counter()
            rank = _pagerank(offset, source, degree, PAGERANK_ROUNDS)
            loop = perf_counter() - start
            return Answer((n, float(rank.sum()), float((rank * rank).sum())), loop, {})
        offset, target, cost = _csr(src, dst, weight, n)
        start = perf_counter()
        if query == "closure":
            count = _closure_size if n <= LARGEST_DENSE else _closure_size_sparse
            return Answer((int(count(offset, target)),), perf_counter() - start, {})
        dist = np.stack([_shortest_paths(offset, target, cost, s) for s in sources[: SOURCES[query]]])
        loop = perf_counter() - start
        reached = dist != _UNREACHED
        return Answer((int(reached.sum()), int(dist[reached].sum())), loop, {})


def start(_name: str, _memory: str) -> Numba:
    """Nothing to set up."""
    return Numba()
