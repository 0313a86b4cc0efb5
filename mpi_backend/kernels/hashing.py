"""Compute Catalyst's ``Murmur3Hash`` of words, so that rows are placed as by Spark's ``HashPartitioning``."""

from __future__ import annotations

import numpy as np

from mpi_backend.kernels.cache import LEAF, njit

LONG, INT, FLOAT, TEXT = 0, 1, 2, 3
"""Kinds of columns: hashed as eight bytes, four bytes, the bits of a 32-bit float, the bytes of a text."""
SEED = 42
_LOW = np.uint64(0xFFFFFFFF)


@njit(nogil=True)
def _mix(h, k):
    k = (k * np.uint64(0xCC9E2D51)) & _LOW
    k = ((k << np.uint64(15)) | (k >> np.uint64(17))) & _LOW
    k = (k * np.uint64(0x1B873593)) & _LOW
    h = h ^ k
    h = ((h << np.uint64(13)) | (h >> np.uint64(19))) & _LOW
    return (h * np.uint64(5) + np.uint64(0xE6546B64)) & _LOW


@njit(nogil=True)
def _finish(h, length):
    h = h ^ np.uint64(length)
    h = h ^ (h >> np.uint64(16))
    h = (h * np.uint64(0x85EBCA6B)) & _LOW
    h = h ^ (h >> np.uint64(13))
    h = (h * np.uint64(0xC2B2AE35)) & _LOW
    return h ^ (h >> np.uint64(16))


@njit(**LEAF)
def _text(offsets, data, word, seed):
    start, end = offsets[word], offsets[word + 1]
    whole = start + (end - start) // 4 * 4
    h = seed
    for i in range(start, whole, 4):
        k = (
            np.uint64(data[i])
            | np.uint64(data[i + 1]) << np.uint64(8)
            | np.uint64(data[i + 2]) << np.uint64(16)
            | np.uint64(data[i + 3]) << np.uint64(24)
        )
        h = _mix(h, k)
    for i in range(whole, end):
        h = _mix(h, np.uint64(np.int64(np.int8(data[i]))) & _LOW)
    return _finish(h, end - start)


@njit(nogil=True)
def hash_words(rows, at, stride, count, columns, kinds, mask_at, offsets, data, out) -> None:
    """Write Spark's hash of ``columns`` of each flat row into ``out``. Row i begins at ``at + i * stride``.

    ``kinds`` says how each column is hashed. The word at ``mask_at`` (-1: none) has a bit for each null column. A null
    does not change the hash.
    """
    for i in range(count):
        base = at + i * stride
        h = np.uint64(SEED)
        for j in range(len(columns)):
            c = columns[j]
            if mask_at >= 0 and (rows[base + mask_at] >> c) & 1:
                continue
            word = rows[base + c]
            if kinds[j] == TEXT:
                h = _text(offsets, data, word, h)
            elif kinds[j] == LONG:
                bits = np.uint64(word)
                h = _finish(_mix(_mix(h, bits & _LOW), bits >> np.uint64(32)), 8)
            else:
                # A float is stored as a double.
                bits = _float_bits(word) if kinds[j] == FLOAT else np.uint64(word) & _LOW
                h = _finish(_mix(h, bits), 4)
        out[i] = np.int32(np.uint32(h))


@njit(nogil=True)
def _float_bits(word):
    words = np.empty(1, np.int64)
    words[0] = word
    floats = words.view(np.float64).astype(np.float32)
    return np.uint64(floats.view(np.uint32)[0])


@njit(nogil=True)
def buckets(hashes, count, bucket_count) -> None:
    """Replace each hash by the number of its bucket of ``bucket_count`` (Spark's ``Pmod``)."""
    for i in range(count):
        bucket = hashes[i] % bucket_count
        hashes[i] = bucket if bucket >= 0 else bucket + bucket_count
