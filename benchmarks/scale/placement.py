"""Place rows and edges on a number of ranks, by the engine's own functions.

``source``: an edge lies with its source. ``mirrors``: with its target, and changed rows are sent to it. ``hybrid``: as
``load.place_edges`` decides, by mean degree and hubs. ``hybrid-16``: the same, but a hub has more than 1/16 of a rank's
part of the edges, not 1/8. ``sub-buckets-N``: in N sub-buckets of its source's bucket.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.scale.many_ranks import OneOfMany, on_all_ranks
from benchmarks.scale.programs import compile_query, table, tables
from mpi_backend.comm import SingleRank
from mpi_backend.load import place_edges
from mpi_backend.load.inputs import Inputs, read_inputs
from mpi_backend.state.edge_placement import EdgePlacement, Ends
from mpi_backend.state.facts import HEAVY_PARTS, Facts
from mpi_backend.state.owner import Owner, owners_of
from mpi_backend.state.rows import flatten
from mpi_backend.state.strings import Strings, sorted_texts
from mpi_backend.state.types import Table, type_of

if TYPE_CHECKING:
    from benchmarks.scale.graphs import Graph
    from benchmarks.scale.programs import Query
    from benchmarks.scale.replay import Edges
    from mpi_backend.kernels.compiler import Array

STRINGS = Strings(sorted_texts([]))
BIGINT = type_of("bigint")
PLACEMENTS = ("source", "mirrors", "hybrid", "sub-buckets-8")
_EACH_RANK = 8
"""Up to so many ranks decide as the engine does, each on its share of the edges. Of more, one decides for all."""


@dataclass(frozen=True)
class Placement:
    """The owner of each vertex, the rank of each edge, and the ranks that get copies of a row.

    ``copy_ranks`` has a row for each sub-bucket; ``is_mirrored``: copies go to all ranks that have edges of the row.
    ``form`` says what the engine decided.
    """

    name: str
    ranks: int
    owner: Array
    edge_rank: Array
    copy_ranks: Array = field(default_factory=lambda: np.zeros((0, 0), np.int32))
    is_mirrored: bool = False
    form: str = ""

    @property
    def edge_balance(self) -> float:
        """Return the edges of the rank with most, divided by the average."""
        edges = np.bincount(self.edge_rank, minlength=self.ranks)
        return float(edges.max() / edges.mean())


def sub_buckets_of(name: str) -> int:
    """Return the number of sub-buckets of a placement.

    >>> sub_buckets_of("sub-buckets-8"), sub_buckets_of("source")
    (8, 1)
    """
    return int(name.removeprefix("sub-buckets-")) if name.startswith("sub-buckets-") else 1


def place(name: str, ranks: int, query: Query, graph: Graph, edges: Edges) -> Placement:
    """Return the placement of a query's rows and edges."""
    owner = vertex_ranks(graph.size, ranks)
    at_sources = np.repeat(owner, np.diff(edges.offsets))
    is_mirrored = name.startswith(("mirrors", "hybrid"))
    if name == "source" or ranks == 1 or (is_mirrored and not query.may_mirror):
        return Placement(name, ranks, owner, at_sources)
    if is_mirrored:
        decided = _mirrors(query) if name == "mirrors" else _hybrid(name, query, graph, ranks)
        if decided is None:
            return Placement(name, ranks, owner, at_sources)
        return Placement(
            name,
            ranks,
            owner,
            _ranks_of_edges(decided, query, graph, edges, ranks),
            is_mirrored=True,
            form=str(decided),
        )
    count = sub_buckets_of(name)
    by_index = [_spread_ranks(is_reverse, query, graph, ranks, count) for is_reverse in (False, True)]
    return Placement(name, ranks, owner, _by_position(by_index, edges), copies(graph.size, ranks, count))


def vertex_ranks(size: int, ranks: int) -> Array:
    """Return the rank that owns each vertex."""
    return owners_of(table([np.arange(size)]), (0,), (), STRINGS, OneOfMany(0, ranks), ranks, 1, masked=False)


def copies(size: int, ranks: int, sub_buckets: int) -> Array:
    """Return the ranks of all sub-buckets of each vertex."""
    owner = Owner((0,), [BIGINT], ranks, ranks, (), sub_buckets)
    rows = flatten(table([np.arange(size)]).columns, size, masked=False)
    return np.stack(owner.all_ranks(rows, 1, -1, STRINGS, size)).astype(np.int32)


def _mirrors(query: Query) -> EdgePlacement:
    mirrored = compile_query(query.name, limited=False)[0].strata[-1].mirrored
    assert mirrored is not None
    none = np.zeros(0, np.uint64)
    partition = {i.id: i.partition_by for i in mirrored.stratum.static_indexes}
    ends = {i: Ends(tuple(1 - c for c in by), by, none, none) for i, by in partition.items()}
    return EdgePlacement(at_targets=True, ends=ends)


class _ForAll(SingleRank):
    """A rank with all rows, which decides for all ranks: what others would send is among its own rows."""

    def __init__(self, size: int) -> None:
        self.size = size


def _hybrid(name: str, query: Query, graph: Graph, ranks: int) -> EdgePlacement | None:
    """Return the decision of ``place_edges``; each rank has its share of the rows of the edges' file."""
    plan, _ = compile_query(query.name, limited=False)
    heavy_parts = float(name.removeprefix("hybrid-")) if name != "hybrid" else HEAVY_PARTS
    facts = Facts.for_stratum(plan.strata[-1], {i.id: i for i in plan.inputs}, heavy_parts=heavy_parts)
    whole = read_inputs(facts, tables(query.name, graph, limited=False), {}, SingleRank(), ansi=True)

    def share(comm: OneOfMany) -> Inputs:
        return Inputs({n: _slice(t, comm.rank, ranks) for n, t in whole.tables.items()}, whole.strings)

    if ranks <= _EACH_RANK:
        return on_all_ranks(ranks, lambda comm: place_edges.place_edges(facts, share(comm), comm).placement)
    sampled, place_edges._SAMPLED_ROWS = place_edges._SAMPLED_ROWS, len(graph.src)  # noqa: SLF001 - counts all rows
    try:
        return place_edges.place_edges(facts, whole, _ForAll(ranks)).placement
    finally:
        place_edges._SAMPLED_ROWS = sampled  # noqa: SLF001


def _slice(rows: Table, rank: int, ranks: int) -> Table:
    share = slice(rows.count * rank // ranks, rows.count * (rank + 1) // ranks)
    return Table(tuple(c.take(share) for c in rows.columns), share.stop - share.start)  # type: ignore[arg-type]


def _ranks_of_edges(decided: EdgePlacement, query: Query, graph: Graph, edges: Edges, ranks: int) -> Array:
    rows, comm = table([graph.src, graph.dst, graph.weight]), OneOfMany(0, ranks)
    by_index = [
        decided.ranks(i, rows, (0, 1, 2), STRINGS, comm, ranks, masked=False).astype(np.int32)
        for i in sorted(decided.ends, key=lambda i: decided.ends[i].sources)
    ]
    assert len(by_index) == 1 + query.is_undirected
    return _by_position(by_index, edges)


def _spread_ranks(is_reverse: bool, query: Query, graph: Graph, ranks: int, sub_buckets: int) -> Array:  # noqa: FBT001
    """Return the rank of each of the input's rows for a rule: by its source, in the sub-bucket of its other columns."""
    ends = [graph.dst, graph.src] if is_reverse else [graph.src, graph.dst]
    columns = [*ends, *([graph.weight] if query.has_weights else [])]
    others = range(1, len(columns))
    return owners_of(table(columns), (0,), others, STRINGS, OneOfMany(0, ranks), ranks, sub_buckets, masked=False)


def _by_position(by_index: list[Array], edges: Edges) -> Array:
    found: Array = by_index[0][edges.rows]
    if edges.is_reverse.any():
        found[edges.is_reverse] = by_index[1][edges.rows[edges.is_reverse]]
    return found
