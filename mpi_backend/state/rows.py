"""Convert columns to flat rows, the form of messages and kernels, and back. Send columns to other ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import lists
from mpi_backend.state.types import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array


def flatten(columns: Sequence[Column], count: int, *, masked: bool) -> Array:
    """Return the rows one after the other: a word for each column and, if ``masked``, a word of null bits.

    The result may be the column's own array: callers do not change it.
    """
    if len(columns) == 1 and not masked and columns[0].nulls is None and columns[0].words.flags.writeable:
        return columns[0].words  # for read-only arrays, another type, Numba would compile kernels again
    out = np.zeros((count, len(columns) + masked), np.int64)
    for c, column in enumerate(columns):
        out[:, c] = column.words
        if column.nulls is not None:
            out[:, c][column.nulls] = 0
    if masked:
        out[:, -1] = _mask(columns, count)
    return out.ravel()


def _mask(columns: Sequence[Column], count: int) -> Array:
    """Return the null bits of each row."""
    mask = np.zeros(count, np.int64)
    for c, column in enumerate(columns):
        if column.nulls is not None:
            mask |= column.nulls.astype(np.int64) << c
    return mask


def unflatten(rows: Array, like: Sequence[Column], *, masked: bool) -> list[Column]:
    """Return the columns of flat rows: the inverse of :func:`flatten`."""
    table = rows.reshape(-1, len(like) + masked) if like or masked else rows.reshape(0, 0)
    out = []
    for c, column in enumerate(like):
        nulls = (table[:, -1] >> c & 1) != 0 if masked else None
        out.append(Column(column.type, np.ascontiguousarray(table[:, c]), nulls, column.texts))
    return out


def send_to_owners(columns: Sequence[Column], owners: Array, comm: Comm, *, masked: bool) -> list[Column]:
    """Send each row to its owner. Return the received rows. Column by column: each side copies a column only once."""
    counts = np.bincount(owners, minlength=comm.size)
    starts = np.cumsum(counts) - counts
    sorted_words = np.empty(len(owners), np.int64)

    def exchange(words: Array) -> Array:
        lists.scatter(words, owners, starts.copy(), sorted_words)
        return comm.alltoallv(sorted_words, counts)

    mask = exchange(_mask(columns, len(owners))) if masked else None
    return [
        Column(c.type, exchange(c.words), None if mask is None else (mask >> n & 1) != 0, c.texts)
        for n, c in enumerate(columns)
    ]


def allgather_rows(columns: Sequence[Column], count: int, comm: Comm, *, masked: bool) -> list[Column]:
    """Return the rows of all ranks, by rank."""
    rows = flatten(columns, count, masked=masked)
    parts = [np.frombuffer(b, np.int64) for b in comm.allgather_bytes(rows.tobytes())]
    return unflatten(np.concatenate(parts), columns, masked=masked)
