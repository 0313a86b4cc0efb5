"""Assign rows to ranks: Spark's hash of some columns gives the bucket; ranks own buckets round robin."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import hashing
from mpi_backend.kernels import sub_buckets as kernel
from mpi_backend.state.rows import flatten, send_to_owners
from mpi_backend.state.types import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.strings import Strings
    from mpi_backend.state.types import Type


class Owner:
    """The assignment of flat rows to buckets and ranks by the words at ``columns``. ``types`` are those of all words.

    A hash of ``sub_columns`` selects one of ``sub_buckets`` sub-buckets; without such columns it is the first. If their
    number changes while the loop runs, ``counts`` has it for each bucket. These buckets are parts of those that ranks
    own, and the map is the same on all ranks.
    """

    def __init__(
        self, columns: Sequence[int], types: Sequence[Type], buckets: int, ranks: int,
        sub_columns: Sequence[int] = (), sub_buckets: int = 1, counts: Array | None = None,
    ) -> None:  # fmt: skip
        self.counts = counts
        self._columns = np.array(columns, np.int64)
        self._sub_columns = np.array(sub_columns, np.int64)
        self._kinds = np.array([_kind(t) for t in types], np.int64)
        self.bucket_count = buckets
        self._ranks = ranks
        self._sub_buckets = sub_buckets

    def buckets(self, rows: Array, stride: int, mask_at: int, strings: Strings, count: int) -> Array:
        """Return the bucket of each row. Without columns, all rows are in the first."""
        return self._hash(self._columns, self.bucket_count, rows, stride, mask_at, strings, count)

    def ranks(self, rows: Array, stride: int, mask_at: int, strings: Strings, count: int) -> Array:
        """Return the rank of each row. A bucket's first sub-bucket is at its rank, the others at the ranks after it."""
        if self.counts is not None and self.counts.max() > 1:
            parts = self.parts(rows, stride, mask_at, strings, count)
            return self.ranks_by_hash(parts, self.sub_hashes(rows, stride, mask_at, strings, count))
        ranks = self.buckets(rows, stride, mask_at, strings, count)
        if self._sub_buckets > 1 and len(self._sub_columns):
            ranks += self._hash(self._sub_columns, self._sub_buckets, rows, stride, mask_at, strings, count)
        if self.bucket_count + self._sub_buckets - 1 > self._ranks:  # otherwise the sum is a rank
            hashing.buckets(ranks, count, self._ranks)
        return ranks

    def parts(self, rows: Array, stride: int, mask_at: int, strings: Strings, count: int) -> Array:
        """Return for each row the bucket of ``counts``."""
        assert self.counts is not None  # noqa: S101 - for the type checker
        return self._hash(self._columns, len(self.counts), rows, stride, mask_at, strings, count)

    def sub_hashes(self, rows: Array, stride: int, mask_at: int, strings: Strings, count: int) -> Array:
        """Return for each row the hash of which some bits are the sub-bucket of ``counts``."""
        return self._hash(self._sub_columns, None, rows, stride, mask_at, strings, count)

    def ranks_by_hash(self, parts: Array, hashes: Array) -> Array:
        """Return the ranks of rows by their buckets of ``counts`` and their hashes."""
        out = np.empty(len(parts), np.int32)
        kernel.ranks_of(parts, hashes, self.counts, self.bucket_count, self._ranks, out)
        return out

    def ranks_of_part(self, part: int, first: int, last: int) -> list[int]:
        """Return the ranks of a bucket's sub-buckets ``first`` to ``last - 1``, without those of earlier ones."""
        home = part % self.bucket_count
        return [(home + s) % self._ranks for s in range(min(first, self._ranks), min(last, self._ranks))]

    def all_ranks(self, rows: Array, stride: int, mask_at: int, strings: Strings, count: int) -> list[Array]:
        """Return the ranks of all sub-buckets of each row's bucket: an array for each sub-bucket, -1 where is none."""
        if self.counts is not None:
            parts = self.parts(rows, stride, mask_at, strings, count)
            home, counts = parts % self.bucket_count, self.counts[parts]
            most = min(int(self.counts.max()), self._ranks)
            return [np.where(counts > s, (home + s) % self._ranks, -1) for s in range(most)]
        first = self.buckets(rows, stride, mask_at, strings, count)
        rank_count = min(self._sub_buckets, self._ranks)
        return [(first + s) % self._ranks for s in range(rank_count)]

    def _hash(
        self, columns: Array, buckets: int | None, rows: Array, stride: int, mask_at: int, strings: Strings, count: int
    ) -> Array:
        out = np.zeros(count, np.int32)
        if len(columns) and count:
            kinds = self._kinds[columns]
            hashing.hash_words(rows, 0, stride, count, columns, kinds, mask_at, strings.offsets, strings.data, out)
            if buckets is not None:
                hashing.buckets(out, count, buckets)
        return out


def route(
    table: Table, by: Sequence[int], sub_by: Sequence[int], strings: Strings, comm: Comm, buckets: int,
    sub_buckets: int,
    *, masked: bool,
) -> Table:  # fmt: skip
    """Send each row to the owner of its columns ``by``, in the sub-bucket of ``sub_by``. Collective."""
    if comm.size == 1:
        return table
    if not table.columns:  # rank 0 owns all rows without columns
        total = int(comm.allreduce_sum(np.array([float(table.count)]))[0])
        return Table((), total if comm.rank == 0 else 0)
    ranks = owners_of(table, by, sub_by, strings, comm, buckets, sub_buckets, masked=masked)
    return send(table, ranks, comm, masked=masked)


def send(table: Table, ranks: Array, comm: Comm, *, masked: bool) -> Table:
    """Send each row to its rank. Collective."""
    columns = tuple(send_to_owners(table.columns, ranks, comm, masked=masked))
    return Table(columns, len(columns[0]))


def owners_of(
    table: Table, by: Sequence[int], sub_by: Sequence[int], strings: Strings, comm: Comm, buckets: int,
    sub_buckets: int,
    *, masked: bool,
) -> Array:  # fmt: skip
    """Return the rank that owns each row by its columns ``by``, in the sub-bucket of ``sub_by``."""
    hashed = [table.columns[b] for b in (*by, *sub_by)]
    width = len(hashed)
    owner = Owner(range(len(by)), [c.type for c in hashed], buckets, comm.size, range(len(by), width), sub_buckets)
    rows = flatten(hashed, table.count, masked=masked)
    return owner.ranks(rows, width + masked, width if masked else -1, strings, table.count)


def _kind(column_type: Type) -> int:
    if column_type.kind == "text":
        return hashing.TEXT
    if column_type.kind == "fraction":
        return hashing.FLOAT if column_type.bits < 64 else hashing.LONG  # noqa: PLR2004 - a word
    return hashing.INT if column_type.hashes_as_int else hashing.LONG
