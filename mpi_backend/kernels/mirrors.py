"""Write and read rows for mirrors: (number at the owner, values). Copy this rank's rows to its own mirror."""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit
from mpi_backend.kernels.flags import PRESENT


@njit(nogil=True)
def count_mirrored(rows, mirrored, counts) -> None:
    """Count the rows that each rank's mirror has."""
    for r in range(len(counts)):
        n = 0
        for i in range(len(rows)):
            n += mirrored[r, np.uint32(rows[i])]
        counts[r] = n


@njit(nogil=True)
def begin_rows(rows, mirrored, stride, flat, ids, places) -> None:
    """Write the numbers of the rows for each rank, by rank. ``places`` gets the position of each row's values."""
    n = 0
    for r in range(mirrored.shape[0]):
        for i in range(len(rows)):
            row = np.uint32(rows[i])
            if mirrored[r, row]:
                flat[n * stride] = row
                ids[n] = row
                places[n] = n * stride + 1
                n += 1


@njit(nogil=True)
def unpack(words, stride, places, v, k, f, p, masked, traced, current, size):
    """Append the rows of a message to the mirror's current rows, from ``size`` on. Return their new number."""
    columns = v.shape[0]
    for at in range(0, len(words), stride):
        place = np.uint32(places[np.uint32(words[at])])
        for j in range(columns):
            v[j, place] = words[at + 1 + j]
            if masked:
                k[j, place] = 1 - ((words[at + 1 + columns] >> j) & 1)
        if traced:
            p[place] = words[at + stride - 1]
        f[place] = np.uint8(PRESENT)
        current[size] = place
        size += 1
    return size


@njit(nogil=True)
def reflect(rows, places, from_v, from_k, v, k, f, p, masked, traced, origin, current):
    """Copy this rank's rows to its own mirror as current rows. Return their number."""
    size = 0
    for i in range(len(rows)):
        row = np.uint32(rows[i])
        if places[row] < 0:
            continue
        place = np.uint32(places[row])
        for j in range(v.shape[0]):
            v[j, place] = from_v[j, row]
            if masked:
                k[j, place] = from_k[j, row]
        if traced:
            p[place] = origin + row
        f[place] = np.uint8(PRESENT)
        current[size] = place
        size += 1
    return size
