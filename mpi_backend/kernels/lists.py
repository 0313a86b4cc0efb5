"""Process lists of rows: sort them by group or owner, link them, flag and compare changed rows."""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import LEAF, njit
from mpi_backend.kernels.flags import COUNTED, IN_DELTA, PRESENT, QUEUED, SETTLED

_CHANGED, _NOT_SETTLED = np.uint8(QUEUED | PRESENT), np.uint8(255 - SETTLED)
UNLINKED = -2
SCAN_FACTOR = 64
"""A list with more than 1/SCAN_FACTOR of all rows is sorted, by a scan of the flags of all rows."""


@njit(nogil=True)
def counting_sort(groups, targets, offsets, order) -> None:
    """Write the rows to ``order``, sorted by group, stably. Rows with a target below 0 are last in their group."""
    for i in range(len(groups)):
        offsets[groups[i] + 1] += 1
    for g in range(len(offsets) - 1):
        offsets[g + 1] += offsets[g]
    places = offsets[:-1].copy()
    if len(targets) == 0:
        for i in range(len(groups)):
            order[places[groups[i]]] = i
            places[groups[i]] += 1
        return
    for is_local in (True, False):
        for i in range(len(groups)):
            if (targets[i] >= 0) == is_local:
                order[places[groups[i]]] = i
                places[groups[i]] += 1


@njit(nogil=True)
def scatter(words, owners, places, out):
    """Sort words by owner: the next word of owner r goes to ``out[places[r]]``."""
    for i in range(len(words)):
        out[places[owners[i]]] = words[i]
        places[owners[i]] += 1


@njit(nogil=True)
def link(ids, groups, heads, following) -> None:
    """Prepend each row to the list of its group."""
    for i in range(len(ids)):
        following[ids[i]] = heads[groups[i]]
        heads[groups[i]] = ids[i]


@njit(**LEAF)
def mark_changed(at, parent, flags, dirty, count, parents):
    """Mark row ``at`` present and changed; in a traced run ``parent`` is the row that it was derived from."""
    if flags[at] & QUEUED == 0:
        dirty[count[0]] = at
        count[0] += 1
    flags[at] = (flags[at] & _NOT_SETTLED) | _CHANGED
    if len(parents) > 0:
        parents[at] = parent


@njit(nogil=True)
def count_new(flags, ids):
    """Flag rows as counted. Return how many were not."""
    new_count = 0
    for i in range(len(ids)):
        if flags[ids[i]] & COUNTED == 0:
            flags[ids[i]] |= np.uint8(COUNTED)
            new_count += 1
    return new_count


@njit(nogil=True)
def mark_delta(flags, ids) -> None:
    """Flag rows as the delta that the next application reads, no longer as queued."""
    for i in range(len(ids)):
        flags[ids[i]] = (flags[ids[i]] & np.uint8(255 - QUEUED)) | np.uint8(IN_DELTA)


@njit(nogil=True)
def unmark_delta(flags, ids) -> None:
    """Clear the delta flag of rows."""
    for i in range(len(ids)):
        flags[ids[i]] &= np.uint8(255 - IN_DELTA)


@njit(nogil=True)
def unqueue(flags, ids) -> None:
    """Clear the queued flag of rows."""
    for i in range(len(ids)):
        flags[ids[i]] &= np.uint8(255 - QUEUED)


@njit(nogil=True)
def list_queued(flags, ids, size) -> None:
    """Write the queued rows below ``size`` to ``ids``, sorted, so that readers access memory sequentially."""
    n = 0
    for i in range(size):
        ids[n] = i
        n += (flags[i] & QUEUED) != 0


@njit(nogil=True)
def split_by_owner(owners, rank, local, remote):
    """Write the numbers of rows of ``rank`` and of other rows. Return how many there are of each."""
    local_count = remote_count = 0
    for i in range(len(owners)):
        if owners[i] == rank:
            local[local_count] = i
            local_count += 1
        else:
            remote[remote_count] = i
            remote_count += 1
    return local_count, remote_count


@njit(nogil=True)
def present(flags, size):
    """Return the ids below ``size`` that have a row."""
    ids = np.empty(size, np.int32)
    count = 0
    for i in range(size):
        if flags[i] & PRESENT:
            ids[count] = i
            count += 1
    return ids[:count]


@njit(nogil=True)
def clear(ids, v, k, f, identities, valid):
    """Reset these ids to the state of no row."""
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
    """Write to ``out`` how many of these rows existed before, how many differ, and Σ|Δ| of sums.

    ``kinds`` has (is a fraction, is a sum, 10^scale) for each column.
    """
    existing = changed = 0
    total = 0.0
    new_double, old_double = v.view(np.float64), old_v.view(np.float64)
    for i in range(len(ids)):
        row = ids[i]
        existed = old_f[row] & PRESENT != 0
        existing += existed
        is_same = existed
        for j in range(v.shape[0]):
            is_null = k.shape[0] > 0 and k[j, row] == 0
            was_null = not existed or (k.shape[0] > 0 and old_k[j, row] == 0)
            if kinds[j, 0]:
                a, b = new_double[j, row], old_double[j, row]
                equal = a == b or (a != a and b != b)
            else:
                equal = v[j, row] == old_v[j, row]
                a, b = np.float64(v[j, row]), np.float64(old_v[j, row])
            if is_null == was_null and (is_null or equal):
                continue
            is_same = False
            if kinds[j, 1]:
                a = 0.0 if is_null else a
                b = 0.0 if was_null else b
                total += abs(a - b) / kinds[j, 2]
        changed += not is_same
    out[0] = existing
    out[1] = changed
    out[2] = total


@njit(nogil=True, fastmath={"reassoc"})
def differences_of_all(new, old, out):
    """Write the numbers of ``differences`` for one sum of fractions, if all rows existed before and exist now."""
    same_count = 0
    total = 0.0
    for i in range(len(new)):
        difference = abs(new[i] - old[i])
        same_count += new[i] == old[i]
        total += difference
    if total != total:  # NaN equals NaN here, and infinity equals infinity
        total = 0.0
        for i in range(len(new)):
            is_same = new[i] == old[i] or (new[i] != new[i] and old[i] != old[i])
            same_count += is_same and new[i] != old[i]
            total += 0.0 if is_same else abs(new[i] - old[i])
    out[0] = len(new)
    out[1] = len(new) - same_count
    out[2] = total
