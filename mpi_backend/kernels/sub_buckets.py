"""Find the sub-buckets of rows. Bucket b has ``counts[b]`` of them, a power of two: the low bits of a row's hash.

Bucket b is a part of the bucket ``b % buckets`` of a rank. That rank has its first sub-bucket.
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit
from mpi_backend.kernels.flags import PRESENT


@njit(nogil=True)
def ranks_of(parts, hashes, counts, buckets, ranks, out) -> None:
    """Write the rank of each row."""
    for i in range(len(parts)):
        sub = hashes[i] & (counts[parts[i]] - 1)
        out[i] = (parts[i] % buckets + sub) % ranks


@njit(nogil=True)
def count_rows(flags, parts, hashes, counts, first, out) -> None:
    """Count the rows of each sub-bucket; ``first`` has the position of each bucket's first one in ``out``."""
    for i in range(len(parts)):
        if flags[i] & PRESENT:
            out[first[parts[i]] + (hashes[i] & (counts[parts[i]] - 1))] += 1


@njit(nogil=True)
def list_leaving(flags, parts, hashes, counts, place, ids, owners):
    """Write the ids and ranks of rows whose rank is not ``place[2]``. Return their number.

    ``place`` has the numbers of buckets and ranks, and this rank.
    """
    n = 0
    for i in range(len(parts)):
        if flags[i] & PRESENT:
            sub = hashes[i] & (counts[parts[i]] - 1)
            rank = (parts[i] % place[0] + sub) % place[1]
            if rank != place[2]:
                ids[n] = i
                owners[n] = np.int32(rank)
                n += 1
    return n
