"""What rows of a witness relation add to the counts and sums that follow it."""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit
from mpi_backend.kernels.flags import PRESENT, QUEUED

COUNT, WHOLE, FRACTION, COPY = 0, 1, 2, 3
_BOTH = np.uint8(QUEUED | PRESENT)


@njit(nogil=True)
def follow(  # noqa: C901 - one pass over all columns
    rows, row_of, codes, added, nulls, v, k, to_v, to_k, to_f, to_d, to_n, to_p, origin
):
    """``codes`` has (column, column of the source or -1, kind, limit of a decimal) for each column that follows.

    ``nulls`` is not 0 where a witness has a null: it counts nothing. Returns whether a sum overflowed.
    """
    failed = False
    to_double = to_v.view(np.float64)
    for i in range(len(rows)):
        row = rows[i]
        at = row_of[row]
        changed = (to_f[at] & PRESENT) == 0
        for c in range(codes.shape[0]):
            column, theirs, kind, most = codes[c, 0], codes[c, 1], codes[c, 2], codes[c, 3]
            if kind == COPY:
                changed = True
                to_v[column, at] = v[theirs, row]
                if to_k.shape[0] > 0:
                    to_k[column, at] = k[theirs, row] if k.shape[0] > 0 else np.uint8(1)
                continue
            if to_k.shape[0] > 0:
                to_k[column, at] = np.uint8(1)
            now = np.int64(0)
            if nulls[row] == 0:
                now = _amount(v, k, theirs, row, kind)
            before = added[c, row]
            if now == before:
                continue
            if kind == FRACTION:
                step = _double(now) - _double(before) if before != 0 else _double(now)
                to_double[column, at] += step
            else:
                # All of it is positive. Signed sums that go around are none for LLVM.
                total = np.int64(np.uint64(to_v[column, at]) + np.uint64(now) - np.uint64(before))
                failed = failed or total < 0 or (most > 0 and total >= most)
                to_v[column, at] = total
            added[c, row] = now
            changed = True
        if changed:
            if to_f[at] & QUEUED == 0:
                to_d[to_n[0]] = at
                to_n[0] += 1
            to_f[at] |= _BOTH
            if len(to_p) > 0:
                to_p[at] = origin + row
    return failed


@njit(nogil=True)
def _amount(v, k, column, row, kind):
    """What a row adds, as a word, and nothing below zero. NaN is larger than any number, as Spark has it."""
    if column < 0:
        return np.int64(1)
    if k.shape[0] > 0 and k[column, row] == 0:
        return np.int64(0)
    word = v[column, row]
    if kind == FRACTION:
        return np.int64(0) if _double(word) <= 0.0 else word
    return max(np.int64(0), word)


@njit(nogil=True)
def _double(word):
    one = np.empty(1, np.int64)
    one[0] = word
    return one.view(np.float64)[0]
