"""Add the rows of a witness relation to the counts and sums of its views."""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit
from mpi_backend.kernels.flags import PRESENT
from mpi_backend.kernels.lists import mark_changed

COUNT, WHOLE, FRACTION, COPY = 0, 1, 2, 3


@njit(nogil=True)
def follow(rows, row_of, codes, added, nulls, v, k, to_v, to_k, to_f, to_d, to_n, to_p, origin):
    """Add ``rows`` to the rows ``row_of`` of a view. Return whether a sum overflowed.

    ``codes`` has (column, source's column or -1, kind, limit of a decimal) for each column of the view. ``added`` has
    what each row has added so far. A row with ``nulls`` not 0 has a null and adds nothing.
    """
    failed = False
    to_double = to_v.view(np.float64)
    for i in range(len(rows)):
        row = rows[i]
        at = row_of[row]
        changed = (to_f[at] & PRESENT) == 0
        for c in range(codes.shape[0]):
            column, source_column, kind, limit = codes[c, 0], codes[c, 1], codes[c, 2], codes[c, 3]
            if kind == COPY:
                changed = True
                to_v[column, at] = v[source_column, row]
                if to_k.shape[0] > 0:
                    to_k[column, at] = k[source_column, row] if k.shape[0] > 0 else np.uint8(1)
                continue
            if to_k.shape[0] > 0:
                to_k[column, at] = np.uint8(1)
            amount = np.int64(0)
            if nulls[row] == 0:
                amount = _amount(v, k, source_column, row, kind)
            old_amount = added[c, row]
            if amount == old_amount:
                continue
            if kind == FRACTION:
                step = _double(amount) - _double(old_amount) if old_amount != 0 else _double(amount)
                to_double[column, at] += step
            else:
                # All terms are positive. Unsigned, because LLVM assumes that signed sums do not overflow.
                total = np.int64(np.uint64(to_v[column, at]) + np.uint64(amount) - np.uint64(old_amount))
                failed = failed or total < 0 or (limit > 0 and total >= limit)
                to_v[column, at] = total
            added[c, row] = amount
            changed = True
        if changed:
            mark_changed(at, origin + row, to_f, to_d, to_n, to_p)
    return failed


@njit(nogil=True)
def _amount(v, k, column, row, kind):
    """Return what a row adds, as a word, at least 0. NaN is larger than any number, as in Spark."""
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
    words = np.empty(1, np.int64)
    words[0] = word
    return words.view(np.float64)[0]
