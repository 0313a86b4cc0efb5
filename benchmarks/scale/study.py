"""The counts that docs/scale.md shows, kept in the cache of benchmarks: ``python -m benchmarks.scale.study``.

A count depends on the graph, the query, the placement and the number of ranks only, so it is computed once.
"""

from __future__ import annotations

import json
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.datasets import DEFAULT_CACHE
from benchmarks.scale.counts import Measures, measure
from benchmarks.scale.graphs import make
from benchmarks.scale.pairs import count, replay
from benchmarks.scale.placement import place
from benchmarks.scale.programs import QUERIES
from benchmarks.scale.replay import follow

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from benchmarks.generators import Longs
    from benchmarks.scale.pairs import PairRounds
    from benchmarks.scale.replay import Edges, Rounds

Case = tuple[str, str, str]
LARGE = "rmat-20"
RANKS = (1, 256, 1024, 4096, 16384)
BALANCED = ("source", "hybrid", "sub-buckets-8")
BALANCED_OF = {
    "sssp": BALANCED,
    "components": BALANCED[:2],
    "reach": ("hybrid",),
    "pagerank": ("source",),
}
STRONG = {
    "sssp": (LARGE, "hybrid"),
    "components": (LARGE, "hybrid"),
    "reach": ("rmat-18", "hybrid"),
    "pagerank": ("rmat-18", "source"),
}
"""The graph and the placement of a query in tables and pictures of times."""
FINER = "hybrid-16"
"""A placement that goals show for the large graph only."""
TREES = tuple(f"{way}-{depth}" for depth in (12, 14, 16) for way in ("up", "down"))
STARS = ("out-star-1000000", "in-star-1000000", "both-1000000")
TREES_OF_QUERIES = ("up-20", "down-20")
LARGER = ("up-22", "down-22")
GOALS = tuple((query, graph) for graph in (LARGE, *STARS, *TREES_OF_QUERIES) for query in ("sssp", "components"))
GOALS += tuple(("sssp", graph) for graph in LARGER)
SCALED = (("closure", "ring-1000"), ("closure", "up-16"), ("closure", "down-16"), ("join", "rmat-13"))
MANY_RANKS = (1, 64, 256, 512, 1024, 2048, 4096, 8192, 16384)
SKEWED = tuple(
    f"{shape}-500{skew}"
    for shape in ("ring", "string")
    for skew in ("", *(f"-skew-{where}-{p}" for where in ("GT", "G", "T") for p in (20, 40, 60, 80)))
)


def cases() -> list[tuple[Case, int]]:
    """Return all cases, with their numbers of ranks."""
    found: list[tuple[Case, int]] = [
        ((query, STRONG[query][0], placement), ranks)
        for query, placements in BALANCED_OF.items()
        for placement in placements
        for ranks in RANKS
        if ranks > 1
    ]
    found += [((query, graph, "source"), 1) for query, (graph, _) in STRONG.items()]
    found += [
        ((query, graph, placement), 16384)
        for graph in (*STARS, *TREES_OF_QUERIES)
        for query in ("sssp", "components")
        for placement in BALANCED
    ]
    found += [(("closure", graph, p), 512) for graph in TREES for p in ("source", "sub-buckets-4")]
    found += [(("closure", graph, p), 256) for graph in SKEWED for p in ("source", "sub-buckets-4")]
    found += [((query, graph, "source"), ranks) for query, graph in SCALED for ranks in MANY_RANKS]
    return found


def goal_placements(graph: str) -> tuple[str, ...]:
    """Return the placements whose edges are compared with the goals."""
    return (*BALANCED, FINER) if graph == LARGE else BALANCED


def counted(case: Case, ranks: int) -> tuple[Measures, float, Longs]:
    """Return the counts of a case, the balance of its edges, and the number of edges of each rank, sorted."""
    file = DEFAULT_CACHE / "scale" / f"{'_'.join(case)}_{ranks}.npz"
    if not file.is_file():
        _store(file, case, ranks)
    with np.load(file) as stored:
        names = json.loads(str(stored["names"]))
        most = {n: stored[f"most_{n}"] for n in names}
        total = {n: stored[f"total_{n}"] for n in names}
        whole = {n: stored[f"whole_{n}"] for n in names}
        edges = stored["edges"]
    return Measures(ranks, most, total, whole), float(edges[-1] / edges.mean()), edges


def placed(case: Case, ranks: int) -> float:
    """Return the edges of the rank with most, divided by the average; no round is replayed for it."""
    file = DEFAULT_CACHE / "scale" / f"{'_'.join(case)}_{ranks}_placed.json"
    if (DEFAULT_CACHE / "scale" / f"{'_'.join(case)}_{ranks}.npz").is_file():
        return counted(case, ranks)[1]
    if not file.is_file():
        query, graph = QUERIES[case[0]], make(case[1])
        placement = place(case[2], ranks, query, graph, _followed(case[0], case[1]))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(placement.edge_balance), encoding="utf-8")
    return float(json.loads(file.read_text(encoding="utf-8")))


@lru_cache(maxsize=1)
def _followed(query: str, graph: str) -> Edges:
    return follow(QUERIES[query], make(graph))


def _store(file: Path, case: Case, ranks: int) -> None:
    query, rounds = QUERIES[case[0]], _replayed(case[0], case[1])
    placement = place(case[2], ranks, query, rounds.graph, rounds.edges)
    m = measure(count(rounds, placement), ranks, query.row_words)
    arrays = {f"most_{n}": m.most[n] for n in m.most}
    arrays |= {f"total_{n}": m.total[n] for n in m.most} | {f"whole_{n}": m.whole[n] for n in m.most}
    edges = np.sort(np.bincount(placement.edge_rank, minlength=ranks))
    file.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(file, names=json.dumps(list(m.most)), edges=edges, **arrays)  # type: ignore[arg-type]


@lru_cache(maxsize=1)
def _replayed(query: str, graph: str) -> Rounds | PairRounds:
    return replay(QUERIES[query], make(graph))


def main(names: Iterable[str]) -> None:
    """Compute all cases, or those whose graph begins with one of the names."""
    wanted = tuple(names)
    for query, graph in GOALS:
        for placement in goal_placements(graph) if not wanted or graph.startswith(wanted) else ():
            print(query, graph, placement, f"edges {placed((query, graph, placement), 16384):.2f}", flush=True)
    for case, ranks in cases():
        if not wanted or case[1].startswith(wanted):
            m, edges, _ = counted(case, ranks)
            work, rows = m.balance("work"), m.balance("rows")
            print(*case, ranks, f"edges {edges:.2f} work {work:.2f} rows {rows:.2f}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
