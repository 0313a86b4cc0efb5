"""Keys of one or several words to dense ids: open addressing, or a plain array where one-word keys lie near each other.

The tables are plain arrays, so that generated code can look keys up as well: ``slots`` (a power of two; -1 is empty) or,
direct, ids by ``word - low``; ``keys[c, id]`` the words; ``meta`` the size, and the ``low`` of a direct table.
"""

from __future__ import annotations

import numpy as np
from numba import njit

SIZE, DIRECT, LOW = 0, 1, 2
_MIX = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def _slot1(word, mask):
    h = np.uint64(word) * _MIX
    return np.int64((h ^ (h >> np.uint64(32))) & mask)


@njit(cache=True, nogil=True)
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
        if found < 0 or keys[0, found] == word:
            return found
        at = np.int64((np.uint64(at) + np.uint64(1)) & mask)


@njit(cache=True, nogil=True)
def _slot(row, at, words, mask):
    h = np.uint64(0)
    for c in range(words):
        h = (h ^ np.uint64(row[at + c])) * _MIX
        h = h ^ (h >> np.uint64(29))
    return np.int64((h ^ (h >> np.uint64(32))) & mask)


@njit(cache=True, nogil=True)
def find(slots, keys, meta, row, at):
    """The id of the key whose words are ``row[at:]``, or -1."""
    words = keys.shape[0]
    if words == 1:
        return find1(slots, keys, meta, row[at])
    mask = np.uint64(len(slots) - 1)
    slot = _slot(row, at, words, mask)
    while True:
        found = slots[slot]
        if found < 0:
            return found
        same = True
        for c in range(words):
            if keys[c, found] != row[at + c]:
                same = False
                break
        if same:
            return found
        slot = np.int64((np.uint64(slot) + np.uint64(1)) & mask)


@njit(cache=True, nogil=True)
def add(slots, keys, meta, row, at):
    """The id of a key, which is given one if it is new. There must be room, and direct tables must span it."""
    words = keys.shape[0]
    size = meta[SIZE]
    if words == 1 and meta[DIRECT]:
        slot = row[at] - meta[LOW]
        if slots[slot] >= 0:
            return np.int64(slots[slot])
    else:
        mask = np.uint64(len(slots) - 1)
        slot = _slot1(row[at], mask) if words == 1 else _slot(row, at, words, mask)
        while True:
            found = slots[slot]
            if found < 0:
                break
            same = True
            for c in range(words):
                if keys[c, found] != row[at + c]:
                    same = False
                    break
            if same:
                return np.int64(found)
            slot = np.int64((np.uint64(slot) + np.uint64(1)) & mask)
    slots[slot] = size
    for c in range(words):
        keys[c, size] = row[at + c]
    meta[SIZE] = size + 1
    return size


@njit(cache=True, nogil=True)
def add_rows(slots, keys, meta, rows, at, stride, count, ids) -> None:
    """:func:`add` for each of ``count`` rows that lie flat, ``stride`` words apart."""
    for i in range(count):
        ids[i] = add(slots, keys, meta, rows, at + i * stride)


@njit(cache=True, nogil=True)
def find_rows(slots, keys, meta, rows, at, stride, count, ids) -> None:
    """:func:`find` for each of ``count`` rows."""
    for i in range(count):
        ids[i] = find(slots, keys, meta, rows, at + i * stride)


@njit(cache=True, nogil=True)
def refill(slots, keys, meta) -> None:
    """All keys into a new table: empty slots, of another size or kind than before."""
    words = keys.shape[0]
    mask = np.uint64(len(slots) - 1)
    row = np.empty(max(words, 1), np.int64)
    for i in range(meta[SIZE]):
        for c in range(words):
            row[c] = keys[c, i]
        if words == 1 and meta[DIRECT]:
            slots[row[0] - meta[LOW]] = i
            continue
        slot = _slot1(row[0], mask) if words == 1 else _slot(row, 0, words, mask)
        while slots[slot] >= 0:
            slot = np.int64((np.uint64(slot) + np.uint64(1)) & mask)
        slots[slot] = i
