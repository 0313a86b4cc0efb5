"""Place the edges of a stratum that has a mirrored form: by degree, at one of their ends (hybrid placement).

With many edges a row, an edge lies at its *target*: rows to apply are sent to it, as *mirrors*. With few, it lies at
its *source*, from where derived rows are sent. A *heavy* end, a hub, has more than its part of all edges. Such an edge
lies at its other end or, if both are heavy, at a rank that the hash of both selects: a hub is work for all ranks
(docs/balance.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.state.owner import owners_of
from mpi_backend.state.types import Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.state.strings import Strings

MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Ends:
    """The ends of an index's edges: positions of their columns in its input, and the sorted hashes of heavy ones."""

    sources: tuple[int, ...]
    targets: tuple[int, ...]
    heavy_sources: Array
    heavy_targets: Array


@dataclass(frozen=True)
class EdgePlacement:
    """The placement of edges, by index: ``at_targets`` unless an end is heavy, or at sources."""

    at_targets: bool
    ends: dict[int, Ends]

    def __str__(self) -> str:
        """Return the placement for the report."""
        ends = [h for e in self.ends.values() for h in (e.heavy_sources, e.heavy_targets)]
        hubs = len(np.unique(np.concatenate(ends)))
        spread = f"edges of {hubs} hub{'s' if hubs > 1 else ''} spread" if hubs else ""
        return ", ".join(x for x in ("mirrored" if self.at_targets else "", spread) if x)

    @property
    def has_ghosts(self) -> bool:
        """Return whether rules derive rows of other ranks."""
        return not self.at_targets or any(len(e.heavy_targets) for e in self.ends.values())

    def ranks(
        self, index: int, table: Table, picked: Sequence[int], strings: Strings, comm: Comm, buckets: int, *,
        masked: bool,
    ) -> Array:  # fmt: skip
        """Return the rank of each edge. ``picked`` are the positions of the table's columns in the index's input."""
        ends = self.ends[index]
        sources = [picked.index(c) for c in ends.sources]
        targets = [picked.index(c) for c in ends.targets]
        first, second = (targets, sources) if self.at_targets else (sources, targets)
        heavy_first, heavy_second = ends.heavy_sources, ends.heavy_targets
        if self.at_targets:
            heavy_first, heavy_second = heavy_second, heavy_first
        ranks = owners_of(table, first, (), strings, comm, buckets, 1, masked=masked)
        if not len(heavy_first):
            return ranks
        moved = np.flatnonzero(np.isin(hashes_of(table, first), heavy_first))
        if len(moved):
            edges = Table(tuple(c.take(moved) for c in table.columns), len(moved))
            others = owners_of(edges, second, (), strings, comm, buckets, 1, masked=masked)
            hashes = hashes_of(edges, second)
            is_heavy = np.isin(hashes, heavy_second)
            of_both = (hashes ^ hashes_of(edges, first)) * MIX >> np.uint64(32)
            ranks[moved] = np.where(is_heavy, of_both % np.uint64(comm.size), others)
        return ranks


def hashes_of(table: Table, columns: Iterable[int]) -> Array:
    """Return a hash of the words at ``columns`` of each row; that of one column is distinct for distinct words."""
    mixed = np.zeros(table.count, np.uint64)
    for c in columns:
        mixed = (mixed ^ table.columns[c].words.view(np.uint64)) * MIX
    return mixed
