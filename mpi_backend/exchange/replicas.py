"""Copy the rows of inputs to all ranks of a split bucket, so that a rule over rows that lie there finds them.

This is the intra-bucket exchange of Load-Balancing Parallel Relational Algebra, section 3, for inputs: they do not
change, so their rows are sent once for each split, and not in each iteration. A merge leaves them where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.state.index import fit_int32, place_rows
from mpi_backend.state.owner import Owner
from mpi_backend.state.refinable import local_lookups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.index import StaticIndex
    from mpi_backend.state.loop_state import LoopState


class Replicas:
    """The static indexes that rules look up where the rows of relations with changing sub-buckets are."""

    def __init__(self, loop: LoopState) -> None:
        self._loop = loop
        facts = loop.facts
        self._readers: dict[int, set[str]] = {}
        for rule in facts.stratum.rules:
            for probe in local_lookups(rule, facts.stratum, facts.moving):
                self._readers.setdefault(probe.index, set()).add(rule.driver.relation)
        self._owners = {i: self._owner(i, min(names)) for i, names in self._readers.items()}

    def update(self) -> None:
        """Send the rows of buckets that have more sub-buckets than before. Collective."""
        for i, names in self._readers.items():
            owner = self._owners[i]
            held = owner.counts
            assert held is not None  # noqa: S101 - for the type checker
            needed = np.maximum(held, self._loop.most_sub_buckets(names))
            if (needed > held).any():
                self._copy(i, owner, held, needed)
                owner.counts = needed

    def _owner(self, index: int, reader: str) -> Owner:
        """Return the owner of an index's rows, whose ``counts`` are the sub-buckets that have been sent."""
        facts, buckets = self._loop.facts, self._loop.owners[reader].bucket_count
        planned = facts.statics[index]
        types = [facts.input_types(planned.input)[k] for k in planned.keys]
        counts = np.ones_like(self._loop.most_sub_buckets({reader}))
        return Owner(range(len(types)), types, buckets, self._loop.comm.size, (), 1, counts)

    def _copy(self, index: int, owner: Owner, held: Array, needed: Array) -> None:
        static, comm, read = self._loop.statics[index], self._loop.comm, self._loop.facts.statics[index].read
        groups = np.repeat(np.arange(len(static.offsets) - 1, dtype=np.int32), np.diff(static.offsets))
        keys = np.ascontiguousarray(static.keys.keys[: len(static.keys)])
        parts = owner.parts(keys.ravel(), keys.shape[1], -1, self._loop.strings, len(keys))[groups]
        has_more = needed > held
        order = np.flatnonzero(has_more[parts])
        order = order[np.argsort(parts[order], kind="stable")]
        sorted_parts = parts[order]
        outgoing: list[list[Array]] = [[] for _ in range(comm.size)]
        for part in np.flatnonzero(has_more).tolist():
            if part % owner.bucket_count % comm.size == comm.rank:  # the rank that has the rows from the start
                low, high = np.searchsorted(sorted_parts, [part, part + 1])
                for rank in owner.ranks_of_part(part, held[part], needed[part]):
                    outgoing[rank].append(order[low:high])
        table = np.concatenate([keys[groups], _payload(static, read)], axis=1)
        none = np.zeros(0, np.int64)
        received = comm.exchange([table[np.concatenate([none, *rows])].ravel() for rows in outgoing])
        rows = np.concatenate(received).reshape(-1, table.shape[1])
        if len(rows):
            _extend(static, read, groups, rows)


def _payload(static: StaticIndex, read: Sequence[int]) -> Array:
    """Return the columns that rules read as words, and the bits of their nulls."""
    words = [static.payload[c] for c in read]
    columns = [w.view(np.int64) if w.dtype == np.float64 else w.astype(np.int64) for w in words]
    mask = np.zeros(int(static.offsets[-1]), np.int64)
    for c in read:
        mask |= static.nulls[c].astype(np.int64) << c
    return np.stack([*columns, mask], axis=1)


def _extend(static: StaticIndex, read: Sequence[int], groups: Array, rows: Array) -> None:
    """Add received rows to an index."""
    width = static.keys.words
    keys = np.ascontiguousarray(rows[:, :width]).ravel()
    added = static.keys.add(keys, count=len(rows))
    static.offsets, order = place_rows(np.concatenate([groups, added]), len(static.keys), None)
    for at, c in enumerate(read):
        words, values = static.payload[c], np.ascontiguousarray(rows[:, width + at])
        if words.dtype == np.float64:
            values = values.view(np.float64)
        elif words.dtype == np.int32 and fit_int32(values):
            values = values.astype(np.int32)
        static.payload[c] = np.concatenate([words, values])[order]
        static.nulls[c] = np.concatenate([static.nulls[c], rows[:, -1] >> c & 1 != 0])[order]
