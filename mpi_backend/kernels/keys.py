"""Keys of one or several words to dense ids: open addressing, or a plain array where one-word keys lie near each other.

The tables are plain arrays, so that generated code can look keys up as well: ``slots`` (a power of two; -1 is empty)
or, direct, ids by ``word - low``; ``keys[id, c]`` the words; ``meta`` the size, and the ``low`` of a direct table.

Tables are larger than caches, and a processor waits for one access after the other only where one depends on the
other: so rows are looked up in batches, a step of all of them at a time.
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit

SIZE, DIRECT, LOW = 0, 1, 2
_MIX = np.uint64(0x9E3779B97F4A7C15)
_BATCH = 128


@njit(nogil=True)
def _slot1(word, mask):
    h = np.uint64(word) * _MIX
    return (h ^ (h >> np.uint64(32))) & mask


@njit(nogil=True)
def _slot(row, at, words, mask):
    h = np.uint64(0)
    for c in range(words):
        h = (h ^ np.uint64(row[at + c])) * _MIX
        h ^= h >> np.uint64(29)
    return (h ^ (h >> np.uint64(32))) & mask


@njit(nogil=True)
def find1(slots, keys, meta, word):
    """The id of a one-word key, or -1."""
    if meta[DIRECT]:
        near = word - meta[LOW]
        if near < 0 or near >= len(slots):
            return -1
        return slots[near]
    mask = np.uint64(len(slots) - 1)
    at = _slot1(word, mask)
    while True:
        found = slots[at]
        if found < 0 or keys[found, 0] == word:
            return found
        at = (at + np.uint64(1)) & mask


@njit(nogil=True)
def _walk(slots, keys, row, at, words, slot, mask):
    """The slot of a key, or the empty one where it belongs, from ``slot`` on."""
    while True:
        found = slots[slot]
        if found < 0:
            return slot
        same = True
        for c in range(words):
            if keys[found, c] != row[at + c]:
                same = False
                break
        if same:
            return slot
        slot = (slot + np.uint64(1)) & mask


@njit(nogil=True)
def find(slots, keys, meta, row, at):
    """The id of the key whose words are ``row[at:]``, or -1."""
    words = keys.shape[1]
    if words == 1:
        return find1(slots, keys, meta, row[at])
    mask = np.uint64(len(slots) - 1)
    return slots[_walk(slots, keys, row, at, words, _slot(row, at, words, mask), mask)]


@njit(nogil=True)
def add_rows(slots, keys, meta, rows, at, stride, count, ids):
    """The id of each of ``count`` keys that lie flat, ``stride`` words apart; new ones get the next ids.

    There must be room for all of them, and a direct table must span them.
    """
    words = keys.shape[1]
    size = meta[SIZE]
    if words == 1 and meta[DIRECT]:
        for i in range(count):
            near = rows[at + i * stride] - meta[LOW]
            if slots[near] < 0:
                slots[near] = size
                keys[size, 0] = rows[at + i * stride]
                size += 1
            ids[i] = slots[near]
        meta[SIZE] = size
        return
    mask = np.uint64(len(slots) - 1)
    places = np.empty(_BATCH, np.uint64)
    known = np.empty(_BATCH, np.bool_)
    for start in range(0, count, _BATCH):
        n = min(_BATCH, count - start)
        _look(slots, keys, rows, at + start * stride, stride, n, mask, places, known, ids[start:])
        for i in range(n):
            if known[i]:
                continue
            here = at + (start + i) * stride
            slot = _walk(slots, keys, rows, here, words, places[i], mask)
            if slots[slot] < 0:
                slots[slot] = size
                for c in range(words):
                    keys[size, c] = rows[here + c]
                size += 1
            ids[start + i] = slots[slot]
    meta[SIZE] = size


@njit(nogil=True)
def find_rows(slots, keys, meta, rows, at, stride, count, ids):
    """The id of each of ``count`` keys, or -1."""
    words = keys.shape[1]
    if words == 1 and meta[DIRECT]:
        for i in range(count):
            ids[i] = find1(slots, keys, meta, rows[at + i * stride])
        return
    mask = np.uint64(len(slots) - 1)
    places = np.empty(_BATCH, np.uint64)
    known = np.empty(_BATCH, np.bool_)
    for start in range(0, count, _BATCH):
        n = min(_BATCH, count - start)
        _look(slots, keys, rows, at + start * stride, stride, n, mask, places, known, ids[start:])
        for i in range(n):
            if not known[i]:
                here = at + (start + i) * stride
                ids[start + i] = slots[_walk(slots, keys, rows, here, words, places[i], mask)]


@njit(nogil=True)
def _look(slots, keys, rows, at, stride, count, mask, places, known, ids):
    """Where each key of a batch belongs, and whether the first slot already holds it: then its id."""
    words = keys.shape[1]
    if words == 1:
        for i in range(count):
            places[i] = _slot1(rows[at + i * stride], mask)
    else:
        for i in range(count):
            places[i] = _slot(rows, at + i * stride, words, mask)
    for i in range(count):
        ids[i] = slots[places[i]]
    for i in range(count):
        found = ids[i]
        same = found >= 0
        row = max(found, 0)
        for c in range(words):
            same &= keys[row, c] == rows[at + i * stride + c]
        known[i] = same


@njit(nogil=True)
def refill(slots, keys, meta):
    """All keys into a new table: empty slots, of another size or kind than before."""
    words = keys.shape[1]
    mask = np.uint64(len(slots) - 1)
    row = np.empty(max(words, 1), np.int64)
    for i in range(meta[SIZE]):
        for c in range(words):
            row[c] = keys[i, c]
        if words == 1 and meta[DIRECT]:
            slots[row[0] - meta[LOW]] = i
            continue
        slot = _slot1(row[0], mask) if words == 1 else _slot(row, 0, words, mask)
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = i
