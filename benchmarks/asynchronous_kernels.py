"""Compiled loops of ``benchmarks.asynchrony``: near and far rows of one rank, and lists of what others have to hear.

``flags`` has three rows: the vertex is near, is far, waits to be sent. ``bounds`` are the number of near rows, of far
rows, the limit between them, and by how much it moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from benchmarks.generators import Longs

    Ints = NDArray[np.int32]
    Flags = NDArray[np.uint8]
INFINITE = np.int64(1 << 60)
_NEAR, _FAR, _SENT = 0, 1, 2


@njit(cache=True)
def _put(v: int, dist: Longs, near: Ints, far: Ints, flags: Flags, bounds: Longs) -> None:  # noqa: PLR0913, PLR0917
    """List a vertex that has a new distance as near or far."""
    if dist[v] < bounds[2]:
        if not flags[_NEAR, v]:
            flags[_NEAR, v] = 1
            near[bounds[0]] = v
            bounds[0] += 1
    elif not flags[_FAR, v]:
        flags[_FAR, v] = 1
        far[bounds[1]] = v
        bounds[1] += 1


@njit(cache=True)
def relax(dist: Longs, offset: Longs, target: Ints, weight: Longs, owner: Ints, rank: int, near: Ints, far: Ints, flags: Flags, bounds: Longs, buffers: Ints, lengths: Longs, most: int) -> int:  # fmt: skip # noqa: PLR0913, PLR0917, E501
    """Apply up to ``most`` near vertices. Return the edges visited."""
    edges = 0
    done = 0
    while done < bounds[0] and done < most:
        u = near[done]
        flags[_NEAR, u] = 0
        done += 1
        edges += offset[u + 1] - offset[u]
        for p in range(offset[u], offset[u + 1]):
            v = target[p]
            if dist[u] + weight[p] >= dist[v]:
                continue
            dist[v] = dist[u] + weight[p]
            peer = owner[v]
            if peer == rank:
                _put(v, dist, near, far, flags, bounds)
            elif not flags[_SENT, v]:
                flags[_SENT, v] = 1
                buffers[peer, lengths[peer]] = v
                lengths[peer] += 1
    bounds[0] -= done
    for i in range(bounds[0]):
        near[i] = near[done + i]
    return edges


@njit(cache=True)
def next_limit(dist: Longs, near: Ints, far: Ints, flags: Flags, bounds: Longs) -> None:
    """Move the limit beyond the best far vertex, and make those within it near."""
    best = INFINITE
    for i in range(bounds[1]):
        best = min(best, dist[far[i]])
    bounds[2] = max(bounds[2], best + bounds[3])
    count = bounds[1]
    bounds[1] = 0
    for i in range(count):
        v = far[i]
        flags[_FAR, v] = 0
        _put(v, dist, near, far, flags, bounds)


@njit(cache=True)
def receive(message: Longs, dist: Longs, near: Ints, far: Ints, flags: Flags, bounds: Longs) -> None:  # noqa: PLR0913, PLR0917
    """Apply a message: pairs of a vertex and its distance."""
    for i in range(0, len(message), 2):
        v = message[i]
        if message[i + 1] < dist[v]:
            dist[v] = message[i + 1]
            _put(v, dist, near, far, flags, bounds)


@njit(cache=True)
def pack(buffer: Ints, count: int, dist: Longs, flags: Flags) -> Longs:
    """Return the message with the first ``count`` vertices of a buffer."""
    message = np.empty(2 * count, np.int64)
    for i in range(count):
        v = buffer[i]
        flags[_SENT, v] = 0
        message[2 * i], message[2 * i + 1] = v, dist[v]
    return message
