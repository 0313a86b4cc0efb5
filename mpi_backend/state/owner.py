"""Who owns a row: Spark's hash of some of its columns gives the bucket, buckets go to ranks round robin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import hashing
from mpi_backend.state.rows import flat, send
from mpi_backend.state.types import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.strings import Strings
    from mpi_backend.state.types import Type


class Owner:
    """Finds the bucket, or the rank, of flat rows by the words at ``columns``; ``types`` are those of all words.

    ``others`` are the columns by which rows go to one of ``count`` sub-buckets; none: to the first.
    """

    def __init__(
        self, columns: Sequence[int], types: Sequence[Type], buckets: int, ranks: int,
        others: Sequence[int] = (), count: int = 1,
    ) -> None:  # fmt: skip
        self._columns = np.array(columns, np.int64)
        self._others = np.array(others, np.int64)
        self._kinds = np.array([_kind(t) for t in types], np.int64)
        self.bucket_count = buckets
        self._ranks = ranks
        self._count = count

    def buckets(self, rows: Array, stride: int, mask_at: int, strings: Strings, count: int) -> Array:
        """The bucket of each row; without columns all rows are in the first one."""
        return self._hashed(self._columns, self.bucket_count, rows, stride, mask_at, strings, count)

    def ranks(self, rows: Array, stride: int, mask_at: int, strings: Strings, count: int) -> Array:
        """The rank of each row: sub-buckets go to ranks round robin."""
        first = self.buckets(rows, stride, mask_at, strings, count)
        if self._count > 1:
            first *= self._count
            if len(self._others):
                first += self._hashed(self._others, self._count, rows, stride, mask_at, strings, count)
        if self.bucket_count * self._count > self._ranks:  # else a bucket is a rank
            hashing.buckets(first, count, self._ranks)
        return first

    def all_ranks(self, rows: Array, stride: int, mask_at: int, strings: Strings, count: int) -> list[Array]:
        """The ranks of all sub-buckets of each row's bucket, sub-bucket by sub-bucket."""
        first = self.buckets(rows, stride, mask_at, strings, count) * self._count
        most = min(self._count, self._ranks)
        return [(first + s) % self._ranks for s in range(most)]

    def _hashed(
        self, columns: Array, among: int, rows: Array, stride: int, mask_at: int, strings: Strings, count: int
    ) -> Array:
        out = np.zeros(count, np.int32)
        if len(columns) and count:
            kinds = self._kinds[columns]
            hashing.hash_words(rows, 0, stride, count, columns, kinds, mask_at, strings.offsets, strings.data, out)
            hashing.buckets(out, count, among)
        return out


def route(
    table: Table, by: Sequence[int], others: Sequence[int], strings: Strings, comm: Comm, buckets: int, count: int,
    *, masked: bool,
) -> Table:  # fmt: skip
    """Each row at the owner of the columns ``by``, in the sub-bucket of ``others``. Collective."""
    if comm.size == 1:
        return table
    if not table.columns:  # rows without columns: all at the first rank
        total = int(comm.allreduce_sum(np.array([float(table.count)]))[0])
        return Table((), total if comm.rank == 0 else 0)
    hashed = [table.columns[b] for b in (*by, *others)]
    width = len(hashed)
    owner = Owner(range(len(by)), [c.type for c in hashed], buckets, comm.size, range(len(by), width), count)
    rows = flat(hashed, table.count, masked=masked)
    ranks = owner.ranks(rows, width + masked, width if masked else -1, strings, table.count)
    columns = tuple(send(table.columns, ranks, comm, masked=masked))
    return Table(columns, len(columns[0]))


def _kind(of: Type) -> int:
    if of.kind == "text":
        return hashing.TEXT
    if of.kind == "fraction":
        return hashing.FLOAT if of.bits < 64 else hashing.LONG  # noqa: PLR2004 - a word
    return hashing.INT if of.hashes_as_int else hashing.LONG
