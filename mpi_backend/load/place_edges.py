"""Decide where the edges of a stratum with a mirrored form lie (``state.edge_placement``), by their number and ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mpi_backend.state.edge_placement import EdgePlacement, Ends, hashes_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from mpi_backend.comm import Comm
    from mpi_backend.kernels.compiler import Array
    from mpi_backend.load.inputs import Inputs
    from mpi_backend.state.facts import Facts
    from mpi_backend.state.types import Table
    from pyspark_paralagg.plan.plan import StaticIndex

EDGES_A_RANK = 2
"""Edges lie at targets if rows have on average more edges than this for each rank, as each row goes to all ranks."""
_TIMES_OTHERS = 2
"""A heavy end has more edges than so many times the mean of the others."""
_SAMPLED_ROWS = 1 << 16
_SAMPLED_HASH = 0xB5297A4D3F84D5B5
"""A key of a large input is counted if its hash begins with the same bits as this one. (The hash of 0 is 0.)"""


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
        ends[i.id] = Ends(
            sources, targets, *(_heavy(table, end, comm, facts.heavy_parts) for end in (sources, targets))
        )
    if not at_targets and not any(len(e.heavy_sources) for e in ends.values()):
        return facts
    return replace(facts, stratum=mirrored.stratum, mirror=mirrored.mirror, placement=EdgePlacement(at_targets, ends))


def _heavy(table: Table, columns: Sequence[int], comm: Comm, heavy_parts: float) -> Array:
    """Return the sorted hashes of heavy ends, estimated from a sample of each rank's rows. Collective.

    There are none unless one end has twice as much as a heavy one, since spreading edges costs a further exchange in
    each iteration. An end whose degree is common is not heavy. Null ends are not counted. Ends that no rank has sampled
    have few edges, so they hardly change the mean of the others.
    """
    if not heavy_parts:
        return np.zeros(0, np.uint64)
    hashes = hashes_of(table, columns)
    nulls = [table.columns[c].nulls for c in columns]
    is_null = [n for n in nulls if n is not None]
    hashes = hashes[~np.logical_or.reduce(is_null)] if is_null else hashes
    count = len(hashes)
    if count > _SAMPLED_ROWS:
        hashes = hashes[np.random.default_rng(0).integers(count, size=_SAMPLED_ROWS)]
    hashes, counts = np.unique(hashes, return_counts=True)
    ends, degrees = _add_up(hashes, np.rint(counts * (count / max(1, counts.sum()))), comm)
    in_all, distinct = comm.allreduce_sum(np.array([count, len(ends)], np.float64))
    share = in_all / (heavy_parts * comm.size)
    others = (in_all - degrees) / max(1.0, distinct - 1) if distinct > 1 else np.zeros(len(ends))
    is_heavy = degrees > np.maximum(share, _TIMES_OTHERS * others)
    # Fewer than ``heavy_parts`` for each rank are heavy: only these are gathered.
    gathered = comm.allgather_bytes(ends[is_heavy].tobytes())
    most = -comm.allreduce_min(-float(degrees[is_heavy].max(initial=0)))
    heavy: Array = np.sort(np.concatenate([np.frombuffer(b, np.uint64) for b in gathered]))
    return heavy if most > 2 * share else heavy[:0]


def _mean_degree(edges: Iterable[StaticIndex], inputs: Inputs, comm: Comm) -> float:
    """Return the mean number of edges of a key in all ranks' rows. Of many rows, a sample of the keys is counted.

    A hub among the sampled keys counts as one key: its edges are not extrapolated. Collective.
    """
    rows, keys = 0.0, 0.0
    for index in edges:
        hashes = hashes_of(inputs.tables[index.input], index.keys)
        largest = int(-comm.allreduce_min(-float(len(hashes))))
        bits = (max(0, largest - 1) // _SAMPLED_ROWS).bit_length()
        sampled = np.unique(hashes[hashes >> np.uint64(64 - bits) == _SAMPLED_HASH >> (64 - bits)] if bits else hashes)
        ends, _ = _add_up(sampled, np.zeros(len(sampled)), comm)
        counted = comm.allreduce_sum(np.array([len(hashes), len(ends) << bits], np.float64))
        rows, keys = rows + counted[0], keys + counted[1]
    return float(rows / max(keys, 1.0))


def _add_up(hashes: Array, numbers: Array, comm: Comm) -> tuple[Array, Array]:
    """Return the sums, over all ranks, of the numbers of those hashes that this rank adds up. Collective.

    The hashes are sorted, each occurs once. High bits select the rank: low ones are those of the keys.
    """
    size = np.uint64(comm.size)
    ranks = (hashes >> np.uint64(32)) * size >> np.uint64(32)
    pairs = np.stack([hashes.view(np.int64), numbers.astype(np.int64)], axis=1)
    received = comm.alltoallv(pairs.ravel(), 2 * np.bincount(ranks.astype(np.int64), minlength=comm.size))
    sent_here, their_numbers = received.reshape(-1, 2).T
    distinct, places = np.unique(sent_here.view(np.uint64), return_inverse=True)
    return distinct, np.bincount(places, their_numbers, len(distinct))
