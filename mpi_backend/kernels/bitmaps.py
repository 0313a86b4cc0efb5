"""Sets (x, y) whose rules carry x and move y along edges, for 64·W values of x at once: a bitmap of x for each y.

A delta bitmap joined with an edge is ``new = delta[y] & ~full[z]``: 64·W tuples an operation, no hashing
(docs/design.md, "Bitmap width").
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit

COUNT, TOUCHED = 0, 1
"""Places of ``sizes``: vertices in the queue, vertices that some x of the block reaches."""


@njit(nogil=True)
def begin(starts, firsts, low, high, width, full, delta, queue, queued, touched, seen, sizes):
    """Puts the base rows of the sources ``low`` until ``high`` into the bitmaps; sources are bits, in their order."""
    count = reached = 0
    for x in range(low, high):
        bit = np.uint64(1) << np.uint64((x - low) & 63)
        for i in range(starts[x], starts[x + 1]):
            y = firsts[i]
            at = y * width + ((x - low) >> 6)
            full[at] |= bit
            delta[at] |= bit
            if not seen[y]:
                seen[y] = True
                touched[reached] = y
                reached += 1
            if not queued[y]:
                queued[y] = True
                queue[count] = y
                count += 1
    sizes[COUNT] = count
    sizes[TOUCHED] = reached


@njit(nogil=True)
def follow(offsets, targets, width, full, delta, queue, spare, queued, touched, seen, sizes):
    """Follows edges until nothing changes; how often it went through the queue."""
    if width == 1:
        return _follow_one(offsets, targets, full, delta, queue, spare, queued, touched, seen, sizes)
    bits = np.empty(width, np.uint64)
    count, reached = sizes[COUNT], sizes[TOUCHED]
    rounds = 0
    while count > 0:
        rounds += 1
        more = 0
        for i in range(count):
            y = np.int64(queue[i])
            queued[y] = False
            for j in range(width):
                bits[j] = delta[y * width + j]
                delta[y * width + j] = np.uint64(0)
            for e in range(offsets[y], offsets[y + 1]):
                z = np.int64(targets[e])
                at = z * width
                some = np.uint64(0)
                for j in range(width):
                    fresh = bits[j] & ~full[at + j]
                    some |= fresh
                    full[at + j] |= fresh
                    delta[at + j] |= fresh
                if some != 0:
                    if not seen[z]:
                        seen[z] = True
                        touched[reached] = z
                        reached += 1
                    if not queued[z]:
                        queued[z] = True
                        spare[more] = z
                        more += 1
        queue, spare = spare, queue
        count = more
    sizes[TOUCHED] = reached
    return rounds


@njit(nogil=True)
def _follow_one(offsets, targets, full, delta, queue, spare, queued, touched, seen, sizes):
    """The same for bitmaps of one word."""
    count, reached = sizes[COUNT], sizes[TOUCHED]
    rounds = 0
    while count > 0:
        rounds += 1
        more = 0
        for i in range(count):
            y = np.uint32(queue[i])
            queued[y] = False
            bits = delta[y]
            delta[y] = np.uint64(0)
            for e in range(np.uint32(offsets[y]), np.uint32(offsets[y + 1])):
                z = np.uint32(targets[e])
                fresh = bits & ~full[z]
                if fresh != 0:
                    full[z] |= fresh
                    delta[z] |= fresh
                    if not seen[z]:
                        seen[z] = True
                        touched[reached] = z
                        reached += 1
                    if not queued[z]:
                        queued[z] = True
                        spare[more] = z
                        more += 1
        queue, spare = spare, queue
        count = more
    sizes[TOUCHED] = reached
    return rounds


@njit(nogil=True)
def collect(touched, width, full, seen, bits):
    """Moves the bitmaps of the touched vertices to ``bits``, and clears them; how many pairs they hold."""
    pairs = 0
    for i in range(len(touched)):
        y = np.int64(touched[i])
        seen[y] = False
        for j in range(width):
            word = full[y * width + j]
            bits[i * width + j] = word
            full[y * width + j] = np.uint64(0)
            pairs += _ones(word)
    return pairs


@njit(nogil=True)
def _ones(word):
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(nogil=True)
def pairs_of(sources, vertices, width, bits, xs, ys, at):
    """The pairs of a block as words, from ``at`` on; where the next block's begin."""
    for i in range(len(vertices)):
        for j in range(width):
            word = bits[i * width + j]
            while word != 0:
                low = word & (~word + np.uint64(1))
                xs[at] = sources[64 * j + _ones(low - np.uint64(1))]
                ys[at] = vertices[i]
                at += 1
                word ^= low
    return at
