"""Evaluate sets of pairs in rows of bits (``plan.plan.BitRows``, ``kernels.bit_rows``).

A rank has the bits of its own carried values, in the rows of all vertices, and every edge. Ranks exchange the edges
that their pairs have added, once each has followed all that it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mpi_backend.kernels import bit_rows as kernel
from mpi_backend.state.index import place_rows
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.types import Column, Table

if TYPE_CHECKING:
    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.load.loop_builder import Routed
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.strings import Strings
    from pyspark_paralagg.plan.plan import Flow

_MAX_PLACES = 1 << 28
"""The maximum for the numbers of all blocks: 1 GiB, of which the system gives what is written to."""
_ENDS = {"row": kernel.ROW, "carried": kernel.CARRIED, "found": kernel.FOUND}


class BitRowsLoop:
    """The rows of bits of a stratum on this rank. Vertices are numbered alike on all ranks: in the order of words."""

    def __init__(
        self, facts: Facts, routed: Routed, vertices: Array, bits: KeyMap, strings: Strings, comm: Comm
    ) -> None:
        form = facts.stratum.bit_rows
        assert form is not None  # noqa: S101 - for the type checker
        self._names = [r.name for r in facts.stratum.relations]
        self._carried = form.carried
        self._strings = strings
        self._comm = comm
        bases = [routed.starts[name][0] for name in self._names]
        self._types = [[c.type for c in base.columns] for base in bases]
        self._vertices, self._bits = KeyMap(1), bits
        self._vertices.add(vertices)
        self._vertex_of_bit = self._vertices.find(self._bits.keys[: len(self._bits), 0].copy()).astype(np.int64)
        self._flows, self._offsets, self._targets = self._edges(form.flows, routed)
        self._blocks = _blocks(len(self._bits))
        count = len(self._vertices) * len(self._names)
        self._places = np.zeros(count * self._blocks, np.int32)
        self._full, self._delta = (np.zeros(16 * kernel.BLOCK, np.uint64) for _ in range(2))
        self._scratch = np.zeros(self._blocks * kernel.BLOCK, np.uint64), np.zeros(self._blocks, np.int64)
        self._queues = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self._queued = np.zeros(count, np.bool_)
        self._first = np.full(count, -1, np.int64)
        self._sizes = np.zeros(4, np.int64)
        self._added: list[Array] = [np.zeros(16, np.int64), np.zeros(16, np.int64), np.full(64, -1, np.int64)]
        for r, base in enumerate(bases):
            found = self._vertices.find(_words(base.columns[1 - form.carried[r]])).astype(np.int64)
            ids = self._bits.find(_words(base.columns[form.carried[r]])).astype(np.int64)
            place = (found * len(self._names) + r, ids, self._blocks, self._places)
            state = (self._full, self._delta, self._queues[0], self._queued, self._sizes)
            self._full, self._delta = kernel.start(*place, *state)
        self._results: dict[str, Table] = {}
        self.per_iteration: list[dict[str, Any]] = []

    @property
    def form(self) -> str:
        """Return the name of this form, for the report."""
        return "rows of bits"

    @classmethod
    def load(cls, facts: Facts, routed: Routed, strings: Strings, comm: Comm) -> BitRowsLoop | None:
        """Return the loop; None if the Plan has no such form, a key is null, or the rows are too many. Collective."""
        form = facts.stratum.bit_rows
        if form is None or any(s.has_null_keys for s in routed.shape.relations.values()):
            return None
        bases = [routed.starts[r.name][0] for r in facts.stratum.relations]
        own = _unique([c.words for base in bases for c in base.columns])
        parts = [np.frombuffer(b, np.int64) for b in comm.allgather_bytes(own.tobytes())]
        tables = [routed.static[f.index] for f in form.flows if f.index is not None]
        vertices = _unique([*parts, *(c.words for t in tables for c in t.columns)])
        bits = KeyMap(1)
        for base, c in zip(bases, form.carried, strict=True):
            bits.add(_words(base.columns[c]))
        places = len(vertices) * len(bases) * _blocks(len(bits))
        fits = float(places <= _MAX_PLACES and len(vertices) < 1 << kernel.VERTEX_BITS)
        return cls(facts, routed, vertices, bits, strings, comm) if comm.allreduce_min(fits) > 0 else None

    def run(self) -> None:
        """Follow all edges; exchange those that pairs have added; until there are none."""
        step = (self._flows, self._offsets, self._targets, self._vertex_of_bit, len(self._names), self._blocks)
        queue, spare = self._queues
        while True:
            known = int(self._sizes[kernel.EDGES])
            state = (self._places, self._full, self._delta, queue, spare, self._queued, self._first, self._sizes)
            self._full, self._delta, *self._added = kernel.follow(*step, *state, *self._added, *self._scratch)
            if self._comm.size == 1:
                break
            own = self._added[0][known : self._sizes[kernel.EDGES]]
            parts = [np.frombuffer(b, np.int64) for b in self._comm.allgather_bytes(own.tobytes())]
            if not any(map(len, parts)):
                break
            others = np.concatenate([p for rank, p in enumerate(parts) if rank != self._comm.rank])
            place = (len(self._names), self._blocks, self._places, self._full, self._delta, queue, self._queued)
            self._full, self._delta, *self._added = kernel.add_edges(
                others, self._flows, *place, self._first, self._sizes, *self._added, *self._scratch
            )

    @property
    def iterations(self) -> int:
        """Return the number of passes through the queue."""
        return int(self._sizes[kernel.ROUNDS])

    @property
    def tuples(self) -> int:
        """Return the number of rows on this rank."""
        return int(kernel.count_bits(self._full))

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        arrays: list[Array] = [self._places, self._full, self._delta, self._offsets, self._targets, self._first]
        return sum(a.nbytes for a in [*arrays, *self._added]) + self._vertices.bytes

    def results(self) -> dict[str, Table]:
        """Return this rank's rows of each relation."""
        if not self._results:
            self._results = {name: self._table(r) for r, name in enumerate(self._names)}
        return self._results

    def _table(self, r: int) -> Table:
        rows = (r, len(self._names), self._blocks, self._places, self._full)
        total = int(kernel.count_pairs(*rows))
        values, vertices = np.empty(total, np.int64), np.empty(total, np.int64)
        names = (self._bits.keys[: len(self._bits), 0].copy(), self._vertices.keys[: len(self._vertices), 0].copy())
        kernel.write_rows(*rows, *names, values, vertices)
        texts = self._strings.all() if any(t.kind == "text" for t in self._types[r]) else None
        words = (values, vertices) if self._carried[r] == 0 else (vertices, values)
        typed = zip(self._types[r], words, strict=True)
        return Table(tuple(Column(t, w, None, texts if t.kind == "text" else None) for t, w in typed), total)

    def _edges(self, flows: tuple[Flow, ...], routed: Routed) -> tuple[Array, Array, Array]:
        """Return the flows as numbers, and the lookups: offsets by vertex, and the vertices found."""
        numbers: list[list[int]] = []
        offsets: list[Array] = []
        targets: list[Array] = []
        for flow in flows:
            lookup = -1
            if flow.index is not None and flow.found is not None:
                table = routed.static[flow.index]
                key, found = table.columns[0], table.columns[1 + flow.found]
                rows = np.ones(table.count, np.bool_) if found.nulls is None else ~found.nulls
                origins = self._vertices.find(key.words[rows])
                starts, order = place_rows(origins, len(self._vertices), None)
                lookup = len(offsets)
                offsets.append(starts.astype(np.int64) + sum(len(t) for t in targets))
                targets.append(self._vertices.find(found.words[rows])[order].astype(np.int64))
            names = (flow.head, flow.source, flow.reads)
            relations = [-1 if name is None else self._names.index(name) for name in names]
            ends = [_ENDS[end or "row"] for end in (flow.key, flow.origin, flow.target)]
            numbers.append([*relations, lookup, *ends])
        all_offsets = np.array(offsets or [np.zeros(len(self._vertices) + 1, np.int64)])
        return np.array(numbers, np.int64), all_offsets, np.concatenate([np.zeros(0, np.int64), *targets])


def _blocks(values: int) -> int:
    """Return the blocks of a row with so many bits."""
    return max(1, -(-values // (64 * kernel.BLOCK)))


def _words(column: Column) -> Array:
    return np.ascontiguousarray(column.words)


def _unique(words: list[Array]) -> Array:
    return np.unique(np.concatenate([np.zeros(0, np.int64), *words]))
