"""What is asked, and when two answers are the same.

An answer is reduced to a checksum by the system that found it, inside the measured time: a few numbers that every
system must reproduce, exactly where they are whole numbers and within TOLERANCE where they are sums of doubles.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

Checksum = tuple[float, ...]

PAGERANK_ROUNDS = 20
DAMPING = 0.85
TOLERANCE = 1e-9  # relative; sums of doubles depend on the order of their terms


@dataclass(frozen=True)
class Query:
    """A question, its checksum in words, and the graphs it is asked of by `--all`."""

    name: str
    meaning: str
    checksum: str
    graphs: tuple[str, ...]


SSSP = Query(
    "sssp",
    "shortest distances from the vertex with most outgoing edges",
    "reached vertices, sum of distances",
    ("rmat-16", "rmat-18", "rmat-20", "grid-300"),
)
MULTI_SSSP = Query(
    "multi-sssp",
    "shortest distances from each of the ten vertices with most outgoing edges",
    "pairs (source, reached vertex), sum of distances",
    ("rmat-16", "grid-300"),
)
COMPONENTS = Query(
    "components",
    "smallest vertex id of each vertex's component, edges taken both ways",
    "vertices, sum of labels",
    ("rmat-16", "rmat-18", "rmat-20", "grid-300"),
)
PAGERANK = Query(
    "pagerank",
    f"rank 1 at the start, then {PAGERANK_ROUNDS} times rank(v) = 0.15 + 0.85 * sum of rank(u) / out-degree(u) over "
    "edges u -> v; what a vertex without outgoing edges holds is not passed on; ranks are not normalised",
    "vertices, sum of ranks, sum of their squares",
    ("rmat-16", "rmat-18", "rmat-20"),
)
CLOSURE = Query(
    "closure",
    "pairs (x, z) joined by a path of at least one edge",
    "number of pairs",
    ("wiki-Vote", "random-10000-12000", "random-5000-10000", "dgrid-90", "debian-bookworm-depends", "tree-11"),
)
QUERIES: dict[str, Query] = {query.name: query for query in (SSSP, MULTI_SSSP, COMPONENTS, PAGERANK, CLOSURE)}
SOURCES = {SSSP.name: 1, MULTI_SSSP.name: 10}
"""How many vertices a query starts from: the first of `Graph.sources`."""


def same(left: Sequence[float], right: Sequence[float]) -> bool:
    """Tell whether two checksums stand for the same answer.

    >>> same((3, 10), (3, 10)), same((3, 10), (3, 11)), same((2, 0.1 + 0.2), (2, 0.3))
    (True, False, True)
    """
    return len(left) == len(right) and all(
        a == b if isinstance(a, int) and isinstance(b, int) else math.isclose(a, b, rel_tol=TOLERANCE)
        for a, b in zip(left, right, strict=True)
    )
