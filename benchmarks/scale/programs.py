"""The queries of the model, as Datalog texts, their Plans, and the sizes of their messages.

With a limit of iterations a lattice runs in strict rounds; without one it has a mirrored form (``place_edges``), whose
rounds are strict, too, if rows are not taken by value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.queries import DAMPING, PAGERANK_ROUNDS
from mpi_backend.state.types import Column, Table, type_of
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.generators import Longs
    from benchmarks.scale.graphs import Graph
    from pyspark_paralagg.plan.plan import Plan

_COLUMNS = {
    "edge": [("src", "bigint"), ("dst", "bigint"), ("w", "bigint")],
    "vertex": [("v", "bigint")],
    "start": [("v", "bigint")],
}
_CLOSURE = "found(x, y) :- edge(x, y, _). found(x, z) :- found(x, y), edge(y, z, _)."
_LARGE = 10**13
"""A size of inputs, in bytes, for which the compiler copies none of them to all ranks."""


@dataclass(frozen=True)
class Query:
    """A query, and what its counts depend on.

    ``row_words`` are the words of a sent row. ``is_undirected``: edges are followed both ways. ``is_recomputed``: all
    rows are read and sent in each of ``PAGERANK_ROUNDS`` rounds, after one further probe. ``has_pairs``: a row is a
    pair of vertices. ``is_one_round``: the first round only, a join.
    """

    name: str
    title: str
    text: str
    row_words: int
    is_undirected: bool = False
    is_recomputed: bool = False
    has_pairs: bool = False
    has_weights: bool = False
    is_one_round: bool = False

    @property
    def may_mirror(self) -> bool:
        """Return whether the Plan has a mirrored form."""
        return not self.is_recomputed and not self.has_pairs


QUERIES = {
    q.name: q
    for q in (
        Query(
            "sssp",
            "shortest paths",
            "found(x, $MIN(0)) :- start(x). found(y, $MIN(d + w)) :- found(x, d), edge(x, y, w).",
            2,
            has_weights=True,
        ),
        Query(
            "components",
            "components",
            "found(x, $MIN(x)) :- vertex(x). found(y, $MIN(c)) :- found(x, c), edge(x, y, _). "
            "found(y, $MIN(c)) :- found(x, c), edge(y, x, _).",
            2,
            is_undirected=True,
        ),
        Query("reach", "reachability", "found(x) :- start(x). found(y) :- found(x), edge(x, y, _).", 1),
        Query(
            "pagerank",
            "PageRank",
            f"""
            .limit found(iterations={PAGERANK_ROUNDS})
            degree(x, $COUNT) :- edge(x, _, _).
            found(0, x, r) :- vertex(x), r = 1.0.
            found(i + 1, x, $SUM({1 - DAMPING})) :- vertex(x).
            found(i + 1, y, $SUM({DAMPING} / to_float(d) * r)) :- found(i, x, r), edge(x, y, _), degree(x, d).
            """,
            2,
            is_recomputed=True,
        ),
        Query(
            "closure",
            "transitive closure",
            _CLOSURE,
            2,
            has_pairs=True,
        ),
        Query("join", "paths of two edges", _CLOSURE, 2, has_pairs=True, is_one_round=True),
    )
}


@cache
def compile_query(name: str, *, limited: bool) -> tuple[Plan, tuple[str, ...]]:
    """Return the Plan of a query, and the names of its sources. With ``limited``, a lattice runs in strict rounds.

    >>> [compile_query("sssp", limited=limited)[0].strata[-1].in_place for limited in (True, False)]
    [False, True]
    """
    query = QUERIES[name]
    text = f".limit found(iterations=1000000)\n{query.text}" if limited and not query.is_recomputed else query.text
    resolved = resolve_text(parse(text, name), _COLUMNS)
    program = requested_program(resolved, ["found"])
    inputs = tuple(replace(i, size_bytes=_LARGE) for i in program.inputs)
    return compile_program(replace(program, inputs=inputs)), tuple(s.relation for s in resolved.sources)


def tables(name: str, graph: Graph, rank: int = 0, ranks: int = 1, *, limited: bool = True) -> dict[int, Table]:
    """Return the rows of a rank of each source, by number, as ``load.files`` cuts a file with one batch."""
    plan, names = compile_query(name, limited=limited)
    used = {i.source for i in plan.inputs if i.relation is None}
    return {n: table(list(_columns(names[n], graph)), rank, ranks) for n in used}


def table(columns: Sequence[Longs], rank: int = 0, ranks: int = 1) -> Table:
    """Return a table of whole numbers, or a rank's share of it."""
    count = len(columns[0])
    low, high = count * rank // ranks, count * (rank + 1) // ranks
    return Table(tuple(Column(type_of("bigint"), c[low:high]) for c in columns), high - low)


def _columns(relation: str, graph: Graph) -> Iterator[Longs]:
    if relation == "edge":
        yield from (graph.src, graph.dst, graph.weight)
    else:
        yield graph.vertices if relation == "vertex" else np.array([graph.start])
