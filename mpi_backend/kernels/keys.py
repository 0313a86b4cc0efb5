"""Map keys of one or more words to dense ids: by open addressing, or by a direct array for dense one-word keys.

Tables are plain arrays, so that generated code can look up keys too. ``slots`` (a power of two; -1 is empty) has ids
by hash or, in a direct table, by ``word - low``. ``keys[id, c]`` are the words; ``meta`` has the size and ``low``.

Tables are larger than caches, and a processor overlaps accesses that do not depend on each other. So rows are looked
up in batches, one step for all rows of a batch at a time.
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import LEAF, njit

SIZE, DIRECT, LOW = 0, 1, 2
_MIX = np.uint64(0x9E3779B97F4A7C15)
_BATCH = 128


@njit(nogil=True)
def _slot1(word, mask):
    h = np.uint64(word) * _MIX
    return (h ^ (h >> np.uint64(32))) & mask


@njit(**LEAF)
def _slot(row, at, words, mask):
    h = np.uint64(0)
    for c in range(words):
        h = (h ^ np.uint64(row[at + c])) * _MIX
        h ^= h >> np.uint64(29)
    return (h ^ (h >> np.uint64(32))) & mask


@njit(**LEAF)
def find1(slots, keys, meta, word):
    """Return the id of a one-word key, or -1."""
    if meta[DIRECT]:
        offset = word - meta[LOW]
        if offset < 0 or offset >= len(slots):
            return -1
        return slots[offset]
    mask = np.uint64(len(slots) - 1)
    slot = _slot1(word, mask)
    while True:
        id_ = slots[slot]
        if id_ < 0 or keys[id_, 0] == word:
            return id_
        slot = (slot + np.uint64(1)) & mask


@njit(**LEAF)
def _find_slot(slots, keys, row, at, words, slot, mask):
    """Return the slot of a key, or the empty slot where it belongs, from ``slot`` on."""
    while True:
        id_ = slots[slot]
        if id_ < 0:
            return slot
        same = True
        for c in range(words):
            if keys[id_, c] != row[at + c]:
                same = False
                break
        if same:
            return slot
        slot = (slot + np.uint64(1)) & mask


@njit(**LEAF)
def find(slots, keys, meta, row, at):
    """Return the id of the key whose words begin at ``row[at]``, or -1."""
    words = keys.shape[1]
    if words == 1:
        return find1(slots, keys, meta, row[at])
    mask = np.uint64(len(slots) - 1)
    return slots[_find_slot(slots, keys, row, at, words, _slot(row, at, words, mask), mask)]


@njit(nogil=True)
def add_rows(slots, keys, meta, rows, at, stride, count, ids):
    """Write the ids of ``count`` flat keys, ``stride`` words apart, to ``ids``. New keys get the next ids.

    The tables need room for all of them, and the range of a direct table has to include them.
    """
    words = keys.shape[1]
    size = meta[SIZE]
    if words == 1 and meta[DIRECT]:
        for i in range(count):
            offset = rows[at + i * stride] - meta[LOW]
            if slots[offset] < 0:
                slots[offset] = size
                keys[size, 0] = rows[at + i * stride]
                size += 1
            ids[i] = slots[offset]
        meta[SIZE] = size
        return
    mask = np.uint64(len(slots) - 1)
    places = np.empty(_BATCH, np.uint64)
    is_hit = np.empty(_BATCH, np.bool_)
    for start in range(0, count, _BATCH):
        n = min(_BATCH, count - start)
        _probe_batch(slots, keys, rows, at + start * stride, stride, n, mask, places, is_hit, ids[start:])
        for i in range(n):
            if is_hit[i]:
                continue
            key_at = at + (start + i) * stride
            slot = _find_slot(slots, keys, rows, key_at, words, places[i], mask)
            if slots[slot] < 0:
                slots[slot] = size
                for c in range(words):
                    keys[size, c] = rows[key_at + c]
                size += 1
            ids[start + i] = slots[slot]
    meta[SIZE] = size


@njit(nogil=True)
def find_rows(slots, keys, meta, rows, at, stride, count, ids):
    """Write the ids of ``count`` flat keys to ``ids``; -1 for a missing key."""
    words = keys.shape[1]
    if words == 1 and meta[DIRECT]:
        for i in range(count):
            ids[i] = find1(slots, keys, meta, rows[at + i * stride])
        return
    mask = np.uint64(len(slots) - 1)
    places = np.empty(_BATCH, np.uint64)
    is_hit = np.empty(_BATCH, np.bool_)
    for start in range(0, count, _BATCH):
        n = min(_BATCH, count - start)
        _probe_batch(slots, keys, rows, at + start * stride, stride, n, mask, places, is_hit, ids[start:])
        for i in range(n):
            if not is_hit[i]:
                key_at = at + (start + i) * stride
                ids[start + i] = slots[_find_slot(slots, keys, rows, key_at, words, places[i], mask)]


@njit(nogil=True)
def _probe_batch(slots, keys, rows, at, stride, count, mask, places, is_hit, ids):
    """Write the first slot of each key of a batch, the id in it, and whether that is the key's."""
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
        id_ = ids[i]
        same = id_ >= 0
        key_row = max(id_, 0)
        for c in range(words):
            same &= keys[key_row, c] == rows[at + i * stride + c]
        is_hit[i] = same


@njit(nogil=True)
def refill(slots, keys, meta):
    """Insert all keys into new empty slots, of another size or kind."""
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
