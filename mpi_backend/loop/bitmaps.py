"""Evaluates a set that carries one key and moves the other along edges, in blocks of bitmaps (``kernels.bitmaps``).

Blocks are wide where results are dense, one word where they are sparse; the first block shows which (rule 2 of the
limits in docs/architecture.md). Nothing is exchanged: the carried key stays where it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mpi_backend.kernels import bitmaps as kernel
from mpi_backend.state.index import place_rows
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.rows import flat
from mpi_backend.state.types import Column, Table

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.load.builder import Routed
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.strings import Strings

_MOST_WORDS = 1 << 25
"""256 MiB for a bitmap of all vertices."""
_DENSE, _HALF = 0.1, 0.03
"""Densities of a block above which blocks have 16 and 4 words."""


@dataclass(frozen=True)
class Block:
    """Bit b of word w of ``bits[i * width ...]`` says that (``sources[64 w + b]``, ``vertices[i]``) is there."""

    sources: Array
    vertices: Array
    width: int
    bits: Array
    pairs: int


class Bitmaps:
    """The stratum's edges and base rows on dense ids; ``run`` makes blocks of them, ``rows`` the relation's rows."""

    def __init__(self, facts: Facts, routed: Routed, strings: Strings) -> None:
        bitmap = facts.stratum.bitmap
        assert bitmap is not None  # noqa: S101 - for the type checker
        [relation] = facts.stratum.relations
        base, edges = routed.starts[relation.name][0], [routed.static[i] for i in bitmap.edges]
        self._name = relation.name
        self._moving = bitmap.moving
        self._types = [c.type for c in base.columns]
        self._strings = strings
        self._vertices = KeyMap(1)
        self._vertices.expect_all(c.words for t in edges for c in t.columns)
        origins = np.concatenate([self._vertices.add(t.columns[0].words) for t in edges])
        targets = np.concatenate([self._vertices.add(t.columns[1].words) for t in edges])
        self._offsets, order = place_rows(origins, len(self._vertices), None)
        self._targets = targets[order]
        self._start(base)
        self._blocks: list[Block] = []
        self._width = 1
        self.iterations = 0
        self.per_iteration: list[dict[str, Any]] = []

    @staticmethod
    def fits(facts: Facts, routed: Routed) -> bool:
        """Whether the Plan has this form, and no key is null."""
        return facts.stratum.bitmap is not None and not any(s.has_null_keys for s in routed.shape.relations.values())

    def run(self) -> None:
        """All blocks of sources."""
        size = len(self._vertices)
        queue, spare, touched = (np.zeros(size, np.int32) for _ in range(3))
        queued, seen = np.zeros(size, np.bool_), np.zeros(size, np.bool_)
        sizes = np.zeros(2, np.int64)
        full, delta = np.zeros(size, np.uint64), np.zeros(size, np.uint64)
        low, count = 0, len(self._sources)
        while low < count:
            high = min(count, low + 64 * self._width)
            width = self._width
            kernel.begin(self._starts, self._firsts, low, high, width, full, delta, queue, queued, touched, seen, sizes)
            rounds = kernel.follow(
                self._offsets, self._targets, width, full, delta, queue, spare, queued, touched, seen, sizes
            )
            self.iterations = max(self.iterations, rounds)
            reached = touched[: sizes[kernel.TOUCHED]].copy()
            bits = np.empty(len(reached) * width, np.uint64)
            pairs = kernel.collect(reached, width, full, seen, bits)
            sources = self._sources.keys[low:high, 0]
            self._blocks.append(Block(sources, reached, width, bits, pairs))
            if low == 0:
                self._choose(pairs, len(reached))
                full, delta = (np.zeros(size * self._width, np.uint64) for _ in range(2))
            low = high

    @property
    def tuples(self) -> int:
        """Rows on this rank."""
        return sum(b.pairs for b in self._blocks) + len(self._loose)

    @property
    def bytes(self) -> int:
        """Held in memory."""
        blocks = sum(b.bits.nbytes + b.vertices.nbytes for b in self._blocks)
        return blocks + self._offsets.nbytes + self._targets.nbytes + self._vertices.bytes + self._loose.bytes

    def results(self) -> dict[str, Table]:
        """The relation's rows."""
        total = self.tuples
        xs, ys = np.empty(total, np.int64), np.empty(total, np.int64)
        at = 0
        for b in self._blocks:
            names = self._vertices.keys[b.vertices, 0]
            at = kernel.pairs_of(b.sources, names, b.width, b.bits, xs, ys, at)
        xs[at:] = self._loose.keys[: len(self._loose), 0]
        ys[at:] = self._loose.keys[: len(self._loose), 1]
        words = (ys, xs) if self._moving == 0 else (xs, ys)
        texts = self._strings.all() if any(t.kind == "text" for t in self._types) else None
        found = zip(self._types, words, strict=True)
        columns = tuple(Column(t, w, None, texts if t.kind == "text" else None) for t, w in found)
        return {self._name: Table(columns, total)}

    def _start(self, base: Table) -> None:
        """Base rows by source; rows whose vertex no edge mentions are just rows (``loose``: source, vertex)."""
        carried = base.columns[1 - self._moving]
        moving = base.columns[self._moving]
        found = self._vertices.find(moving.words)
        inside = found >= 0
        self._loose = KeyMap(2)
        outside = Table((carried.take(~inside), moving.take(~inside)), int((~inside).sum()))
        self._loose.add(flat(outside.columns, outside.count, masked=False), count=outside.count)
        self._sources = KeyMap(1)
        sources = self._sources.add(np.ascontiguousarray(carried.words[inside]))
        self._starts, order = place_rows(sources, len(self._sources), None)
        self._firsts = found[inside][order]

    def _choose(self, pairs: int, reached: int) -> None:
        density = pairs / max(1, reached * 64)
        wanted = 16 if density > _DENSE else 4 if density > _HALF else 1
        fits = max(1, _MOST_WORDS // max(1, len(self._vertices)))
        self._width = min(wanted, fits, max(1, -(-len(self._sources) // 64)))
