"""Place the edges of a stratum that has a mirrored form: by degree, at one of their ends (hybrid placement).

With many edges a row, an edge lies at its *target*: rows to apply are sent to it, as *mirrors*. With few, it lies at
its *source*, from where derived rows are sent. A *heavy* end has more than its part of all edges; such an edge lies at
its other end, and if both are heavy, at a rank that the hash of both selects. So a hub's edges are work for all ranks
(docs/balance.md, which has the measurements).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.state.owner import owners_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.load.inputs import Inputs
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.strings import Strings
    from mpi_backend.state.types import Table
    from pyspark_paralagg.plan.plan import StaticIndex

EDGES_A_RANK = 2
"""Edges lie at targets if rows have on average more edges than this for each rank, as each row goes to all ranks."""
HEAVY_PARTS = 8
"""An end is heavy if it has more than 1/HEAVY_PARTS of a rank's fair part of the edges."""
_SAMPLED_ROWS = 1 << 16
_SAMPLE_BITS = 6
"""Of large inputs one key in 2^6 is counted."""
_MIX = np.uint64(0x9E3779B97F4A7C15)


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
        heavy = sum(len(e.heavy_sources) + len(e.heavy_targets) for e in self.ends.values())
        at = "mirrored" if self.at_targets else "edges at sources"
        return f"{at} but for {heavy} heavy ends" if heavy else at

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
        moved = np.flatnonzero(np.isin(_hashes(table, first), heavy_first)) if len(heavy_first) else ()
        if len(moved):
            edges = type(table)(tuple(c.take(moved) for c in table.columns), len(moved))
            others = owners_of(edges, second, (), strings, comm, buckets, 1, masked=masked)
            hashes = _hashes(edges, second)
            is_heavy = np.isin(hashes, heavy_second)
            of_both = (hashes ^ _hashes(edges, first)) * _MIX >> np.uint64(32)
            ranks[moved] = np.where(is_heavy, of_both % np.uint64(comm.size), others)
        return ranks


def place_edges(facts: Facts, inputs: Inputs, comm: Comm) -> Facts:
    """Return the facts of the mirrored stratum, if the Plan has one and it is less work. Collective."""
    mirrored = facts.stratum.mirrored if comm.size > 1 else None
    if mirrored is None:
        return facts
    by_target = {i.id: i for i in mirrored.stratum.static_indexes}
    indexes = [facts.statics[i] for i in mirrored.edges]
    at_targets = _mean_degree(indexes, inputs, comm) > EDGES_A_RANK * comm.size
    ends = {}
    for i in indexes:
        table, sources, targets = inputs.tables[i.input], i.partition_by, by_target[i.id].partition_by
        ends[i.id] = Ends(sources, targets, _heavy(table, sources, comm), _heavy(table, targets, comm))
    if not at_targets and not any(len(e.heavy_sources) for e in ends.values()):
        return facts
    return replace(facts, stratum=mirrored.stratum, mirror=mirrored.mirror, placement=EdgePlacement(at_targets, ends))


def _hashes(table: Table, columns: Iterable[int]) -> Array:
    """Return a hash of the words at ``columns`` of each row; that of one column is distinct for distinct words."""
    mixed = np.zeros(table.count, np.uint64)
    for c in columns:
        mixed = (mixed ^ table.columns[c].words.view(np.uint64)) * _MIX
    return mixed


def _heavy(table: Table, columns: Iterable[int], comm: Comm) -> Array:
    """Return the sorted hashes of heavy ends, estimated from a sample of each rank's rows. Collective."""
    share = 1 / (HEAVY_PARTS * comm.size)
    hashes = _hashes(table, columns)
    if table.count > _SAMPLED_ROWS:
        hashes = hashes[np.random.default_rng(0).integers(table.count, size=_SAMPLED_ROWS)]
    hashes, counts = np.unique(hashes, return_counts=True)
    edges = counts * (table.count / max(1, counts.sum()))
    # An end that is heavy in all has a heavy part of some rank's rows.
    named = comm.allgather_bytes(hashes[edges > share * table.count].tobytes())
    candidates = np.unique(np.concatenate([np.frombuffer(b, np.uint64) for b in named]))
    places = np.searchsorted(hashes, candidates)
    is_here = places < len(hashes)
    is_here[is_here] = hashes[places[is_here]] == candidates[is_here]
    own = np.zeros(len(candidates) + 1)
    own[:-1][is_here] = edges[places[is_here]]
    own[-1] = table.count
    in_all = comm.allreduce_sum(own)
    heavy: Array = candidates[in_all[:-1] > share * in_all[-1]]
    return heavy


def _mean_degree(edges: Iterable[StaticIndex], inputs: Inputs, comm: Comm) -> float:
    """Return the mean number of edges of the keys of each rank's share of the input; of many, a sample is counted.

    A hub among the sampled keys counts as one key: its edges are not extrapolated.
    """
    counted = np.zeros(2)
    for index in edges:
        table = inputs.tables[index.input]
        mixed = _hashes(table, index.keys)
        if table.count > _SAMPLED_ROWS:
            distinct = len(np.unique(mixed[mixed >> np.uint64(64 - _SAMPLE_BITS) == 0])) << _SAMPLE_BITS
        else:
            distinct = len(np.unique(mixed))
        counted += (table.count, distinct)
    rows, keys = comm.allreduce_sum(counted)
    return float(rows / max(keys, 1.0))
