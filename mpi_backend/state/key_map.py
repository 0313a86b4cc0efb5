"""Number the keys of a relation or an index in the order of insertion: the Python side of ``kernels.keys``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mpi_backend.kernels import keys as kernel

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mpi_backend.state.types import Words

Ids = NDArray[np.int32]
_BATCH = 1 << 16
_MIN_CAPACITY = 16
_MAX_SLOTS_PER_KEY = 4
"""A direct table has at most this many slots for each key."""


class KeyMap:
    """The dense ids of keys of ``words`` words. All keys of no words are the same key.

    >>> ids = KeyMap(1)
    >>> ids.add(np.array([7, 9, 7])).tolist(), ids.find(np.array([9, 8])).tolist()
    ([0, 1, 0], [1, -1])
    """

    def __init__(self, words: int) -> None:
        self.words = words
        self.slots = np.full(2 * _MIN_CAPACITY, -1, np.int32)
        self.keys = np.zeros((_MIN_CAPACITY, words), np.int64)
        self.meta = np.zeros(3, np.int64)

    def __len__(self) -> int:
        return int(self.meta[kernel.SIZE])

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        return self.slots.nbytes + self.keys.nbytes

    def expect(self, low: int, high: int, count: int) -> None:
        """Prepare for ``count`` one-word keys from ``low`` to ``high``. Use a direct table if they are dense."""
        span = high - low + 1
        max_slots = min(_MAX_SLOTS_PER_KEY * count + _MIN_CAPACITY, (1 << 31) - 1)
        if self.words == 1 and not len(self) and 0 < span <= max_slots:
            self.slots = np.full(span, -1, np.int32)
            self.meta[kernel.DIRECT] = 1
            self.meta[kernel.LOW] = low

    def expect_all(self, columns: Iterable[Words]) -> None:
        """Prepare for the words of these columns."""
        words = [c for c in columns if len(c)]
        if words:
            low, high = min(int(w.min()) for w in words), max(int(w.max()) for w in words)
            self.expect(low, high, sum(len(w) for w in words))

    def reserve(self, more: int) -> None:
        """Make room for ``more`` keys."""
        needed = len(self) + more
        if needed > len(self.keys):
            grown = np.zeros((max(needed, 2 * len(self.keys)), self.words), np.int64)
            grown[: len(self)] = self.keys[: len(self)]
            self.keys = grown
        if not self.meta[kernel.DIRECT] and 2 * needed > len(self.slots):
            self.slots = np.full(1 << (4 * needed - 1).bit_length(), -1, np.int32)
            kernel.refill(self.slots, self.keys, self.meta)

    def cover(self, rows: Words, at: int = 0, stride: int = 1) -> None:
        """Replace a direct table by a hash table if one of these keys is outside its range."""
        if self.meta[kernel.DIRECT]:
            keys = rows[at::stride]
            low = int(self.meta[kernel.LOW])
            if len(keys) and (keys.min() < low or keys.max() >= low + len(self.slots)):
                self.meta[kernel.DIRECT] = 0
                self.slots = np.full(1 << (4 * max(len(self), _MIN_CAPACITY) - 1).bit_length(), -1, np.int32)
                kernel.refill(self.slots, self.keys, self.meta)

    def add(self, rows: Words, at: int = 0, stride: int | None = None, count: int | None = None) -> Ids:
        """Return the ids of flat keys: key i begins at word ``at + i * stride``. New keys get the next ids."""
        step = self.words if stride is None else stride
        n = (len(rows) // step if step else 0) if count is None else count
        ids = np.zeros(n, np.int32)
        if not self.words:
            self.meta[kernel.SIZE] = max(len(self), min(n, 1))
            return ids
        if n:
            self.cover(rows[at : at + (n - 1) * step + 1], 0, step)
        for start in range(0, n, _BATCH):
            part = ids[start : start + _BATCH]
            self.reserve(len(part))
            kernel.add_rows(self.slots, self.keys, self.meta, rows, at + start * step, step, len(part), part)
        return ids

    def clear(self) -> None:
        """Remove all keys, keep the room for them."""
        self.slots[:] = -1
        self.meta[kernel.SIZE] = 0

    def reorder(self, order: Words) -> Ids:
        """Renumber the keys: ``order[i]`` becomes i. Return the new ids by old id."""
        places = np.full(len(order) + 1, -1, np.int32)
        places[order] = np.arange(len(order), dtype=np.int32)
        self.keys[: len(order)] = self.keys[order]
        self.slots = places[self.slots]  # -1, an empty slot, reads the last place, which is -1
        return places[:-1]

    def find(self, rows: Words, at: int = 0, stride: int | None = None, count: int | None = None) -> Ids:
        """Return the ids of keys; -1 for a missing key."""
        step = self.words if stride is None else stride
        n = (len(rows) // step if step else 0) if count is None else count
        ids = np.empty(n, np.int32)
        if not self.words:
            ids[:] = 0 if len(self) else -1
            return ids
        kernel.find_rows(self.slots, self.keys, self.meta, rows, at, step, n, ids)
        return ids
