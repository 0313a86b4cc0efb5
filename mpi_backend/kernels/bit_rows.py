"""Evaluate sets of pairs in rows of bits: a row for each vertex and relation, a bit for each value of the carried key.

Row ``v * relations + r`` is vertex v of relation r, ``width`` words from there on. Flows (``plan.plan.Flow``) are rows
of an array, with the columns below. An edge leads from a row to a row; edges that pairs have added are lists by row.
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.bitmaps import count_ones
from mpi_backend.kernels.cache import njit

HEAD, SOURCE, READS, LOOKUP, KEY, ORIGIN, TARGET = range(7)
"""Columns of a flow: relations by number (-1: no pairs are read), the lookup (-1: none), and three ends."""
ROW, CARRIED, FOUND = range(3)
"""The ends of edges."""
FLOW_SHIFT, VERTEX_BITS = 56, 28
"""An edge as a word: flow, origin, target."""
QUEUED, EDGES, ROUNDS = range(3)
"""Positions in ``sizes``: rows in the queue, edges, passes through the queue."""


@njit(nogil=True)
def start(rows, bits, width, full, delta, queue, queued, sizes):
    """Set the bits of base rows, and put their rows into the queue."""
    count = sizes[QUEUED]
    for i in range(len(rows)):
        at = rows[i] * width + (bits[i] >> 6)
        bit = np.uint64(1) << np.uint64(bits[i] & 63)
        if full[at] & bit == 0:
            full[at] |= bit
            delta[at] |= bit
            if not queued[rows[i]]:
                queued[rows[i]] = True
                queue[count] = rows[i]
                count += 1
    sizes[QUEUED] = count


@njit(nogil=True)
def _send(words, row, width, full, delta, queue, queued, sizes):
    """Add ``words`` to a row, and put the row into the queue if any bit is new."""
    changed = np.uint64(0)
    at = row * width
    for j in range(width):
        fresh = words[j] & ~full[at + j]
        changed |= fresh
        full[at + j] |= fresh
        delta[at + j] |= fresh
    if changed != 0 and not queued[row]:
        queued[row] = True
        queue[sizes[QUEUED]] = row
        sizes[QUEUED] += 1


@njit(nogil=True)
def _insert(table, edge):
    """Add an edge to a hash table with free slots (-1); return whether it is new."""
    mask = len(table) - 1
    hashed = np.uint64(edge) * np.uint64(0x9E3779B97F4A7C15)
    slot = np.int64((hashed ^ (hashed >> np.uint64(32))) & np.uint64(mask))
    while table[slot] != -1:
        if table[slot] == edge:
            return False
        slot = (slot + 1) & mask
    table[slot] = edge
    return True


@njit(nogil=True)
def _rehashed(table):
    larger = np.full(2 * len(table), -1, np.int64)
    for edge in table:
        if edge != -1:
            _insert(larger, edge)
    return larger


@njit(nogil=True)
def add_edges(new, flows, relations, width, full, delta, queue, queued, first, sizes, edges, links, table):
    """Add edges, and send along each that is new. Return the arrays of edges, which grow."""
    vertex_mask = np.int64((1 << VERTEX_BITS) - 1)
    for edge in new:
        size = sizes[EDGES]
        if 2 * (size + 1) > len(table):
            table = _rehashed(table)
        if not _insert(table, edge):
            continue
        if size == len(edges):
            edges, links = np.append(edges, np.empty_like(edges)), np.append(links, np.empty_like(links))
        flow = edge >> FLOW_SHIFT
        source = ((edge >> VERTEX_BITS) & vertex_mask) * relations + flows[flow, SOURCE]
        head = (edge & vertex_mask) * relations + flows[flow, HEAD]
        edges[size] = edge
        links[size] = first[source]
        first[source] = size
        sizes[EDGES] += 1
        _send(full[source * width : (source + 1) * width], head, width, full, delta, queue, queued, sizes)
    return edges, links, table


@njit(nogil=True)
def _derive(n, flow, vertex, words, offsets, targets, vertex_of_bit, found):
    """Write the edges that new pairs of a row add by flow ``n``. Return them, in an array that grows, and their number.

    ``words`` are the new pairs' bits.
    """
    count = 0
    lookup = flow[LOOKUP]
    if lookup != -1 and flow[KEY] == ROW and offsets[lookup, vertex] == offsets[lookup, vertex + 1]:
        return found, count
    ends = np.zeros(3, np.int64)
    ends[ROW] = vertex
    for j in range(len(words)):
        left = words[j]
        while left != 0:
            low_bit = left & (~left + np.uint64(1))
            left ^= low_bit
            ends[CARRIED] = vertex_of_bit[64 * j + count_ones(low_bit - np.uint64(1))]
            low, high = 0, 1
            if lookup != -1:
                low, high = offsets[lookup, ends[flow[KEY]]], offsets[lookup, ends[flow[KEY]] + 1]
            for e in range(low, high):
                if lookup != -1:
                    ends[FOUND] = targets[e]
                if count == len(found):
                    found = np.append(found, np.empty_like(found))
                found[count] = (np.int64(n) << FLOW_SHIFT) | (ends[flow[ORIGIN]] << VERTEX_BITS) | ends[flow[TARGET]]
                count += 1
    return found, count


@njit(nogil=True)
def follow(
    flows, offsets, targets, vertex_of_bit, relations, width,
    full, delta, queue, spare, queued, first, sizes, edges, links, table,
):  # fmt: skip
    """Move bits along edges until nothing changes. Return the arrays of edges, which grow."""
    vertex_mask = np.int64((1 << VERTEX_BITS) - 1)
    words = np.empty(width, np.uint64)
    found = np.empty(1024, np.int64)
    while sizes[QUEUED] > 0:
        sizes[ROUNDS] += 1
        count = sizes[QUEUED]
        sizes[QUEUED] = 0
        for i in range(count):
            row = queue[i]
            vertex, relation = row // relations, row % relations
            queued[row] = False
            for j in range(width):
                words[j] = delta[row * width + j]
                delta[row * width + j] = np.uint64(0)
            link = first[row]
            while link >= 0:
                head = (edges[link] & vertex_mask) * relations + flows[edges[link] >> FLOW_SHIFT, HEAD]
                _send(words, head, width, full, delta, spare, queued, sizes)
                link = links[link]
            for n in range(len(flows)):
                flow = flows[n]
                if flow[READS] == relation:
                    found, new = _derive(n, flow, vertex, words, offsets, targets, vertex_of_bit, found)
                    edges, links, table = add_edges(
                        found[:new], flows, relations, width, full, delta, spare, queued, first, sizes,
                        edges, links, table,
                    )  # fmt: skip
                elif flow[READS] == -1 and flow[SOURCE] == relation and flow[LOOKUP] == -1:
                    _send(words, vertex * relations + flow[HEAD], width, full, delta, spare, queued, sizes)
                elif flow[READS] == -1 and flow[SOURCE] == relation:
                    for e in range(offsets[flow[LOOKUP], vertex], offsets[flow[LOOKUP], vertex + 1]):
                        head = targets[e] * relations + flow[HEAD]
                        _send(words, head, width, full, delta, spare, queued, sizes)
        queue, spare = spare, queue
    return edges, links, table


@njit(nogil=True)
def count_bits(words):
    """Return the number of bits that are set in all words."""
    total = 0
    for word in words:
        total += count_ones(word)
    return total
