"""Who owns a row: Spark's hash of some of its columns gives the bucket, buckets go to ranks round robin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import hashing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.strings import Strings
    from mpi_backend.types import Type


class Owner:
    """Finds the bucket, or the rank, of rows that lie flat: by the words at ``columns``, which are of ``types``."""

    def __init__(self, columns: Sequence[int], types: Sequence[Type], buckets: int, ranks: int) -> None:
        self._columns = np.array(columns, np.int64)
        self._kinds = np.array([_kind(t) for t in types], np.int64)
        self.bucket_count = buckets
        self._ranks = ranks

    def buckets(self, rows: Array, stride: int, mask_at: int, strings: Strings, count: int) -> Array:
        """The bucket of each row; without columns all rows are in the first one."""
        out = np.zeros(count, np.int32)
        if len(self._columns) and count:
            hashing.hash_words(
                rows, 0, stride, count, self._columns, self._kinds, mask_at, strings.offsets, strings.data, out
            )
            hashing.buckets(out, count, self.bucket_count)
        return out

    def ranks(self, rows: Array, stride: int, mask_at: int, strings: Strings, count: int) -> Array:
        """The rank of each row."""
        return self.buckets(rows, stride, mask_at, strings, count) % self._ranks


def _kind(of: Type) -> int:
    if of.kind == "text":
        return hashing.TEXT
    if of.kind == "fraction":
        return hashing.FLOAT if of.bits < 64 else hashing.LONG  # noqa: PLR2004 - a word
    return hashing.INT if of.hashes_as_int else hashing.LONG
