"""Rows that lie flat, as messages and kernels want them, made of columns; and columns that move between ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import lists
from mpi_backend.types import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array


def flat(columns: Sequence[Column], count: int, *, masked: bool) -> Array:
    """Rows one after the other: a word a column and, ``masked``, one with a bit for each null."""
    out = np.zeros((count, len(columns) + masked), np.int64)
    for c, column in enumerate(columns):
        out[:, c] = column.words
        if column.nulls is not None:
            out[:, c][column.nulls] = 0
            if masked:
                out[:, -1] |= column.nulls.astype(np.int64) << c
    return out.ravel()


def columns_of(rows: Array, like: Sequence[Column], *, masked: bool) -> list[Column]:
    """The inverse of :func:`flat`."""
    table = rows.reshape(-1, len(like) + masked) if like or masked else rows.reshape(0, 0)
    out = []
    for c, column in enumerate(like):
        nulls = (table[:, -1] >> c & 1) != 0 if masked else None
        out.append(Column(column.type, np.ascontiguousarray(table[:, c]), nulls, column.texts))
    return out


def send(columns: Sequence[Column], owners: Array, comm: Comm, *, masked: bool) -> list[Column]:
    """Each row to its owner; what came here."""
    width = len(columns) + masked
    ends = np.zeros(comm.size + 1, np.int64)
    places = np.empty(len(owners), np.int64)
    lists.places(owners, ends, places)
    rows = np.zeros(len(owners) * width, np.int64)
    for c, column in enumerate(columns):
        nulls = np.zeros(0, np.bool_) if column.nulls is None else column.nulls
        lists.scatter(column.words, nulls, places, width, c, rows)
    parts = [rows[ends[r] * width : ends[r + 1] * width] for r in range(comm.size)]
    return columns_of(np.concatenate(comm.exchange(parts)), columns, masked=masked)


def share(columns: Sequence[Column], count: int, comm: Comm, *, masked: bool) -> list[Column]:
    """All rows to everyone."""
    rows = flat(columns, count, masked=masked)
    parts = [np.frombuffer(b, np.int64) for b in comm.gather(rows.tobytes())]
    return columns_of(np.concatenate(parts), columns, masked=masked)
