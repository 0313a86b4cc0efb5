"""Count what each rank does in each round, for a placement: exact, since owners alone decide it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.scale import kernels
from mpi_backend.state.index import place_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from benchmarks.generators import Longs
    from benchmarks.scale.placement import Placement
    from benchmarks.scale.replay import Rounds

_WORD = 8
_HEAD_WORDS = 2
"""A message of derived rows begins with the numbers of its rows of both kinds (``exchange.exchange``)."""


def count(rounds: Rounds, placement: Placement) -> Iterator[Longs]:
    """Yield an array for each round: a row for each count (``kernels.WORK``, ...), a column for each rank."""
    edges, ranks = rounds.edges, placement.ranks
    edge_count = len(edges.targets)
    in_offsets, in_edges = place_rows(edges.targets, rounds.graph.size, None)
    ghost = np.empty(edge_count, np.int32)
    ghosts = kernels.number_ghosts(in_offsets, in_edges, placement.edge_rank, placement.owner, ranks, ghost)
    best, is_sent = np.full(ghosts, kernels.NO_VALUE), np.zeros(ghosts, np.bool_)
    queue, met = np.empty(ghosts, np.int32), np.zeros((ranks * ranks >> 3) + 1, np.uint8)
    visits = np.zeros(1 + ranks, np.int64)
    graph = edges.offsets, edges.targets, edges.weights, rounds.mode, int(rounds.query.is_recomputed)
    places = placement.edge_rank, placement.owner
    counts = np.zeros((kernels.COUNTS, ranks), np.int64)
    for n, (rows, values) in enumerate(zip(rounds.rows, rounds.values, strict=True)):
        if n and rounds.query.is_recomputed:  # all rounds are alike
            yield counts.copy()
            continue
        counts[:] = 0
        counts[kernels.CHANGED] = np.bincount(placement.owner[rows], minlength=ranks)
        if placement.is_mirrored or len(placement.copy_ranks):
            by_owner = rows[np.argsort(placement.owner[rows], kind="stable")]
            last_sender = np.full(ranks, -1, np.int32)
            kernels.send_copies(by_owner, edges.offsets, *places, placement.copy_ranks, visits, last_sender, counts)
        kernels.count_round(rows, values, *graph, *places, ghost, best, is_sent, queue, met, counts)
        yield counts.copy()


def sent_bytes(counts: Longs, row_words: int) -> Longs:
    """Return the bytes that each rank sends in a round."""
    rows = counts[kernels.ROWS_SENT] + counts[kernels.COPIES_SENT]
    sent: Longs = _WORD * (_HEAD_WORDS * counts[kernels.PARTNERS] + row_words * rows)
    return sent


@dataclass(frozen=True)
class Measures:
    """The counts of a run by round: for each measure the maximum and the sum over ranks.

    ``rows`` are those that changed, were sent or were received; ``partners`` the messages to other ranks.
    """

    ranks: int
    most: dict[str, Longs]
    total: dict[str, Longs]
    whole: dict[str, Longs]
    """The sums over all rounds, by rank."""

    def balance(self, measure: str) -> float:
        """Return the sum of the maxima of all rounds, divided by that of the averages: ``work_balance`` in reports."""
        return float(self.most[measure].sum()) * self.ranks / max(1.0, float(self.total[measure].sum()))

    def whole_balance(self, measure: str) -> float:
        """Return the maximum of the sums over all rounds, divided by the average."""
        return float(self.whole[measure].max()) * self.ranks / max(1.0, float(self.whole[measure].sum()))


def measure(rounds: Iterable[Longs], ranks: int, row_words: int) -> Measures:
    """Return the measures of the rounds' counts."""
    most: dict[str, list[int]] = {}
    total: dict[str, list[int]] = {}
    whole: dict[str, Longs] = {}
    for counts in rounds:
        for name, by_rank in _measures(counts, row_words).items():
            most.setdefault(name, []).append(int(by_rank.max()))
            total.setdefault(name, []).append(int(by_rank.sum()))
            whole[name] = whole.get(name, 0) + by_rank
    return Measures(ranks, {n: np.array(v) for n, v in most.items()}, {n: np.array(v) for n, v in total.items()}, whole)


def _measures(counts: Longs, row_words: int) -> dict[str, Longs]:
    sent = counts[kernels.ROWS_SENT] + counts[kernels.COPIES_SENT]
    received = counts[kernels.ROWS_RECEIVED] + counts[kernels.COPIES_RECEIVED]
    return {
        "work": counts[kernels.WORK],
        "changed": counts[kernels.CHANGED],
        "received": received,
        "rows": counts[kernels.CHANGED] + sent + received,
        "bytes": sent_bytes(counts, row_words),
        "partners": counts[kernels.PARTNERS] + counts[kernels.COPY_PARTNERS],
    }
