"""Kernels of ``benchmarks.differences``: PageRank on one thread in four orders of evaluation.

All take the edges by source (``offset``, ``target``) and by target (``into``, ``source``), the constant part ``base``
and the first ranks. They return ranks, rounds or passes, edges visited, and the mean part of the rows that changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numba import njit
from numpy.typing import NDArray

from benchmarks.queries import DAMPING

if TYPE_CHECKING:
    from benchmarks.generators import Longs

Ints = NDArray[np.int32]
Doubles = NDArray[np.float64]
Outcome: TypeAlias = tuple[Doubles, int, int, float]
"""Ranks, rounds or passes, edges visited, changed rows as a part of all rows of all rounds."""


@njit(cache=True)
def by_vertex(vertices: Longs, others: Longs, n: int) -> tuple[Longs, Ints]:
    """Return (offsets, others) by a counting sort on ``vertices``."""
    offset, out = np.zeros(n + 1, np.int64), np.empty(len(others), np.int32)
    for v in vertices:
        offset[v + 1] += 1
    for v in range(n):
        offset[v + 1] += offset[v]
    place = offset[:-1].copy()
    for i in range(len(vertices)):
        out[place[vertices[i]]] = others[i]
        place[vertices[i]] += 1
    return offset, out


@njit(cache=True)
def _share(offset: Longs, rank: Doubles, u: int) -> float:
    """Return what ``u`` adds to each of its targets."""
    degree = offset[u + 1] - offset[u]
    return DAMPING * rank[u] / degree if degree else 0.0


@njit(cache=True)
def recompute(offset: Longs, into: Longs, source: Ints, base: Doubles, first: Doubles, limit: int, tolerance: float) -> Outcome:  # fmt: skip # noqa: PLR0913, PLR0917, E501
    """Evaluate rounds by definition: each target adds up the shares of its sources."""
    n, edges, changed, rounds = len(base), 0, 0, 0
    old, new, share = first.copy(), np.empty(n), np.empty(n)
    while rounds < limit:
        for u in range(n):
            share[u] = _share(offset, old, u)
        difference, before = 0.0, changed
        for v in range(n):
            total = base[v]
            for p in range(into[v], into[v + 1]):
                total += share[source[p]]
            new[v] = total
            difference += abs(total - old[v])
            changed += total != old[v]
        old, new = new, old
        edges += len(source)
        rounds += 1
        if difference < tolerance or changed == before:
            break
    return old, rounds, edges, changed / (n * rounds)


@njit(cache=True)
def _first_round(offset: Longs, target: Ints, base: Doubles, ranks: Doubles, delta: Doubles, current: Ints) -> tuple[int, float]:  # fmt: skip # noqa: PLR0913, PLR0917, E501
    """Evaluate one round by definition. Return the number of changed rows, listed in ``current``, and Σ|Δ|."""
    new = base.copy()
    for u in range(len(base)):
        for p in range(offset[u], offset[u + 1]):
            new[target[p]] += _share(offset, ranks, u)
    size, difference = 0, 0.0
    for v in range(len(base)):
        delta[v], ranks[v] = new[v] - ranks[v], new[v]
        difference += abs(delta[v])
        if delta[v] != 0:
            current[size] = v
            size += 1
    return size, difference


@njit(cache=True)
def add_differences(offset: Longs, target: Ints, base: Doubles, first: Doubles, limit: int, tolerance: float) -> Outcome:  # fmt: skip # noqa: PLR0913, PLR0917, E501
    """Evaluate the first round by definition, then F' on the rows that changed (PowerLog, theorem 1)."""
    n, rounds = len(base), 1
    ranks, delta, new = first.copy(), np.zeros(n), np.zeros(n)
    current, following, queued = np.empty(n, np.int32), np.empty(n, np.int32), np.zeros(n, np.bool_)
    size, difference = _first_round(offset, target, base, ranks, delta, current)
    edges, changed = len(target), size
    while rounds < limit and size and difference >= tolerance:
        found = 0
        for i in range(size):
            u = current[i]
            share = _share(offset, delta, u)
            edges += offset[u + 1] - offset[u]
            for p in range(offset[u], offset[u + 1]):
                v = target[p]
                new[v] += share
                if not queued[v]:
                    queued[v] = True
                    following[found] = v
                    found += 1
        size, difference = 0, 0.0
        for i in range(found):
            v = following[i]
            queued[v] = False
            delta[v], new[v] = new[v], 0.0
            difference += abs(delta[v])
            if ranks[v] + delta[v] != ranks[v]:
                ranks[v] += delta[v]
                current[size] = v
                size += 1
        changed += size
        rounds += 1
    return ranks, rounds, edges, changed / (n * rounds)


@njit(cache=True)
def largest_first(offset: Longs, target: Ints, base: Doubles, first: Doubles, part: float, tolerance: float) -> Outcome:  # fmt: skip # noqa: PLR0913, PLR0917, E501
    """Push only differences above ``part`` of their mean, and read what the same pass has written (Maiter).

    With ``part`` 0 it pushes all. It ends when Σ|Δ| of what is left is below the tolerance, and adds that to the ranks.
    """
    n, pushed, passes = len(base), 0, 0
    ranks, left = first.copy(), base - first
    for u in range(n):
        for p in range(offset[u], offset[u + 1]):
            left[target[p]] += _share(offset, first, u)
    edges, difference = len(target), np.abs(left).sum()
    while difference >= tolerance:
        limit = part * difference / n
        for u in range(n):
            if abs(left[u]) <= limit:
                continue
            ranks[u] += left[u]
            share = _share(offset, left, u)
            left[u] = 0.0
            pushed += 1
            edges += offset[u + 1] - offset[u]
            for p in range(offset[u], offset[u + 1]):
                left[target[p]] += share
        passes += 1
        difference = np.abs(left).sum()
    return ranks + left, passes, edges, pushed / (n * max(1, passes))


@njit(cache=True)
def in_place(offset: Longs, into: Longs, source: Ints, base: Doubles, first: Doubles, blocks: int, owner: Ints, tolerance: float) -> Outcome:  # fmt: skip # noqa: PLR0913, PLR0917, E501
    """Recompute blocks of targets one after the other; a block reads the new ranks of earlier blocks of its rank.

    Shares of other ranks are those of the pass before. When a pass changes less than the tolerance, a round by
    definition follows: it ends the run if it changes less, too.
    """
    n, edges, passes = len(base), 0, 0
    ranks, new = first.copy(), np.empty(n)
    share, sent = np.empty(n), np.empty(n)
    for u in range(n):
        share[u] = _share(offset, ranks, u)
    is_alone, is_strict = owner.max() == 0, False
    while True:
        sent[:] = share
        difference = 0.0
        count = 1 if is_strict else blocks
        for b in range(count):
            low, high = b * n // count, (b + 1) * n // count
            for v in range(low, high):
                total = base[v]
                for p in range(into[v], into[v + 1]):
                    u = source[p]
                    total += share[u] if is_alone or owner[u] == owner[v] else sent[u]
                new[v] = total
                difference += abs(total - ranks[v])
            for v in range(low, high):
                ranks[v] = new[v]
                share[v] = _share(offset, ranks, v)
        edges += len(source)
        passes += 1
        if is_strict and difference < tolerance:
            return ranks, passes, edges, np.nan
        is_strict = difference < tolerance
