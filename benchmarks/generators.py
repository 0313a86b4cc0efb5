"""Edge arrays for the benchmarks: R-MAT, grids, tree and uniform random graphs, vectorised and with fixed seeds.

Every function returns three int64 arrays (src, dst, weight); `datasets` gives them names and writes them to Parquet.
Weights are whole numbers from 1 to 100, uniform, so that sums of distances compare exactly between systems.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Longs: TypeAlias = NDArray[np.int64]
Integers: TypeAlias = NDArray[np.integer[Any]]
Edges: TypeAlias = tuple[Longs, Longs, Longs]

SEED = 6
LARGEST_WEIGHT = 100
# Graph500's probabilities of the four quadrants of the adjacency matrix, as sums: a | a + b | a + b + c
_A, _AB, _ABC = 0.57, 0.76, 0.95


def rmat(scale: int, edge_factor: int = 16, seed: int = SEED) -> Edges:
    """R-MAT, Graph500's parameters (a=.57, b=c=.19, d=.05), `edge_factor << scale` draws, `1 << scale` vertices.

    As Graph500 has it, vertex ids are permuted and the edge list is shuffled, so neither hubs nor neighbours stand
    together. Unlike Graph500, self loops and repeated edges are dropped (9 % of the draws at scale 16, 4 % at 20),
    because a repeated edge would mean different things to a set, a min and a sum. Directed.

    >>> src, dst, weight = rmat(10)
    >>> len(src) < 16 << 10, int(dst.max()) < 1 << 10
    (True, True)
    """
    rng = np.random.default_rng(seed)
    draws = edge_factor << scale
    src, dst = np.zeros(draws, np.int32), np.zeros(draws, np.int32)  # scale 24 has 268 M edges: few bytes for each
    for _ in range(scale):  # one bit of both ids: the quadrant of the adjacency matrix
        quadrant = rng.random(draws, dtype=np.float32)
        src <<= 1
        src += quadrant >= _AB
        dst <<= 1
        dst += ((quadrant >= _A) & (quadrant < _AB)) | (quadrant >= _ABC)
    names = rng.permutation(1 << scale).astype(np.int32)
    edges = _distinct(names[src], names[dst], 1 << scale)
    del src, dst, quadrant
    edges = edges[rng.permutation(len(edges))]
    return edges >> scale, edges & ((1 << scale) - 1), _weights(rng, len(edges))


def grid(side: int, seed: int = SEED) -> Edges:
    """Vertices in `side` rows and columns, each joined with its four neighbours, both ways; id = row * side + column.

    >>> [len(column) for column in grid(3)]
    [24, 24, 24]
    """
    rng = np.random.default_rng(seed)
    vertex = np.arange(side * side, dtype=np.int64).reshape(side, side)
    right, down = (vertex[:, :-1].ravel(), vertex[:, 1:].ravel()), (vertex[:-1].ravel(), vertex[1:].ravel())
    src = np.concatenate([right[0], right[1], down[0], down[1]])
    dst = np.concatenate([right[1], right[0], down[1], down[0]])
    return src, dst, _weights(rng, len(src))


def directed_grid(side: int, seed: int = SEED) -> Edges:
    """As `grid`, but each vertex is joined with its right and its lower neighbour only; no cycles.

    >>> [len(column) for column in directed_grid(3)]
    [12, 12, 12]
    """
    rng = np.random.default_rng(seed)
    vertex = np.arange(side * side, dtype=np.int64).reshape(side, side)
    src = np.concatenate([vertex[:, :-1].ravel(), vertex[:-1].ravel()])
    dst = np.concatenate([vertex[:, 1:].ravel(), vertex[1:].ravel()])
    return src, dst, _weights(rng, len(src))


def tree(levels: int, seed: int = SEED) -> Edges:
    """Grow a random tree with edges from parent to child; 0 is the root, an inner vertex has two to four children.

    >>> src, dst, _ = tree(3)
    >>> bool(np.all(src < dst)), len(set(dst.tolist())) == len(dst)
    (True, True)
    """
    rng = np.random.default_rng(seed)
    level, next_vertex, parents = np.zeros(1, np.int64), 1, []
    for _ in range(levels):
        parents.append(np.repeat(level, rng.integers(2, 5, len(level))))
        level = np.arange(next_vertex, next_vertex + len(parents[-1]), dtype=np.int64)
        next_vertex += len(level)
    src = np.concatenate(parents)
    return src, np.arange(1, next_vertex, dtype=np.int64), _weights(rng, len(src))


def uniform(vertices: int, draws: int, seed: int = SEED) -> Edges:
    """`draws` edges between vertices chosen uniformly; self loops and repeated edges are dropped. Directed.

    >>> src, dst, weight = uniform(100, 120)
    >>> len(src) <= 120, bool(np.all(src != dst)), 1 <= int(weight.min()) <= int(weight.max()) <= 100
    (True, True, True)
    """
    rng = np.random.default_rng(seed)
    edges = _distinct(rng.integers(0, vertices, draws), rng.integers(0, vertices, draws), vertices)
    src, dst = edges // vertices, edges % vertices
    order = rng.permutation(len(src))
    return src[order], dst[order], _weights(rng, len(src))


def _distinct(src: Integers, dst: Integers, vertices: int) -> Longs:
    """Return the distinct edges without self loops, sorted, each as `src * vertices + dst`."""
    edges: Longs = src.astype(np.int64)
    edges *= vertices
    edges += dst
    edges = edges[src != dst]
    edges.sort()
    is_first = np.ones(len(edges), np.bool_)
    np.not_equal(edges[1:], edges[:-1], out=is_first[1:])
    return edges[is_first]


def _weights(rng: np.random.Generator, count: int) -> Longs:
    return rng.integers(1, LARGEST_WEIGHT + 1, count)
