"""Evaluate sets of pairs in rows of bits: a row for each vertex and relation, a bit for each value of the carried key.

Row ``v * relations + r`` is vertex v of relation r. It has ``blocks`` places in ``table``, one for each ``BLOCK`` words
of its bits: the number of the block in ``full`` and ``delta``, from 1 on, or 0 while it has no bit. Flows
(``plan.plan.Flow``) are rows of an array, with the columns below. An edge leads from a row to a row; edges that pairs
have added are lists by row.
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.bitmaps import count_ones, write_pairs
from mpi_backend.kernels.cache import LEAF, njit

HEAD, SOURCE, READS, LOOKUP, KEY, ORIGIN, TARGET = range(7)
"""Columns of a flow: relations by number (-1: no pairs are read), the lookup (-1: none), and three ends."""
ROW, CARRIED, FOUND = range(3)
"""The ends of edges."""
FLOW_SHIFT, VERTEX_BITS = 56, 28
"""An edge as a word: flow, origin, target."""
QUEUED, EDGES, ROUNDS, BLOCKS = range(4)
"""Positions in ``sizes``: rows in the queue, edges, passes through the queue, blocks in use."""
BLOCK = 8
"""Words of a block: a cache line."""


@njit(nogil=True)
def start(rows, bits, blocks, table, full, delta, queue, queued, sizes):
    """Set the bits of base rows, and put their rows into the queue. Return the arrays of blocks, which grow."""
    count = sizes[QUEUED]
    for i in range(len(rows)):
        full, delta = _with_room(1, full, delta, sizes)
        at = _block(rows[i] * blocks + bits[i] // (64 * BLOCK), table, sizes) + bits[i] // 64 % BLOCK
        bit = np.uint64(1) << np.uint64(bits[i] & 63)
        if full[at] & bit == 0:
            full[at] |= bit
            delta[at] |= bit
            if not queued[rows[i]]:
                queued[rows[i]] = True
                queue[count] = rows[i]
                count += 1
    sizes[QUEUED] = count
    return full, delta


@njit(nogil=True)
def _with_room(more, full, delta, sizes):
    """Return the arrays of blocks, with room for ``more`` of them."""
    if (sizes[BLOCKS] + more) * BLOCK <= len(full):
        return full, delta
    zeros = np.zeros(max(len(full), more * BLOCK), np.uint64)
    return np.append(full, zeros), np.append(delta, zeros)


@njit(**LEAF)
def _block(place, table, sizes):
    """Return where the block at a place of the table begins; a place without one gets it."""
    if table[place] == 0:
        sizes[BLOCKS] += 1
        table[place] = sizes[BLOCKS]
    return (np.int64(table[place]) - 1) * BLOCK


@njit(**LEAF)
def _collect(row, blocks, table, source, words, active):
    """Copy the bits of a row in ``source`` to ``words``; list the blocks with bits in ``active``, return how many."""
    count = 0
    for b in range(blocks):
        number = np.int64(table[row * blocks + b])
        if number != 0:
            changed = np.uint64(0)
            for j in range(BLOCK):
                word = source[(number - 1) * BLOCK + j]
                words[b * BLOCK + j] = word
                changed |= word
            if changed != 0:
                active[count] = b
                count += 1
    return count


@njit(**LEAF)
def _send(words, active, count, row, blocks, table, full, delta, queue, queued, sizes):
    """Add the bits of ``active`` blocks to a row, and put the row into the queue if any bit is new.

    The arrays have room for as many blocks.
    """
    changed = np.uint64(0)
    for i in range(count):
        origin = active[i] * BLOCK
        at = _block(row * blocks + active[i], table, sizes)
        for j in range(BLOCK):
            fresh = words[origin + j] & ~full[at + j]
            changed |= fresh
            full[at + j] |= fresh
            delta[at + j] |= fresh
    if changed != 0 and not queued[row]:
        queued[row] = True
        queue[sizes[QUEUED]] = row
        sizes[QUEUED] += 1


@njit(**LEAF)
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
def add_edges(
    new, flows, relations, blocks, table, full, delta, queue, queued, first, sizes, edges, links, known, words, active
):
    """Add edges; along each that is new, send the bits of its origin. Return the arrays that grow.

    ``words`` and ``active`` are overwritten.
    """
    vertex_mask = np.int64((1 << VERTEX_BITS) - 1)
    for edge in new:
        size = sizes[EDGES]
        if 2 * (size + 1) > len(known):
            known = _rehashed(known)
        if not _insert(known, edge):
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
        count = _collect(source, blocks, table, full, words, active)
        full, delta = _with_room(count, full, delta, sizes)
        _send(words, active, count, head, blocks, table, full, delta, queue, queued, sizes)
    return full, delta, edges, links, known


@njit(nogil=True)
def _derive(n, flow, vertex, words, active, blocks_sent, offsets, targets, vertex_of_bit, found, count):
    """Write the edges that new pairs of a row add by flow ``n`` behind the ``count`` of ``found``. Return both.

    ``found`` grows. The new pairs are the bits of ``blocks_sent`` blocks.
    """
    lookup = flow[LOOKUP]
    if lookup != -1 and flow[KEY] == ROW and offsets[lookup, vertex] == offsets[lookup, vertex + 1]:
        return found, count
    ends = np.zeros(3, np.int64)
    ends[ROW] = vertex
    for k in range(blocks_sent * BLOCK):
        j = active[k // BLOCK] * BLOCK + k % BLOCK
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
    flows, offsets, targets, vertex_of_bit, relations, blocks,
    table, full, delta, queue, spare, queued, first, sizes, edges, links, known, words, active,
):  # fmt: skip
    """Move bits along edges until nothing changes. Return the arrays that grow."""
    vertex_mask = np.int64((1 << VERTEX_BITS) - 1)
    found = np.empty(1024, np.int64)
    while sizes[QUEUED] > 0:
        sizes[ROUNDS] += 1
        count = sizes[QUEUED]
        sizes[QUEUED] = 0
        for i in range(count):
            row = queue[i]
            vertex, relation = row // relations, row % relations
            queued[row] = False
            sent = _collect(row, blocks, table, delta, words, active)
            for k in range(sent):
                at = _block(row * blocks + active[k], table, sizes)
                delta[at : at + BLOCK] = 0
            link = first[row]
            while link >= 0:
                head = (edges[link] & vertex_mask) * relations + flows[edges[link] >> FLOW_SHIFT, HEAD]
                full, delta = _with_room(sent, full, delta, sizes)
                _send(words, active, sent, head, blocks, table, full, delta, spare, queued, sizes)
                link = links[link]
            new = 0
            for n in range(len(flows)):
                flow = flows[n]
                if flow[READS] == relation:
                    found, new = _derive(
                        n, flow, vertex, words, active, sent, offsets, targets, vertex_of_bit, found, new
                    )
                elif flow[READS] == -1 and flow[SOURCE] == relation and flow[LOOKUP] == -1:
                    full, delta = _with_room(sent, full, delta, sizes)
                    head = vertex * relations + flow[HEAD]
                    _send(words, active, sent, head, blocks, table, full, delta, spare, queued, sizes)
                elif flow[READS] == -1 and flow[SOURCE] == relation:
                    for e in range(offsets[flow[LOOKUP], vertex], offsets[flow[LOOKUP], vertex + 1]):
                        head = targets[e] * relations + flow[HEAD]
                        full, delta = _with_room(sent, full, delta, sizes)
                        _send(words, active, sent, head, blocks, table, full, delta, spare, queued, sizes)
            full, delta, edges, links, known = add_edges(
                found[:new], flows, relations, blocks, table, full, delta, spare, queued, first, sizes,
                edges, links, known, words, active,
            )  # fmt: skip
        queue, spare = spare, queue
    return full, delta, edges, links, known


@njit(nogil=True)
def count_pairs(relation, relations, blocks, table, full):
    """Return the number of pairs of a relation."""
    total = 0
    for row in range(relation, len(table) // blocks, relations):
        for place in range(row * blocks, (row + 1) * blocks):
            if table[place] != 0:
                at = (np.int64(table[place]) - 1) * BLOCK
                total += count_bits(full[at : at + BLOCK])
    return total


@njit(nogil=True)
def write_rows(relation, relations, blocks, table, full, values, vertices, xs, ys):
    """Write the pairs of a relation as words: values of the carried key to ``xs``, vertices to ``ys``."""
    at = 0
    for row in range(relation, len(table) // blocks, relations):
        vertex = vertices[row // relations : row // relations + 1]
        for b in range(blocks):
            number = np.int64(table[row * blocks + b])
            if number != 0:
                bits = full[(number - 1) * BLOCK : number * BLOCK]
                at = write_pairs(values[64 * BLOCK * b :], vertex, BLOCK, bits, xs, ys, at)


@njit(nogil=True)
def count_bits(words):
    """Return the number of bits that are set in all words."""
    total = 0
    for word in words:
        total += count_ones(word)
    return total
