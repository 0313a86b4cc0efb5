"""Rows on their way to mirrors: (number at the owner, values), and for own rows the same without a message."""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit
from mpi_backend.kernels.flags import PRESENT


@njit(nogil=True)
def count_wanted(rows, wanted, counts) -> None:
    """How many of the rows each rank wants."""
    for r in range(len(counts)):
        n = 0
        for i in range(len(rows)):
            n += wanted[r, np.uint32(rows[i])]
        counts[r] = n


@njit(nogil=True)
def begin_rows(rows, wanted, stride, flat, ids, places) -> None:
    """Begins the rows that each rank wants, rank by rank, with their numbers; ``places`` gets where their values go."""
    n = 0
    for r in range(wanted.shape[0]):
        for i in range(len(rows)):
            row = np.uint32(rows[i])
            if wanted[r, row]:
                flat[n * stride] = row
                ids[n] = row
                places[n] = n * stride + 1
                n += 1


@njit(nogil=True)
def unpack(words, stride, places, v, k, f, p, masked, traced, current, size):
    """Rows of a message become current rows of the mirror, from ``size`` on; how many there are then."""
    columns = v.shape[0]
    for at in range(0, len(words), stride):
        here = np.uint32(places[np.uint32(words[at])])
        for j in range(columns):
            v[j, here] = words[at + 1 + j]
            if masked:
                k[j, here] = 1 - ((words[at + 1 + columns] >> j) & 1)
        if traced:
            p[here] = words[at + stride - 1]
        f[here] = np.uint8(PRESENT)
        current[size] = here
        size += 1
    return size


@njit(nogil=True)
def reflect(rows, places, from_v, from_k, v, k, f, p, masked, traced, origin, current):
    """Own rows become current rows of the own mirror; how many."""
    size = 0
    for i in range(len(rows)):
        row = np.uint32(rows[i])
        if places[row] < 0:
            continue
        here = np.uint32(places[row])
        for j in range(v.shape[0]):
            v[j, here] = from_v[j, row]
            if masked:
                k[j, here] = from_k[j, row]
        if traced:
            p[here] = origin + row
        f[here] = np.uint8(PRESENT)
        current[size] = here
        size += 1
    return size
