"""Write and read the rows of messages: (id at the owner, values) or (key, values). Renumber ghosts."""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit


@njit(nogil=True)
def count_messages(ids, owner, remote, by_id, by_key) -> None:
    """Count the rows for each rank: those sent with their id there, and those sent with their key."""
    for i in range(len(ids)):
        g = ids[i]
        if remote[g] >= 0:
            by_id[owner[g]] += 1
        else:
            by_key[owner[g]] += 1


@njit(nogil=True)
def write_heads(ids, owner, remote, keys, key_words, value_words, at_id, at_key, out, places) -> None:
    """Write the heads of rows: an id from ``at_id[rank]`` on, or a key from ``at_key[rank]`` on.

    ``places`` gets the position of each row's values.
    """
    for i in range(len(ids)):
        g = np.uint32(ids[i])
        rank = owner[g]
        has_id = remote[g] >= 0
        next_places = at_id if has_id else at_key
        at = next_places[rank]
        if has_id:
            out[at] = remote[g]
            at += 1
        else:
            for c in range(key_words):
                out[at + c] = keys[g, c]
            at += key_words
        places[i] = at
        next_places[rank] = at + value_words


@njit(nogil=True)
def write_values(ids, places, v, k, p, masked, traced, out) -> None:
    """Write each row's values from its place on, then the mask of nulls, then the origin."""
    columns = v.shape[0]
    for i in range(len(ids)):
        row = np.uint32(ids[i])
        at = places[i]
        for j in range(columns):
            out[at + j] = v[j, row]
        at += columns
        if masked:
            mask = 0
            for j in range(columns):
                if k[j, row] == 0:
                    mask |= 1 << j
                    out[at - columns + j] = 0
            out[at] = mask
            at += 1
        if traced:
            out[at] = p[row]


@njit(nogil=True)
def renumber_ghosts(targets, places) -> None:
    """Replace ghost g by ghost ``places[g]`` in targets, which have the complements of ghosts."""
    for i in range(len(targets)):
        if targets[i] < 0:
            targets[i] = ~places[~targets[i]]


@njit(nogil=True)
def read_rows(ids, rows, at, stride, v, k, f, masked, flags) -> None:
    """Store the values of flat rows at their ids. They replace the old values."""
    columns = v.shape[0]
    for i in range(len(ids)):
        base = at + i * stride
        for j in range(columns):
            v[j, ids[i]] = rows[base + j]
            if masked:
                k[j, ids[i]] = 1 - ((rows[base + columns] >> j) & 1)
        f[ids[i]] = np.uint8(flags)
