"""Rows that lie flat, as messages and kernels want them, made of columns; and columns that move between ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import lists
from mpi_backend.state.types import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array


def flat(columns: Sequence[Column], count: int, *, masked: bool) -> Array:
    """Rows one after the other: a word a column and, ``masked``, one with a bit for each null. Not to be changed."""
    if len(columns) == 1 and not masked and columns[0].nulls is None and columns[0].words.flags.writeable:
        return columns[0].words  # what may not be written is of another type for Numba: kernels would be compiled twice
    out = np.zeros((count, len(columns) + masked), np.int64)
    for c, column in enumerate(columns):
        out[:, c] = column.words
        if column.nulls is not None:
            out[:, c][column.nulls] = 0
    if masked:
        out[:, -1] = _mask(columns, count)
    return out.ravel()


def _mask(columns: Sequence[Column], count: int) -> Array:
    """A bit for each column that is null."""
    mask = np.zeros(count, np.int64)
    for c, column in enumerate(columns):
        if column.nulls is not None:
            mask |= column.nulls.astype(np.int64) << c
    return mask


def columns_of(rows: Array, like: Sequence[Column], *, masked: bool) -> list[Column]:
    """The inverse of :func:`flat`."""
    table = rows.reshape(-1, len(like) + masked) if like or masked else rows.reshape(0, 0)
    out = []
    for c, column in enumerate(like):
        nulls = (table[:, -1] >> c & 1) != 0 if masked else None
        out.append(Column(column.type, np.ascontiguousarray(table[:, c]), nulls, column.texts))
    return out


def send(columns: Sequence[Column], owners: Array, comm: Comm, *, masked: bool) -> list[Column]:
    """Each row to its owner; what came here. Column by column: none is copied more than once on either side."""
    counts = np.bincount(owners, minlength=comm.size)
    starts = np.cumsum(counts) - counts
    sorted_words = np.empty(len(owners), np.int64)

    def sent(words: Array) -> Array:
        lists.deal(words, owners, starts.copy(), sorted_words)
        return comm.alltoallv(sorted_words, counts)

    mask = sent(_mask(columns, len(owners))) if masked else None
    return [
        Column(c.type, sent(c.words), None if mask is None else (mask >> n & 1) != 0, c.texts)
        for n, c in enumerate(columns)
    ]


def share(columns: Sequence[Column], count: int, comm: Comm, *, masked: bool) -> list[Column]:
    """All rows to everyone."""
    rows = flat(columns, count, masked=masked)
    parts = [np.frombuffer(b, np.int64) for b in comm.allgather_bytes(rows.tobytes())]
    return columns_of(np.concatenate(parts), columns, masked=masked)
