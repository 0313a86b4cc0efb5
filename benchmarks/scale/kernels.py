"""Compiled loops of the model: one strict round of a query, and the counts of one round for a placement."""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit

ADD, COPY, NOTHING = 0, 1, 2
"""The value that an edge derives: the source's plus the weight, the source's, or none (a set)."""
WORK, CHANGED, ROWS_SENT, ROWS_RECEIVED, COPIES_SENT, COPIES_RECEIVED, PARTNERS, COPY_PARTNERS = range(8)
"""Positions of a rank's counts in a round."""
COUNTS = 8
NO_VALUE = np.int64(1 << 62)


@njit(nogil=True)
def run_round(rows, values, offsets, targets, weights, mode, pending, is_pending, out) -> int:
    """Derive rows from ``rows``. ``pending`` has the best derived value of each vertex in ``out[:count]``."""
    count = 0
    for i in range(len(rows)):
        for e in range(offsets[rows[i]], offsets[rows[i] + 1]):
            y = targets[e]
            value = values[i] + weights[e] if mode == ADD else values[i]
            if not is_pending[y]:
                is_pending[y] = True
                pending[y] = value
                out[count] = y
                count += 1
            elif value < pending[y]:
                pending[y] = value
    return count


@njit(nogil=True)
def number_ghosts(in_offsets, in_edges, edge_rank, owner, ranks, ghost) -> int:
    """Number the pairs of a rank with an edge and a target that it does not own. -1: the rank owns the target."""
    number = np.zeros(ranks, np.int32)
    seen = np.full(ranks, -1, np.int64)
    count = 0
    for y in range(len(owner)):
        for i in range(in_offsets[y], in_offsets[y + 1]):
            e = in_edges[i]
            r = edge_rank[e]
            if r == owner[y]:
                ghost[e] = -1
                continue
            if seen[r] != y:
                seen[r] = y
                number[r] = count
                count += 1
            ghost[e] = number[r]
    return count


@njit(nogil=True)
def send_copies(rows, offsets, edge_rank, owner, copy_ranks, visits, met, counts) -> None:
    """Count the copies of rows: to ``copy_ranks`` of a row, or else (no columns) to all ranks with edges from it.

    ``rows`` are sorted by owner. ``visits`` has for each rank the row that it was last sent, ``met`` the last sender.
    """
    for i in range(len(rows)):
        u = rows[i]
        own = owner[u]
        if copy_ranks.shape[0]:
            for s in range(copy_ranks.shape[0]):
                r = copy_ranks[s, u]
                if r != own:
                    counts[COPIES_SENT, own] += 1
                    counts[COPIES_RECEIVED, r] += 1
                    counts[COPY_PARTNERS, own] += met[r] != own
                    met[r] = own
            continue
        visits[0] += 1
        for e in range(offsets[u], offsets[u + 1]):
            r = edge_rank[e]
            if r != own and visits[1 + r] != visits[0]:
                visits[1 + r] = visits[0]
                counts[COPIES_SENT, own] += 1
                counts[COPIES_RECEIVED, r] += 1
                counts[COPY_PARTNERS, own] += met[r] != own
                met[r] = own


@njit(nogil=True)
def count_round(
    rows, values, offsets, targets, weights, mode, probes, edge_rank, owner, ghost, best, is_sent, queue, met, counts
) -> None:
    """Count the edges that ranks visit, and the rows and partners of the exchange of derived rows.

    A row is sent if its value is better than the best that the rank has sent before (``best``). ``met`` has a bit for
    each pair of ranks, all zero between rounds. ``probes`` are further rows that are read for a row with edges.
    """
    ranks = counts.shape[1]
    count = 0
    for i in range(len(rows)):
        u = rows[i]
        if probes and offsets[u] < offsets[u + 1]:
            counts[WORK, owner[u]] += probes
        for e in range(offsets[u], offsets[u + 1]):
            r = edge_rank[e]
            counts[WORK, r] += 1
            g = ghost[e]
            if g < 0:
                continue
            value = values[i] + weights[e] if mode == ADD else values[i]
            if value < best[g]:
                best[g] = value
                if not is_sent[g]:
                    is_sent[g] = True
                    queue[count] = e
                    count += 1
    for i in range(count):
        e = queue[i]
        is_sent[ghost[e]] = False
        r, to = np.int64(edge_rank[e]), np.int64(owner[targets[e]])
        counts[ROWS_SENT, r] += 1
        counts[ROWS_RECEIVED, to] += 1
        pair = r * ranks + to
        if not met[pair >> 3] >> (pair & 7) & 1:
            met[pair >> 3] |= np.uint8(1 << (pair & 7))
            counts[PARTNERS, r] += 1
    for i in range(count):
        pair = np.int64(edge_rank[queue[i]]) * ranks + owner[targets[queue[i]]]
        met[pair >> 3] = 0
