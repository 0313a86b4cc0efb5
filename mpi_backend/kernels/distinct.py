"""Each of many rows once: cut by hash into pieces that fit into a cache, then hashed piece by piece.

One table for all rows would miss the cache at every row; writing rows in order of their piece does not.
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit

_MIX = np.uint64(0x9E3779B97F4A7C15)
_PIECE_ROWS = 1 << 15


@njit(nogil=True)
def _hash(rows, at, stride):
    h = np.uint64(0)
    for c in range(stride):
        h = (h ^ np.uint64(rows[at + c])) * _MIX
        h ^= h >> np.uint64(29)
    return h * _MIX


@njit(nogil=True)
def distinct(rows, stride, count):  # noqa: C901 - each step needs what the one before left
    """The numbers of the rows that are the first of their kind among flat ``rows``, in no order."""
    bits = np.uint64(1)
    while (count >> np.int64(bits)) > _PIECE_ROWS:
        bits += np.uint64(1)
    pieces = np.int64(1) << np.int64(bits)
    shift = np.uint64(64) - bits
    hashes = np.empty(count, np.uint64)
    ends = np.zeros(pieces + 1, np.int64)
    for i in range(count):
        hashes[i] = _hash(rows, i * stride, stride)
        ends[np.int64(hashes[i] >> shift) + 1] += 1
    largest = np.int64(0)
    for p in range(pieces):
        largest = max(largest, ends[p + 1])
        ends[p + 1] += ends[p]
    free = ends[:-1].copy()
    placed = np.empty(count * stride, np.int64)
    number = np.empty(count, np.int64)
    order = np.empty(count, np.uint64)
    for i in range(count):
        to = free[np.int64(hashes[i] >> shift)]
        free[np.int64(hashes[i] >> shift)] += 1
        number[to] = i
        order[to] = hashes[i]
        for c in range(stride):
            placed[to * stride + c] = rows[i * stride + c]
    size = np.int64(16)
    while size < 2 * largest:
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.empty(size, np.int64)
    first = np.empty(count, np.int64)
    found = np.int64(0)
    for p in range(pieces):
        slots[:] = -1
        for i in range(ends[p], ends[p + 1]):
            slot = order[i] & mask
            while slots[slot] >= 0 and not _same(placed, slots[slot] * stride, i * stride, stride):
                slot = (slot + np.uint64(1)) & mask
            if slots[slot] < 0:
                slots[slot] = i
                first[found] = number[i]
                found += 1
    return first[:found]


@njit(nogil=True)
def _same(rows, a, b, stride):
    same = True
    for c in range(stride):
        same &= rows[a + c] == rows[b + c]
    return same
