"""Remove duplicate rows: partition them by hash into pieces that fit into a cache, then hash each piece.

One table for all rows would miss the cache at every row; writing rows in the order of pieces does not.
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import LEAF, njit

_MIX = np.uint64(0x9E3779B97F4A7C15)
_PIECE_ROWS = 1 << 15


@njit(**LEAF)
def _hash(rows, at, stride):
    h = np.uint64(0)
    for c in range(stride):
        h = (h ^ np.uint64(rows[at + c])) * _MIX
        h ^= h >> np.uint64(29)
    return h * _MIX


@njit(nogil=True)
def distinct(rows, stride, count):  # noqa: C901 - each step needs the results of the one before
    """Return the numbers of the first row of each set of equal flat ``rows``, in no order."""
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
    next_places = ends[:-1].copy()
    sorted_rows = np.empty(count * stride, np.int64)
    sorted_numbers = np.empty(count, np.int64)
    sorted_hashes = np.empty(count, np.uint64)
    for i in range(count):
        place = next_places[np.int64(hashes[i] >> shift)]
        next_places[np.int64(hashes[i] >> shift)] += 1
        sorted_numbers[place] = i
        sorted_hashes[place] = hashes[i]
        for c in range(stride):
            sorted_rows[place * stride + c] = rows[i * stride + c]
    size = np.int64(16)
    while size < 2 * largest:
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.empty(size, np.int64)
    first = np.empty(count, np.int64)
    distinct_count = np.int64(0)
    for p in range(pieces):
        slots[:] = -1
        for i in range(ends[p], ends[p + 1]):
            slot = sorted_hashes[i] & mask
            while slots[slot] >= 0 and not _same(sorted_rows, slots[slot] * stride, i * stride, stride):
                slot = (slot + np.uint64(1)) & mask
            if slots[slot] < 0:
                slots[slot] = i
                first[distinct_count] = sorted_numbers[i]
                distinct_count += 1
    return first[:distinct_count]


@njit(**LEAF)
def _same(rows, a, b, stride):
    same = True
    for c in range(stride):
        same &= rows[a + c] == rows[b + c]
    return same
