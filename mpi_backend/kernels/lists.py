"""Lists of rows: sorting by group and by owner, linking, what changed."""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit
from mpi_backend.kernels.flags import COUNTED, IN_DELTA, PRESENT, QUEUED

UNLINKED = -2
MANY = 64
"""A list with more than this part of all rows is put in order: their flags are read through."""


@njit(nogil=True)
def counting_sort(groups, targets, offsets, order) -> None:
    """``order`` gets the rows sorted by group, stable; rows with a target below 0 come last in their group."""
    for i in range(len(groups)):
        offsets[groups[i] + 1] += 1
    for g in range(len(offsets) - 1):
        offsets[g + 1] += offsets[g]
    free = offsets[:-1].copy()
    if len(targets) == 0:
        for i in range(len(groups)):
            order[free[groups[i]]] = i
            free[groups[i]] += 1
        return
    for own in (True, False):
        for i in range(len(groups)):
            if (targets[i] >= 0) == own:
                order[free[groups[i]]] = i
                free[groups[i]] += 1


@njit(nogil=True)
def deal(words, owners, free, out):
    """Words in the order of their owners: the next of owner r goes to ``free[r]``."""
    for i in range(len(words)):
        out[free[owners[i]]] = words[i]
        free[owners[i]] += 1


@njit(nogil=True)
def link(ids, groups, heads, following) -> None:
    """Each row becomes the first of its group's list."""
    for i in range(len(ids)):
        following[ids[i]] = heads[groups[i]]
        heads[groups[i]] = ids[i]


@njit(nogil=True)
def count_new(flags, ids):
    """How many of these rows were not there before; from now on they are counted."""
    fresh = 0
    for i in range(len(ids)):
        if flags[ids[i]] & COUNTED == 0:
            flags[ids[i]] |= np.uint8(COUNTED)
            fresh += 1
    return fresh


@njit(nogil=True)
def mark_delta(flags, ids) -> None:
    """These rows are the delta that the next application reads."""
    for i in range(len(ids)):
        flags[ids[i]] = (flags[ids[i]] & np.uint8(255 - QUEUED)) | np.uint8(IN_DELTA)


@njit(nogil=True)
def unmark_delta(flags, ids) -> None:
    """They are no more."""
    for i in range(len(ids)):
        flags[ids[i]] &= np.uint8(255 - IN_DELTA)


@njit(nogil=True)
def unqueue(flags, ids) -> None:
    """They are not among what changed."""
    for i in range(len(ids)):
        flags[ids[i]] &= np.uint8(255 - QUEUED)


@njit(nogil=True)
def ascend(flags, ids, size) -> None:
    """``ids`` become the queued rows below ``size`` in their order: who follows them walks through memory."""
    n = 0
    for i in range(size):
        ids[n] = i
        n += (flags[i] & QUEUED) != 0


@njit(nogil=True)
def split_by_owner(owners, mine, own, other):
    """Row numbers of the own rows, and of the others; how many of each."""
    a = b = 0
    for i in range(len(owners)):
        if owners[i] == mine:
            own[a] = i
            a += 1
        else:
            other[b] = i
            b += 1
    return a, b


@njit(nogil=True)
def present(flags, size):
    """Ids below ``size`` that have a row."""
    out = np.empty(size, np.int32)
    n = 0
    for i in range(size):
        if flags[i] & PRESENT:
            out[n] = i
            n += 1
    return out[:n]


@njit(nogil=True)
def clear(ids, v, k, f, identities, valid):
    """Back to "nothing came in" for these ids."""
    for i in range(len(ids)):
        f[ids[i]] = np.uint8(0)
    for j in range(v.shape[0]):
        for i in range(len(ids)):
            v[j, ids[i]] = identities[j]
    for j in range(k.shape[0]):
        for i in range(len(ids)):
            k[j, ids[i]] = valid[j]


@njit(nogil=True)
def differences(ids, v, k, old_v, old_k, old_f, kinds, out):
    """How many of these rows were there before, and how many differ; Σ|Δ| of the columns that are added up.

    ``kinds`` has (is a fraction, is added up, 10^scale) for each column; ``out`` gets the three numbers.
    """
    was = changed = 0
    total = 0.0
    now_double, old_double = v.view(np.float64), old_v.view(np.float64)
    for i in range(len(ids)):
        row = ids[i]
        there = old_f[row] & PRESENT != 0
        was += there
        same = there
        for j in range(v.shape[0]):
            now_null = k.shape[0] > 0 and k[j, row] == 0
            was_null = not there or (k.shape[0] > 0 and old_k[j, row] == 0)
            if kinds[j, 0]:
                a, b = now_double[j, row], old_double[j, row]
                equal = a == b or (a != a and b != b)
            else:
                equal = v[j, row] == old_v[j, row]
                a, b = np.float64(v[j, row]), np.float64(old_v[j, row])
            if now_null == was_null and (now_null or equal):
                continue
            same = False
            if kinds[j, 1]:
                a = 0.0 if now_null else a
                b = 0.0 if was_null else b
                total += abs(a - b) / kinds[j, 2]
        changed += not same
    out[0] = was
    out[1] = changed
    out[2] = total


@njit(nogil=True, fastmath={"reassoc"})
def differences_of_all(now, old, out):
    """The same for one sum of fractions of which each row was there before, and is."""
    same = 0
    total = 0.0
    for i in range(len(now)):
        difference = abs(now[i] - old[i])
        same += now[i] == old[i]
        total += difference
    if total != total:  # NaN is NaN, and infinity is infinity: they do not differ from themselves
        total = 0.0
        for i in range(len(now)):
            still = now[i] == old[i] or (now[i] != now[i] and old[i] != old[i])
            same += still and now[i] != old[i]
            total += 0.0 if still else abs(now[i] - old[i])
    out[0] = len(now)
    out[1] = len(now) - same
    out[2] = total
