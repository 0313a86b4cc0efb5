"""Define the arithmetic and text functions that generated code calls."""

from __future__ import annotations

import math

import numpy as np

from mpi_backend.kernels.cache import LEAF, njit

_MIN_INT64 = np.int64(-(1 << 63))


@njit(nogil=True)
def product_overflows(a, b):
    """Return whether ``a * b`` needs more than 64 bits."""
    if abs(np.float64(a) * np.float64(b)) < 9.0e18:
        return False
    if a == 0 or b == 0:
        return False
    if (a == -1 and b == _MIN_INT64) or (b == -1 and a == _MIN_INT64):
        return True
    return truncated_quotient(_product(a, b), b) != a


@njit(nogil=True)
def _product(a, b):
    """Return the product that wraps at 64 bits. Unsigned, because LLVM assumes that signed ones do not overflow."""
    return np.int64(np.uint64(a) * np.uint64(b))


@njit(nogil=True)
def truncated_quotient(a, b):
    """Divide and round towards zero, as in Java."""
    if b == -1:
        return np.int64(np.uint64(0) - np.uint64(a))
    q = a // b
    return q + 1 if q < 0 and _product(q, b) != a else q


@njit(nogil=True)
def truncated_remainder(a, b):
    """Return the remainder, with the sign of ``a``."""
    if b == -1:
        return np.int64(0)
    return a - truncated_quotient(a, b) * b


@njit(nogil=True)
def saturated(x):
    """Convert a fraction to 64 bits: truncate it, clamp it to the range, NaN to 0."""
    if x != x:
        return np.int64(0)
    if x >= 9223372036854775807.0:
        return np.int64(9223372036854775807)
    if x <= -9223372036854775808.0:
        return _MIN_INT64
    return np.int64(x)


@njit(nogil=True)
def power(a, b):
    """Return the power as in Java: 1 to infinity is NaN, and so is NaN to any exponent but 0."""
    if b != b or (np.isinf(b) and abs(a) == 1.0):
        return np.nan
    return math.pow(a, b)


@njit(nogil=True)
def gcd(a, b):
    """Return the greatest common divisor. It is negative only for the smallest 64-bit number."""
    while b != 0:
        a, b = b, truncated_remainder(a, b)
    return a if a >= 0 else np.int64(np.uint64(0) - np.uint64(a))


@njit(**LEAF)
def text_less(offsets, data, a, b):
    """Return whether text ``a`` is less than text ``b``, byte by byte."""
    i, j = offsets[a], offsets[b]
    while i < offsets[a + 1] and j < offsets[b + 1]:
        if data[i] != data[j]:
            return data[i] < data[j]
        i += 1
        j += 1
    return i == offsets[a + 1] and j < offsets[b + 1]
