"""Find the sub-buckets of rows. Bucket b has ``counts[b]`` of them, a power of two: the low bits of a row's hash.

Bucket b is a part of the bucket ``b % buckets`` of a rank. That rank has its first sub-bucket.
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import LEAF, njit
from mpi_backend.kernels.flags import PRESENT


@njit(**LEAF)
def _sub_bucket(part, hashed, counts):
    return hashed & (counts[part] - 1)


@njit(**LEAF)
def _rank(part, hashed, counts, buckets, ranks):
    return (part % buckets + _sub_bucket(part, hashed, counts)) % ranks


@njit(nogil=True)
def ranks_of(parts, hashes, counts, buckets, ranks, out) -> None:
    """Write the rank of each row."""
    for i in range(len(parts)):
        out[i] = _rank(parts[i], hashes[i], counts, buckets, ranks)


@njit(nogil=True)
def count_rows(flags, parts, hashes, counts, first, out) -> None:
    """Count the rows of each sub-bucket; ``first`` has the position of each bucket's first one in ``out``."""
    for i in range(len(parts)):
        if flags[i] & PRESENT:
            out[first[parts[i]] + _sub_bucket(parts[i], hashes[i], counts)] += 1


@njit(nogil=True)
def list_leaving(flags, parts, hashes, counts, place, ids, owners):
    """Write the ids and ranks of rows whose rank is not ``place[2]``. Return their number.

    ``place`` has the numbers of buckets and ranks, and this rank.
    """
    n = 0
    for i in range(len(parts)):
        if flags[i] & PRESENT:
            rank = _rank(parts[i], hashes[i], counts, place[0], place[1])
            if rank != place[2]:
                ids[n] = i
                owners[n] = np.int32(rank)
                n += 1
    return n
