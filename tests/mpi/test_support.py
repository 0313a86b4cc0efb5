"""Test the functions that generated code calls: Java's arithmetic at the limits of 64 bits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mpi_backend.kernels import support

MIN, MAX = -(1 << 63), (1 << 63) - 1
EDGES = [0, 1, -1, 2, -3, 7, 63, 127, -128, 2**31 - 1, -(2**31), 3_037_000_500, 2**53 + 1, MAX, MIN, MIN + 1]
PAIRS = [(np.int64(a), np.int64(b)) for a, b in itertools.product(EDGES, EDGES)]
DIVISIBLE = [(a, b) for a, b in PAIRS if b != 0 and not (a == MIN and b == -1)]


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def test_overflow_of_a_product_is_detected() -> None:
    """LLVM assumes that signed products do not overflow, so it would remove a check of the product itself."""
    result = [bool(support.product_overflows(a, b)) for a, b in PAIRS]
    assert result == [not MIN <= int(a) * int(b) <= MAX for a, b in PAIRS]


def test_quotients_and_remainders_equal_javas() -> None:
    assert [support.truncated_quotient(a, b) for a, b in DIVISIBLE] == [quotient(int(a), int(b)) for a, b in DIVISIBLE]
    remainders = [int(a) - quotient(int(a), int(b)) * int(b) for a, b in DIVISIBLE]
    assert [support.truncated_remainder(a, b) for a, b in DIVISIBLE] == remainders
    assert support.truncated_quotient(np.int64(MIN), np.int64(-1)) == MIN


def test_gcd_is_positive_unless_it_needs_more_than_64_bits() -> None:
    for a, b in PAIRS:
        exact = math.gcd(int(a), int(b))
        assert support.gcd(a, b) == (MIN if exact > MAX else exact)


@pytest.mark.parametrize(
    ("x", "whole"),
    [(1.9, 1), (-1.9, -1), (math.nan, 0), (math.inf, MAX), (-math.inf, MIN), (9.3e18, MAX), (-1e19, MIN)],
)
def test_fractions_are_truncated_and_clamped(x: float, whole: int) -> None:
    assert support.saturated(x) == whole


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (2.0, 10.0, 1024.0),
        (math.nan, 0.0, 1.0),
        (1.0, math.nan, math.nan),
        (-1.0, math.inf, math.nan),
        (0.0, -1.0, math.inf),
    ],
)
def test_powers_equal_javas(a: float, b: float, expected: float) -> None:
    assert support.power(a, b) == expected or (math.isnan(expected) and math.isnan(support.power(a, b)))


def test_texts_are_compared_by_bytes() -> None:
    texts = ["", "a", "ab", "b", "é", "日本", "\U0001f600"]
    data = "".join(texts).encode()
    offsets = np.cumsum([0, *(len(t.encode()) for t in texts)])
    result = [
        [bool(support.text_less(offsets, np.frombuffer(data, np.uint8), a, b)) for b in range(len(texts))]
        for a in range(len(texts))
    ]
    assert result == [[a.encode() < b.encode() for b in texts] for a in texts]
