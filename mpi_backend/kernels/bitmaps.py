"""Evaluate sets (x, y) whose rules carry x and move y along edges, with a bitmap of 64·W values of x for each y.

A delta bitmap joined with an edge is ``new = delta[y] & ~full[z]``: 64·W tuples in one operation, no hashing
(docs/design.md, "Bitmap width").
"""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import njit

COUNT, TOUCHED = 0, 1
"""Positions in ``sizes``: vertices in the queue, vertices that any x of the block reaches."""


@njit(nogil=True)
def begin(starts, firsts, low, high, width, full, delta, queue, queued, touched, seen, sizes):
    """Set the bits of the base rows of the sources ``low:high``. Bit i is source ``low + i``."""
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
    """Follow edges until nothing changes. Return the number of passes through the queue."""
    if width == 1:
        return _follow_single_word(offsets, targets, full, delta, queue, spare, queued, touched, seen, sizes)
    bits = np.empty(width, np.uint64)
    count, reached = sizes[COUNT], sizes[TOUCHED]
    rounds = 0
    while count > 0:
        rounds += 1
        next_count = 0
        for i in range(count):
            y = np.int64(queue[i])
            queued[y] = False
            for j in range(width):
                bits[j] = delta[y * width + j]
                delta[y * width + j] = np.uint64(0)
            for e in range(offsets[y], offsets[y + 1]):
                z = np.int64(targets[e])
                at = z * width
                any_new = np.uint64(0)
                for j in range(width):
                    new_bits = bits[j] & ~full[at + j]
                    any_new |= new_bits
                    full[at + j] |= new_bits
                    delta[at + j] |= new_bits
                if any_new != 0:
                    if not seen[z]:
                        seen[z] = True
                        touched[reached] = z
                        reached += 1
                    if not queued[z]:
                        queued[z] = True
                        spare[next_count] = z
                        next_count += 1
        queue, spare = spare, queue
        count = next_count
    sizes[TOUCHED] = reached
    return rounds


@njit(nogil=True)
def _follow_single_word(offsets, targets, full, delta, queue, spare, queued, touched, seen, sizes):
    """Follow edges with bitmaps of one word."""
    count, reached = sizes[COUNT], sizes[TOUCHED]
    rounds = 0
    while count > 0:
        rounds += 1
        next_count = 0
        for i in range(count):
            y = np.uint32(queue[i])
            queued[y] = False
            bits = delta[y]
            delta[y] = np.uint64(0)
            for e in range(np.uint32(offsets[y]), np.uint32(offsets[y + 1])):
                z = np.uint32(targets[e])
                new_bits = bits & ~full[z]
                if new_bits != 0:
                    full[z] |= new_bits
                    delta[z] |= new_bits
                    if not seen[z]:
                        seen[z] = True
                        touched[reached] = z
                        reached += 1
                    if not queued[z]:
                        queued[z] = True
                        spare[next_count] = z
                        next_count += 1
        queue, spare = spare, queue
        count = next_count
    sizes[TOUCHED] = reached
    return rounds


@njit(nogil=True)
def collect(touched, width, full, seen, bits):
    """Move the bitmaps of the touched vertices to ``bits``. Return the number of pairs."""
    pairs = 0
    for i in range(len(touched)):
        y = np.int64(touched[i])
        seen[y] = False
        for j in range(width):
            word = full[y * width + j]
            bits[i * width + j] = word
            full[y * width + j] = np.uint64(0)
            pairs += count_ones(word)
    return pairs


@njit(nogil=True)
def count_ones(word):
    """Return the number of bits that are set."""
    word = word - ((word >> np.uint64(1)) & np.uint64(0x5555555555555555))
    word = (word & np.uint64(0x3333333333333333)) + ((word >> np.uint64(2)) & np.uint64(0x3333333333333333))
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(nogil=True)
def write_pairs(sources, vertices, width, bits, xs, ys, at):
    """Write the pairs of a block as words from ``at`` on. Return where the next block begins."""
    for i in range(len(vertices)):
        for j in range(width):
            word = bits[i * width + j]
            while word != 0:
                low = word & (~word + np.uint64(1))
                xs[at] = sources[64 * j + count_ones(low - np.uint64(1))]
                ys[at] = vertices[i]
                at += 1
                word ^= low
    return at
