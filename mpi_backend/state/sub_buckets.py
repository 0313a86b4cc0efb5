"""Decide how many sub-buckets each bucket has: buckets with heavy ones are split, light ones are merged.

Kumar and Gilray, Load-Balancing Parallel Relational Algebra, section 3. A bucket here is finer than a rank's, because
the average of few buckets is never far below the heaviest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array

FACTOR = 4
"""A split multiplies the number of a bucket's sub-buckets by this, and a merge divides it."""
_MIN_BUCKETS = 256
_MAX_PER_RANK = 4


@dataclass(frozen=True)
class Refinement:
    """When sub-buckets change: every ``rounds`` iterations.

    A bucket is split if its heaviest sub-bucket has more than ``split_ratio`` times the average of all sub-buckets. If
    more than ``merge_share`` of all buckets are split, those with a sub-bucket below the average are merged.
    """

    rounds: int = 10
    split_ratio: float = 3.0
    merge_share: float = 0.6


def whole_buckets(buckets: int) -> Array:
    """Return the initial map: one sub-bucket for each bucket. Each of ``buckets`` consists of equally many of them.

    >>> len(whole_buckets(5)), len(whole_buckets(1000)), whole_buckets(5).max()
    (260, 1000, np.int32(1))
    """
    return np.ones(buckets * -(-_MIN_BUCKETS // buckets), np.int32)


def first_places(counts: Array) -> Array:
    """Return the position of each bucket's first sub-bucket in a list of all sub-buckets."""
    first: Array = np.cumsum(counts) - counts
    return first


def refine(counts: Array, sizes: Array, settings: Refinement, ranks: int) -> Array:
    """Return the new number of sub-buckets of each bucket. ``sizes`` are the rows of all sub-buckets, by bucket.

    A bucket is not split further if each rank has four of its sub-buckets.

    >>> refine(np.array([1, 1, 1, 1]), np.array([97, 1, 1, 1]), Refinement(), 8).tolist()
    [4, 1, 1, 1]
    >>> refine(np.array([4, 1]), np.array([1, 1, 1, 1, 4]), Refinement(merge_share=0.4), 8).tolist()
    [1, 1]
    """
    first, average = first_places(counts), sizes.sum() / len(sizes)
    heaviest, lightest = np.maximum.reduceat(sizes, first), np.minimum.reduceat(sizes, first)
    is_split = (heaviest > settings.split_ratio * average) & (counts < _MAX_PER_RANK * ranks)
    is_merged = (counts > 1) & (lightest < average) & ~is_split
    if np.count_nonzero(counts > 1) <= settings.merge_share * len(counts):
        is_merged[:] = False
    new: Array = np.where(is_split, counts * FACTOR, np.where(is_merged, counts // FACTOR, counts)).astype(counts.dtype)
    return new
