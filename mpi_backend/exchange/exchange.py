"""Send derived rows to the ranks that own their keys, and changed rows to the copies of relations.

A row is (id at the owner, values) or, if the id is unknown, (key, values). A message has two counts for each relation,
then for each relation its rows of the first kind and of the second kind. All rules of a stratum share one exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.comm import by_sender
from mpi_backend.exchange.wire import Wire
from mpi_backend.kernels import lists, messages
from mpi_backend.kernels.flags import IN_DELTA, PRESENT
from mpi_backend.state.owner import Owner
from mpi_backend.state.refinable import looked_up_by
from mpi_backend.state.shape import column_types

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import LoopState
    from mpi_backend.state.relation_part import Accumulator, RelationPart

    Combine = Callable[[RelationPart, Accumulator, Array, Array, int, int], None]
"""(part, into, ids, words, at, stride): combines flat rows into an accumulator."""


class DeltaExchange:
    """The exchange of ghosts that changed. It combines received rows into ``pending``."""

    def __init__(self, loop: LoopState, combine: Combine) -> None:
        self._loop = loop
        self._combine = combine
        self._wire = Wire(loop)

    @property
    def waiting(self) -> int:
        """Return the number of rows to be sent."""
        return sum(len(p.ghost.dirty) for p in self._loop.parts.values())

    def prepare(self) -> None:
        """Load the kernels."""
        if self._loop.comm.size > 1:
            self._encode(list(self._loop.parts.values()))

    def run(self, votes: Array) -> Array:
        """Exchange rows. Return the votes of all ranks, one row for each rank. Collective."""
        if self._loop.comm.size == 1:
            return votes[None, :]
        message, all_votes = self.send(votes)
        self.receive(*message)
        return all_votes

    def send(self, votes: Array) -> tuple[tuple[Array, Array], Array]:
        """Send rows. Return what ``receive`` takes, and the votes of all ranks, one row for each rank. Collective."""
        comm, parts = self._loop.comm, list(self._loop.parts.values())
        if self.waiting:
            words, counts = self._encode(parts)
        else:
            words, counts = np.zeros(0, np.int64), np.zeros(comm.size, np.int64)
        received, lengths, all_votes = self._wire.exchange_and_vote(words, counts, parts, votes)
        return (received, lengths), all_votes

    def receive(self, words: Array, lengths: Array) -> None:
        """Combine the received rows, by sender, into ``pending``."""
        for _, message in by_sender(words, lengths):
            self._receive(list(self._loop.parts.values()), message)

    def _encode(self, parts: list[RelationPart]) -> tuple[Array, Array]:
        """Return the messages to all ranks, one after the other, and their lengths.

        A message has two counts for each relation, then the rows. A message without rows is empty.
        """
        size = self._loop.comm.size
        lengths = np.zeros(size, np.int64)
        counts = np.zeros((len(parts), 2, size), np.int64)
        strides = [(1 + p.value_words, p.shape.key_words + p.value_words) for p in parts]
        for n, p in enumerate(parts):
            p.ghost.sort_changed(len(p.ghosts))
            messages.count_messages(p.ghost.dirty, p.ghost_owner, p.ghost_remote, counts[n, 0], counts[n, 1])
            lengths += counts[n, 0] * strides[n][0] + counts[n, 1] * strides[n][1]
        lengths += np.where(lengths > 0, 2 * len(parts), 0)
        ends = np.cumsum(lengths)
        flat = np.empty(int(ends[-1]), np.int64)
        at = ends - lengths
        partners = np.flatnonzero(lengths)
        heads = at[partners, None] + np.arange(2 * len(parts))
        flat[heads] = counts.reshape(2 * len(parts), size)[:, partners].T
        at += 2 * len(parts)
        for n, p in enumerate(parts):
            by_id = at.copy()
            by_key = at + counts[n, 0] * strides[n][0]
            at = by_key + counts[n, 1] * strides[n][1]
            g = p.ghost
            places = np.empty(len(g.dirty), np.int64)
            keys = p.ghosts.keys, p.shape.key_words
            messages.write_heads(
                g.dirty, p.ghost_owner, p.ghost_remote, *keys, p.value_words, by_id, by_key, flat, places
            )
            messages.write_values(g.dirty, places, g.v, g.k, g.p, any(p.shape.dependents), p.traced, flat)
            self._mark_sent(g)
        return flat, lengths

    def _mark_sent(self, ghost: Accumulator) -> None:
        """Clear the list of changed ghosts. Under a lattice the best value sent stays: no worse value is sent again."""
        if self._loop.facts.is_lattice:
            lists.unqueue(ghost.f, ghost.dirty)
            ghost.n[0] = 0
        else:
            ghost.clear()

    def _receive(self, parts: list[RelationPart], words: Array) -> None:
        at = 2 * len(parts)
        for n, p in enumerate(parts):
            count_by_id, count_by_key = int(words[2 * n]), int(words[2 * n + 1])
            if count_by_id:
                stride = 1 + p.value_words
                ids = words[at : at + count_by_id * stride : stride].astype(np.int32)
                self._combine(p, p.pending, ids, words, at + 1, stride)
                at += count_by_id * stride
            if count_by_key:
                width = p.shape.key_words
                stride = width + p.value_words
                ids = p.keys.add(words, at, stride, count_by_key)
                p.grow()
                self._combine(p, p.pending, ids, words, at + width, stride)
                at += count_by_key * stride


class CopyExchange:
    """The exchange of rows that changed to the copies of relations, which lie where rules look them up."""

    def __init__(self, loop: LoopState) -> None:
        self._loop = loop
        self._copies = [i for n, i in sorted(loop.indexes.items()) if i.planned.copy and n != loop.facts.mirror]
        self._owners = {}
        for i in self._copies:
            buckets = loop.owners[i.planned.relation].bucket_count
            distribution = i.planned.keys, column_types(i.part.planned), buckets, loop.comm.size
            self._owners[i.planned.id] = Owner(*distribution, (), loop.facts.sub_buckets)
        self._looked_up = {
            i.planned.id: looked_up_by(i.planned.id, loop.facts.stratum) & loop.facts.moving for i in self._copies
        }
        self._wire = Wire(loop)

    def run(self) -> None:
        """Send changed rows to all copies, which replace the old ones. Collective."""
        for index in self._copies:
            part, copy = self._loop.parts[index.planned.relation], index.part
            shape = part.shape
            stride = max(1, shape.key_words + shape.value_words(traced=False))
            rows = self._rows(part, stride)
            self._clear_delta(copy)
            is_everywhere = index.planned.placement == "everywhere"
            for words in self._send(index.planned.id, rows, part, stride, is_everywhere=is_everywhere):
                self._receive(copy, words, stride)
            index.link_current()

    def _rows(self, part: RelationPart, stride: int) -> Array:
        ids = part.current[: part.size]
        values, width = part.driver_values, part.shape.key_words
        out = np.zeros(len(ids) * stride, np.int64)
        out.reshape(len(ids), stride)[:, :width] = part.keys.keys[ids]
        places = np.arange(len(ids)) * stride + width
        masked, traced = any(part.shape.dependents), False
        messages.write_values(ids, places, values.v, values.k, values.p, masked, traced, out)
        return out

    def _send(self, index: int, rows: Array, part: RelationPart, stride: int, *, is_everywhere: bool) -> list[Array]:
        comm = self._loop.comm
        if comm.size == 1:
            return [rows]
        if is_everywhere:
            return self._wire.exchange_rows([rows] * comm.size, part, stride)
        count = len(rows) // stride
        mask_at = part.shape.key_words - 1 if part.shape.has_null_keys else -1
        owner, keys = self._owners[index], (rows, stride, mask_at, self._loop.strings, count)
        to_all = self._loop.facts.goes_to_all(index)
        if self._looked_up[index]:
            owner.counts = self._loop.most_sub_buckets(self._looked_up[index])
        ranks = owner.all_ranks(*keys) if to_all else [owner.ranks(*keys)]
        table = rows.reshape(count, stride)
        picked = [[table[owners == r] for owners in ranks] for r in range(comm.size)]
        return self._wire.exchange_rows([np.concatenate(parts).ravel() for parts in picked], part, stride)

    def _clear_delta(self, copy: RelationPart) -> None:
        """Unmark the previous delta. An iterated relation loses all rows, since all are sent again."""
        ids = copy.current[: copy.size]
        if self._loop.facts.is_iterated:
            copy.state.f[ids] = 0
        else:
            lists.unmark_delta(copy.state.f, ids)
        copy.size = 0

    def _receive(self, copy: RelationPart, words: Array, stride: int) -> None:
        count = len(words) // stride
        if not count:
            return
        ids = copy.keys.add(words, 0, stride, count)
        copy.grow()
        state = copy.state
        messages.read_rows(
            ids,
            words,
            copy.shape.key_words,
            stride,
            state.v,
            state.k,
            state.f,
            any(copy.shape.dependents),
            PRESENT | IN_DELTA,
        )
        copy.current = np.concatenate([copy.current[: copy.size], ids])
        copy.size += count
