"""Evaluate a set that carries one key and moves the other along edges, in blocks of bitmaps (``kernels.bitmaps``).

Blocks are wide if results are dense, and one word wide if they are sparse. The first block decides
(docs/architecture.md, "Evaluation"). Ranks exchange nothing, since the carried key does not change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mpi_backend.kernels import bitmaps as kernel
from mpi_backend.state.index import place_rows
from mpi_backend.state.key_map import KeyMap
from mpi_backend.state.rows import flatten
from mpi_backend.state.types import Column, Table

if TYPE_CHECKING:
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.load.loop_builder import Routed
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.strings import Strings

_MAX_WORDS = 1 << 25
"""The maximum for a bitmap of all vertices: 256 MiB."""
_DENSE, _MEDIUM = 0.1, 0.03
"""The densities of the first block above which blocks have 16 and 4 words."""


@dataclass(frozen=True)
class Block:
    """Pairs of 64 * ``width`` sources: bit b of ``bits[i * width + w]`` is (``sources[64 w + b]``, ``vertices[i]``)."""

    sources: Array
    vertices: Array
    width: int
    bits: Array
    pairs: int


class BitmapLoop:
    """The stratum's edges and base rows with dense ids. ``run`` computes blocks, ``results`` the relation's rows."""

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

    @property
    def form(self) -> str:
        """Return the name of this form, for the report."""
        return "bitmaps"

    @staticmethod
    def fits(facts: Facts, routed: Routed) -> bool:
        """Return whether the Plan has this form and no key is null."""
        return facts.stratum.bitmap is not None and not any(s.has_null_keys for s in routed.shape.relations.values())

    def run(self) -> None:
        """Compute all blocks of sources."""
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
                self._choose_width(pairs, len(reached))
                full, delta = (np.zeros(size * self._width, np.uint64) for _ in range(2))
            low = high

    @property
    def tuples(self) -> int:
        """Return the number of rows on this rank."""
        return sum(b.pairs for b in self._blocks) + len(self._loose)

    @property
    def bytes(self) -> int:
        """Return the bytes in memory."""
        blocks = sum(b.bits.nbytes + b.vertices.nbytes for b in self._blocks)
        return blocks + self._offsets.nbytes + self._targets.nbytes + self._vertices.bytes + self._loose.bytes

    def results(self) -> dict[str, Table]:
        """Return the relation's rows."""
        total = self.tuples
        xs, ys = np.empty(total, np.int64), np.empty(total, np.int64)
        at = 0
        for b in self._blocks:
            names = self._vertices.keys[b.vertices, 0]
            at = kernel.write_pairs(b.sources, names, b.width, b.bits, xs, ys, at)
        xs[at:] = self._loose.keys[: len(self._loose), 0]
        ys[at:] = self._loose.keys[: len(self._loose), 1]
        words = (ys, xs) if self._moving == 0 else (xs, ys)
        texts = self._strings.all() if any(t.kind == "text" for t in self._types) else None
        typed = zip(self._types, words, strict=True)
        columns = tuple(Column(t, w, None, texts if t.kind == "text" else None) for t, w in typed)
        return {self._name: Table(columns, total)}

    def _start(self, base: Table) -> None:
        """Group base rows by source. Rows whose vertex has no edges become result rows (``loose``: source, vertex)."""
        carried = base.columns[1 - self._moving]
        moving = base.columns[self._moving]
        vertices = self._vertices.find(moving.words)
        inside = vertices >= 0
        self._loose = KeyMap(2)
        outside = Table((carried.take(~inside), moving.take(~inside)), int((~inside).sum()))
        self._loose.add(flatten(outside.columns, outside.count, masked=False), count=outside.count)
        self._sources = KeyMap(1)
        sources = self._sources.add(np.ascontiguousarray(carried.words[inside]))
        self._starts, order = place_rows(sources, len(self._sources), None)
        self._firsts = vertices[inside][order]

    def _choose_width(self, pairs: int, reached: int) -> None:
        density = pairs / max(1, reached * 64)
        width = 16 if density > _DENSE else 4 if density > _MEDIUM else 1
        max_width = max(1, _MAX_WORDS // max(1, len(self._vertices)))
        self._width = min(width, max_width, max(1, -(-len(self._sources) // 64)))
