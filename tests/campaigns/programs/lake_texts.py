"""Kept tables of several recursions, of negated sources and of witnesses, and their rows computed in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyspark_paralagg as ra

if TYPE_CHECKING:
    from lake import Lake

    Rows = list[tuple[Any, ...]]

_CLOSED = "closed(x) :- starts(x, d), d > 4."
TEXTS = {
    "even": f"""
        {_CLOSED}
        even(x, d) :- starts(x, d).
        odd(y, $MIN(d + w)) :- even(x, d), edges(x, y, w).
        even(y, $MIN(d + w)) :- odd(x, d), edges(x, y, w), !closed(y).
    """,
    "far": f"""
        {_CLOSED}
        reach(x) :- starts(x, _). reach(y) :- reach(x), edges(x, y, _), !closed(y).
        far(x, x) :- edges(x, _, _), !reach(x).
        far(y, $MIN(d)) :- far(x, d), edges(x, y, _), !reach(y).
    """,
    "worst": """
        even(x, d) :- starts(x, d).
        odd(y, $MIN(d + w)) :- even(x, d), edges(x, y, w).
        even(y, $MIN(d + w)) :- odd(x, d), edges(x, y, w).
        worst(y, $MAX(d)) :- odd(y, d).
        worst(y, $MAX(d)) :- worst(x, d), edges(y, x, _).
    """,
    "comes": """
        comes(x, $MCOUNT(w)) :- starts(x, _), w = -1; starts(x, _), w = -2.
        comes(y, $MCOUNT(x)) :- comes(x, n), n >= 2, edges(x, y, _).
    """,
}


def table_of(lake: Lake, name: str) -> ra.delta.RecursiveTable:
    """Return the kept table of a text."""
    sources = {"edges": lake.path("edges"), "starts": lake.path("starts")}
    return ra.delta.RecursiveTable.datalog(lake.spark, lake.path(name), TEXTS[name], name, sources=sources)


def even(edges: Rows, starts: Rows) -> Rows:
    """Return the shortest ways of an even number of edges: of at least one to a node that is not closed."""
    best = _ways(edges, starts, {node for node, dist in starts if dist > 4})
    return sorted((node, dist) for (node, parity), dist in best.items() if parity == 0)


def worst(edges: Rows, starts: Rows) -> Rows:
    """Return the longest of the shortest ways of an odd number of edges to nodes that a node reaches."""
    most = {node: dist for (node, parity), dist in _ways(edges, starts, set()).items() if parity == 1}
    for _ in range(len(edges) + 1):
        for src, dst, _ in edges:
            if dst in most:
                most[src] = max(most[dst], most.get(src, most[dst]))
    return sorted(most.items())


def _ways(edges: Rows, starts: Rows, closed: set[int]) -> dict[tuple[int, int], int]:
    """Return the shortest ways by node and parity; those of an odd number of edges do not go on to ``closed`` nodes."""
    best: dict[tuple[int, int], int] = {}
    for node, dist in starts:
        best[node, 0] = min(dist, best.get((node, 0), dist))
    is_new = True
    while is_new:
        is_new = False
        for src, dst, w in edges:
            for parity in (0, 1):
                if (src, parity) not in best or (parity == 1 and dst in closed):
                    continue
                by, to = best[src, parity] + w, (dst, 1 - parity)
                if by < best.get(to, by + 1):
                    best[to], is_new = by, True
    return best


def far(edges: Rows, starts: Rows) -> Rows:
    """Return the nodes that starts do not reach around closed ones, with the least node that reaches each."""
    closed = {node for node, dist in starts if dist > 4}
    reach = {node for node, _ in starts}
    for _ in range(len(edges) + 1):
        reach |= {dst for src, dst, _ in edges if src in reach and dst not in closed}
    least = {src: src for src, _, _ in edges if src not in reach}
    for _ in range(len(edges) + 1):
        for src, dst, _ in edges:
            if src in least and dst not in reach:
                least[dst] = min(least[src], least.get(dst, least[src]))
    return sorted(least.items())


def comes(edges: Rows, starts: Rows) -> Rows:
    """Return how many friends of each come, who come if two of theirs do; starts have two more."""
    friends = {node: {-1, -2} for node, _ in starts}
    for _ in range(len(edges) + 1):
        for src, dst, _ in edges:
            if len(friends.get(src, ())) >= 2:
                friends.setdefault(dst, set()).add(src)
    return sorted((node, len(those)) for node, those in friends.items())


EXPECTED = {"even": even, "far": far, "worst": worst, "comes": comes}
