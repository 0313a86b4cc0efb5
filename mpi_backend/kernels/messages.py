"""Rows of messages: as (id at the owner, values) or as (key, values), and how ghosts are numbered for them."""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit


@njit(nogil=True)
def count_messages(ids, owner, remote, by_id, by_key) -> None:
    """How many rows go to each rank with their id there, and how many with their key."""
    for i in range(len(ids)):
        g = ids[i]
        if remote[g] >= 0:
            by_id[owner[g]] += 1
        else:
            by_key[owner[g]] += 1


@njit(nogil=True)
def write_heads(ids, owner, remote, keys, key_words, value_words, at_id, at_key, out, places) -> None:
    """Begins rows as (id at the owner, values) from ``at_id`` of each rank on, or as (key, values) from ``at_key`` on.

    ``places`` gets where the values of each row go.
    """
    for i in range(len(ids)):
        g = np.uint32(ids[i])
        rank = owner[g]
        known = remote[g] >= 0
        free = at_id if known else at_key
        at = free[rank]
        if known:
            out[at] = remote[g]
            at += 1
        else:
            for c in range(key_words):
                out[at + c] = keys[g, c]
            at += key_words
        places[i] = at
        free[rank] = at + value_words


@njit(nogil=True)
def write_values(ids, places, v, k, p, masked, traced, out) -> None:
    """Each row's values from its place on, then the mask of its nulls, then its origin."""
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
    """Ghost g is ghost ``places[g]`` now; targets have the complements of ghosts."""
    for i in range(len(targets)):
        if targets[i] < 0:
            targets[i] = ~places[~targets[i]]


@njit(nogil=True)
def read_rows(ids, rows, at, stride, v, k, f, masked, flags) -> None:
    """Puts the values of flat rows where their ids stand, in place of what stood there."""
    columns = v.shape[0]
    for i in range(len(ids)):
        base = at + i * stride
        for j in range(columns):
            v[j, ids[i]] = rows[base + j]
            if masked:
                k[j, ids[i]] = 1 - ((rows[base + columns] >> j) & 1)
        f[ids[i]] = np.uint8(flags)
