"""Keep the buckets of a relation's rows on this rank by id, so that each key is hashed only once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.kernels import sub_buckets as kernel
from mpi_backend.state.sub_buckets import first_places

if TYPE_CHECKING:
    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.owner import Owner
    from mpi_backend.state.relation_part import RelationPart
    from mpi_backend.state.strings import Strings


class BucketsById:
    """The bucket (of ``Owner.counts``) and the hash for the sub-bucket of each id: 8 bytes a row."""

    def __init__(self) -> None:
        self._parts = np.zeros(0, np.int32)
        self._hashes = np.zeros(0, np.int32)

    def prepare(self, owner: Owner) -> None:
        """Load the kernels."""
        flags, ids = np.zeros(0, np.uint8), np.zeros(0, np.int32)
        self._count(flags, owner)
        self._list_leaving(flags, owner, np.zeros(3, np.int64))
        self.ranks(ids, owner)

    def extend(self, part: RelationPart, owner: Owner, strings: Strings) -> None:
        """Hash the keys that are new."""
        known, size, width = len(self._parts), len(part.keys), part.shape.key_words
        mask_at = width - 1 if part.shape.has_null_keys else -1
        rows = np.ascontiguousarray(part.keys.keys[known:size]).ravel(), width, mask_at, strings, size - known
        self._parts = np.concatenate([self._parts, owner.parts(*rows)])
        self._hashes = np.concatenate([self._hashes, owner.sub_hashes(*rows)])

    def sizes(self, part: RelationPart, owner: Owner) -> Array:
        """Return the rows of each sub-bucket that are on this rank, as votes."""
        return self._count(part.state.f, owner)

    def leaving(self, part: RelationPart, owner: Owner, comm: Comm) -> tuple[Array, Array]:
        """Return the ids of rows that other ranks own now, and their ranks."""
        place = np.array([owner.bucket_count, comm.size, comm.rank])
        return self._list_leaving(part.state.f, owner, place)

    def ranks(self, ids: Array, owner: Owner) -> Array:
        """Return the ranks that own these ids."""
        return owner.ranks_by_hash(self._parts[ids], self._hashes[ids])

    def _count(self, flags: Array, owner: Owner) -> Array:
        assert owner.counts is not None  # noqa: S101 - for the type checker
        out = np.zeros(int(owner.counts.sum()))
        kernel.count_rows(flags, self._parts, self._hashes, owner.counts, first_places(owner.counts), out)
        return out

    def _list_leaving(self, flags: Array, owner: Owner, place: Array) -> tuple[Array, Array]:
        ids, ranks = np.empty(len(self._parts), np.int32), np.empty(len(self._parts), np.int32)
        n = kernel.list_leaving(flags, self._parts, self._hashes, owner.counts, place, ids, ranks)
        return ids[:n], ranks[:n]
