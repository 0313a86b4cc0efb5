"""Rows that rules derived for keys of other ranks go to their owners; copies of relations follow them.

A row is (id at the owner, values) or, where the id is not known, (key, values): a message has for each relation rows
of the first kind, then of the second, and how many of each. All rules of a stratum share one exchange.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.exchange.wire import Wire
from mpi_backend.kernels import lists, messages
from mpi_backend.kernels.flags import IN_DELTA, PRESENT
from mpi_backend.state.owner import Owner
from mpi_backend.state.shape import column_types

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.loop_state import Loop
    from mpi_backend.state.relation_part import Accumulator, Part

    Combine = Callable[[Part, Accumulator, Array, Array, int, int], None]
"""(part, into, ids, words, at, stride): takes flat rows into an accumulator."""


class DeltaExchange:
    """Sends ghosts that changed, and aggregates what comes."""

    def __init__(self, loop: Loop, combine: Combine) -> None:
        self._loop = loop
        self._combine = combine
        self._wire = Wire(loop)

    @property
    def waiting(self) -> int:
        """Rows that wait to be sent."""
        return sum(len(p.ghost.dirty) for p in self._loop.parts.values())

    def prepare(self) -> None:
        """Loads what it calls."""
        if self._loop.comm.size > 1:
            self._written(list(self._loop.parts.values()))

    def run(self, votes: Array) -> Array:
        """Everybody's votes, a row a rank. Collective."""
        comm = self._loop.comm
        if comm.size == 1:
            return votes[None, :]
        parts = list(self._loop.parts.values())
        if self.waiting:
            words, counts = self._written(parts)
        else:
            words, counts = np.zeros(0, np.int64), np.zeros(comm.size, np.int64)
        received, heard = self._wire.meet(words, counts, parts, votes)
        for words in received:
            self._receive(parts, words)
        return heard

    def _written(self, parts: list[Part]) -> tuple[Array, Array]:
        """A message for each rank, one after the other, and their lengths.

        It has two counts a relation, then the rows; a rank that gets no rows gets nothing.
        """
        size = self._loop.comm.size
        lengths = np.zeros(size, np.int64)
        counts = np.zeros((len(parts), 2, size), np.int64)
        strides = [(1 + p.value_words, p.shape.key_words + p.value_words) for p in parts]
        for n, p in enumerate(parts):
            p.ghost.ascend(len(p.ghosts))
            messages.count_messages(p.ghost.dirty, p.ghost_owner, p.ghost_remote, counts[n, 0], counts[n, 1])
            lengths += counts[n, 0] * strides[n][0] + counts[n, 1] * strides[n][1]
        lengths += np.where(lengths > 0, 2 * len(parts), 0)
        ends = np.cumsum(lengths)
        flat = np.empty(int(ends[-1]), np.int64)
        at = ends - lengths
        for r in range(size):
            if lengths[r]:
                flat[at[r] : at[r] + 2 * len(parts)] = counts[:, :, r].ravel()
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
            self._sent(g)
        return flat, lengths

    def _sent(self, ghost: Accumulator) -> None:
        """Under a lattice the best value sent stays: what is no better is never sent again."""
        if self._loop.facts.is_lattice:
            lists.unqueue(ghost.f, ghost.dirty)
            ghost.n[0] = 0
        else:
            ghost.clear()

    def _receive(self, parts: list[Part], words: Array) -> None:
        if not len(words):
            return
        at = 2 * len(parts)
        for n, p in enumerate(parts):
            known, unknown = int(words[2 * n]), int(words[2 * n + 1])
            if known:
                stride = 1 + p.value_words
                ids = words[at : at + known * stride : stride].astype(np.int32)
                self._combine(p, p.pending, ids, words, at + 1, stride)
                at += known * stride
            if unknown:
                width = p.shape.key_words
                stride = width + p.value_words
                ids = p.keys.add(words, at, stride, unknown)
                p.grow()
                self._combine(p, p.pending, ids, words, at + width, stride)
                at += unknown * stride


class CopyExchange:
    """Copies of relations that live where rules look them up: rows that changed go there and replace the old ones."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._copies = [i for n, i in sorted(loop.indexes.items()) if i.planned.copy and n != loop.facts.mirror]
        self._owners = {}
        for i in self._copies:
            buckets = loop.owners[i.planned.relation].bucket_count
            places = i.planned.keys, column_types(i.part.of), buckets, loop.comm.size
            self._owners[i.planned.id] = Owner(*places, (), loop.facts.spread.count)
        self._wire = Wire(loop)

    def run(self) -> None:
        """Collective."""
        for index in self._copies:
            own, copy = self._loop.parts[index.planned.relation], index.part
            form = own.shape
            stride = max(1, form.key_words + form.value_words(traced=False))
            rows = self._rows(own, stride)
            self._forget(copy)
            for words in self._send(
                index.planned.id, rows, own, stride, everywhere=index.planned.placement == "everywhere"
            ):
                self._receive(copy, words, stride)
            index.link_current()

    def _rows(self, own: Part, stride: int) -> Array:
        ids = own.current[: own.size]
        values, width = own.driver_values, own.shape.key_words
        out = np.zeros(len(ids) * stride, np.int64)
        out.reshape(len(ids), stride)[:, :width] = own.keys.keys[ids]
        places = np.arange(len(ids)) * stride + width
        masked, traced = any(own.shape.dependents), False
        messages.write_values(ids, places, values.v, values.k, values.p, masked, traced, out)
        return out

    def _send(self, index: int, rows: Array, own: Part, stride: int, *, everywhere: bool) -> list[Array]:
        comm = self._loop.comm
        if comm.size == 1:
            return [rows]
        if everywhere:
            return self._wire.exchange_rows([rows] * comm.size, own, stride)
        count = len(rows) // stride
        mask_at = own.shape.key_words - 1 if own.shape.has_null_keys else -1
        owner, where = self._owners[index], (rows, stride, mask_at, self._loop.strings, count)
        to_all = index in self._loop.facts.spread.to_all
        ranks = owner.all_ranks(*where) if to_all else [owner.ranks(*where)]
        table = rows.reshape(count, stride)
        picked = [[table[of == r] for of in ranks] for r in range(comm.size)]
        return self._wire.exchange_rows([np.concatenate(parts).ravel() for parts in picked], own, stride)

    def _forget(self, copy: Part) -> None:
        """The former delta is no delta any more; an iterated relation comes anew."""
        ids = copy.current[: copy.size]
        if self._loop.facts.is_iterated:
            copy.state.f[ids] = 0
        else:
            lists.unmark_delta(copy.state.f, ids)
        copy.size = 0

    def _receive(self, copy: Part, words: Array, stride: int) -> None:
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
