"""Functions that generated code calls."""

from __future__ import annotations

import math

import numpy as np

from mpi_backend.kernels.cache import njit

_LEAST = np.int64(-(1 << 63))


@njit(nogil=True)
def product_overflows(a, b):
    """Whether ``a * b`` needs more than 64 bits."""
    if abs(np.float64(a) * np.float64(b)) < 9.0e18:
        return False
    if a == 0 or b == 0:
        return False
    if (a == -1 and b == _LEAST) or (b == -1 and a == _LEAST):
        return True
    return truncated_quotient(_product(a, b), b) != a


@njit(nogil=True)
def _product(a, b):
    """That goes around: Numba tells LLVM that signed products never do."""
    return np.int64(np.uint64(a) * np.uint64(b))


@njit(nogil=True)
def truncated_quotient(a, b):
    """Towards zero, as Java divides."""
    if b == -1:
        return np.int64(np.uint64(0) - np.uint64(a))
    q = a // b
    return q + 1 if q < 0 and _product(q, b) != a else q


@njit(nogil=True)
def truncated_remainder(a, b):
    """With the sign of ``a``."""
    if b == -1:
        return np.int64(0)
    return a - truncated_quotient(a, b) * b


@njit(nogil=True)
def saturated(x):
    """A fraction as a whole number of 64 bits: cut off, NaN is 0, the nearest one beyond the range."""
    if x != x:
        return np.int64(0)
    if x >= 9223372036854775807.0:
        return np.int64(9223372036854775807)
    if x <= -9223372036854775808.0:
        return _LEAST
    return np.int64(x)


@njit(nogil=True)
def power(a, b):
    """As Java has it: NaN to whatever but 0, and 1 to infinity, are NaN."""
    if b != b or (np.isinf(b) and abs(a) == 1.0):
        return np.nan
    return math.pow(a, b)


@njit(nogil=True)
def gcd(a, b):
    """The greatest common divisor, not negative but for the least number of all."""
    while b != 0:
        a, b = b, truncated_remainder(a, b)
    return a if a >= 0 else np.int64(np.uint64(0) - np.uint64(a))


@njit(nogil=True)
def text_less(offsets, data, a, b):
    """Whether text ``a`` comes before text ``b``, byte by byte."""
    i, j = offsets[a], offsets[b]
    while i < offsets[a + 1] and j < offsets[b + 1]:
        if data[i] != data[j]:
            return data[i] < data[j]
        i += 1
        j += 1
    return i == offsets[a + 1] and j < offsets[b + 1]
