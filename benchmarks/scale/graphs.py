"""Graphs by name: ``rmat-16``, ``ring-1000``, ``up-10``, ``bowtie-100x10``, ``out-star-1000``, ``ring-1000-skew-G-40``.

``up`` and ``down`` are binary trees of a depth, with edges to the parent or to the children. A bowtie's two trees of
paths meet in one path (paper 001, figure 7). Skew (paper 002, figure 8) adds edges for a percentage of the vertices:
``G`` from one vertex, ``T`` into one vertex, ``GT`` one such hub each.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property
from typing import TYPE_CHECKING

import numpy as np

from benchmarks import generators
from benchmarks.balance import stars

if TYPE_CHECKING:
    from benchmarks.generators import Edges, Longs

_SKEW = re.compile(r"(.*)-skew-(G|T|GT)-(\d+)")
_STAR = re.compile(r"(out-star|in-star|both)-(\d+)")


@dataclass(frozen=True)
class Graph:
    """Directed edges with weights, and the vertex from which paths begin."""

    name: str
    src: Longs
    dst: Longs
    weight: Longs
    start: int

    @cached_property
    def vertices(self) -> Longs:
        """Return the vertices that have edges, sorted."""
        return np.flatnonzero(np.bincount(self.src, minlength=self.size) + np.bincount(self.dst, minlength=self.size))

    @property
    def size(self) -> int:
        """Return a number that is larger than all vertices."""
        return int(max(self.src.max(), self.dst.max())) + 1


@cache
def make(name: str) -> Graph:
    """Return the graph of a name. Paths begin at the vertex with most edges out of it, on stars at their first edge.

    >>> graph = make("down-2")
    >>> graph.src.tolist(), graph.dst.tolist(), graph.start
    ([0, 0, 1, 1, 2, 2], [1, 2, 3, 4, 5, 6], 0)
    >>> len(make("ring-10-skew-GT-40").src)
    17
    """
    star = _STAR.fullmatch(name)
    if star:
        src, dst = stars(int(star[2]))[star[1]]
        return Graph(name, src, dst, _weights(len(src)), int(src[0]))
    src, dst, weight = _edges(name)
    return Graph(name, src, dst, weight, int(np.bincount(src).argmax()))


def _edges(name: str) -> Edges:
    skew = _SKEW.fullmatch(name)
    if skew:
        return _skewed(*_edges(skew[1]), skew[2], int(skew[3]))
    kind, _, size = name.rpartition("-")
    if kind == "rmat":
        return generators.rmat(int(size))
    if kind == "grid":
        return generators.grid(int(size))
    src, dst = _regular(kind, size)
    return src, dst, _weights(len(src))


def _regular(kind: str, size: str) -> tuple[Longs, Longs]:
    if kind == "bowtie":
        width, length = map(int, size.split("x"))
        path = width + np.arange(length)
        src = np.concatenate([np.arange(width), path[:-1], np.full(width, path[-1])])
        return src, np.concatenate([np.full(width, path[0]), path[1:], path[-1] + 1 + np.arange(width)])
    n = int(size)
    if kind in ("up", "down"):
        child = np.arange(1, (2 << n) - 1)
        parent = (child - 1) // 2
        return (child, parent) if kind == "up" else (parent, child)
    if kind in ("ring", "string"):
        src = np.arange(n if kind == "ring" else n - 1)
        return src, (src + 1) % n
    raise ValueError(f"no graph is called {kind}-{size}")


def _skewed(src: Longs, dst: Longs, weight: Longs, where: str, percent: int) -> Edges:
    """Add edges for ``percent`` of the vertices: from vertex 0 (G), into the vertex in the middle (T)."""
    size = int(max(src.max(), dst.max())) + 1
    ends = np.random.default_rng(0).choice(np.arange(1, size), size * percent // 100, replace=False)
    hub = np.full(len(ends), size // 2)
    more = [(np.zeros_like(ends), ends)] if "G" in where else []
    more += [(ends, hub)] if "T" in where else []
    src, dst = (np.concatenate([old, *(m[i] for m in more)]) for i, old in enumerate((src, dst)))
    is_kept = src != dst
    pairs = np.unique(src[is_kept] * size + dst[is_kept])
    return pairs // size, pairs % size, _weights(len(pairs)) if len(pairs) != len(weight) else weight


def _weights(count: int) -> Longs:
    return np.random.default_rng(1).integers(1, 100, count)
