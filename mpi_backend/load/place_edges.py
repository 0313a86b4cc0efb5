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
_SAMPLE_BITS = 6
"""Of large inputs one key in 2^6 is counted."""


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
    each iteration. An end whose degree is common is not heavy. Null ends are not counted.
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
    edges = np.rint(counts * (count / max(1, counts.sum())))
    share = 1 / (heavy_parts * comm.size)
    # An end that is heavy in all has a heavy part of some rank's rows.
    gathered = comm.allgather_bytes(hashes[edges > share * count].tobytes())
    candidates = np.unique(np.concatenate([np.frombuffer(b, np.uint64) for b in gathered]))
    places = np.searchsorted(hashes, candidates)
    is_here = places < len(hashes)
    is_here[is_here] = hashes[places[is_here]] == candidates[is_here]
    own = np.zeros(len(candidates) + 1)
    own[:-1][is_here] = edges[places[is_here]]
    own[-1] = count
    *totals, in_all = comm.allreduce_sum(own)
    of_ends = np.array(totals)
    distinct = -comm.allreduce_min(-float(len(hashes)))
    others = (in_all - of_ends) / max(1.0, distinct - 1) if distinct > 1 else np.zeros(len(of_ends))
    is_heavy = (of_ends > share * in_all) & (of_ends > _TIMES_OTHERS * others)
    heavy: Array = candidates[is_heavy]
    return heavy if (of_ends[is_heavy] > 2 * share * in_all).any() else heavy[:0]


def _mean_degree(edges: Iterable[StaticIndex], inputs: Inputs, comm: Comm) -> float:
    """Return the mean number of edges of the keys of each rank's share of the input; of many, a sample is counted.

    A hub among the sampled keys counts as one key: its edges are not extrapolated.
    """
    counted = np.zeros(2)
    for index in edges:
        table = inputs.tables[index.input]
        mixed = hashes_of(table, index.keys)
        if table.count > _SAMPLED_ROWS:
            distinct = len(np.unique(mixed[mixed >> np.uint64(64 - _SAMPLE_BITS) == 0])) << _SAMPLE_BITS
        else:
            distinct = len(np.unique(mixed))
        counted += (table.count, distinct)
    rows, keys = comm.allreduce_sum(counted)
    return float(rows / max(keys, 1.0))
