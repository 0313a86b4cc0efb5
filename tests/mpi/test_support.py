"""What generated code calls: whole numbers as Java computes them, at the edges of 64 bits."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from mpi_backend.kernels import support

LEAST, MOST = -(1 << 63), (1 << 63) - 1
EDGES = [0, 1, -1, 2, -3, 7, 63, 127, -128, 2**31 - 1, -(2**31), 3_037_000_500, 2**53 + 1, MOST, LEAST, LEAST + 1]
PAIRS = [(np.int64(a), np.int64(b)) for a, b in itertools.product(EDGES, EDGES)]
DIVISIBLE = [(a, b) for a, b in PAIRS if b != 0 and not (a == LEAST and b == -1)]


def quotient(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def test_products_that_need_more_than_64_bits_are_known() -> None:
    """Numba lets LLVM assume that signed products never go around: what tests the product itself is folded away."""
    found = [bool(support.product_overflows(a, b)) for a, b in PAIRS]
    assert found == [not LEAST <= int(a) * int(b) <= MOST for a, b in PAIRS]


def test_quotients_and_remainders_are_javas() -> None:
    assert [support.truncated_quotient(a, b) for a, b in DIVISIBLE] == [quotient(int(a), int(b)) for a, b in DIVISIBLE]
    remainders = [int(a) - quotient(int(a), int(b)) * int(b) for a, b in DIVISIBLE]
    assert [support.truncated_remainder(a, b) for a, b in DIVISIBLE] == remainders
    assert support.truncated_quotient(np.int64(LEAST), np.int64(-1)) == LEAST


def test_gcd_is_positive_unless_64_bits_are_too_few() -> None:
    for a, b in PAIRS:
        exact = math.gcd(int(a), int(b))
        assert support.gcd(a, b) == (LEAST if exact > MOST else exact)


@pytest.mark.parametrize(
    ("x", "whole"),
    [(1.9, 1), (-1.9, -1), (math.nan, 0), (math.inf, MOST), (-math.inf, LEAST), (9.3e18, MOST), (-1e19, LEAST)],
)
def test_fractions_are_cut_off_and_stay_in_range(x: float, whole: int) -> None:
    assert support.saturated(x) == whole


@pytest.mark.parametrize(
    ("a", "b", "found"),
    [
        (2.0, 10.0, 1024.0),
        (math.nan, 0.0, 1.0),
        (1.0, math.nan, math.nan),
        (-1.0, math.inf, math.nan),
        (0.0, -1.0, math.inf),
    ],
)
def test_powers_are_javas(a: float, b: float, found: float) -> None:
    assert support.power(a, b) == found or (math.isnan(found) and math.isnan(support.power(a, b)))


def test_texts_are_compared_by_bytes() -> None:
    texts = ["", "a", "ab", "b", "é", "日本", "\U0001f600"]
    data = "".join(texts).encode()
    offsets = np.cumsum([0, *(len(t.encode()) for t in texts)])
    found = [
        [bool(support.text_less(offsets, np.frombuffer(data, np.uint8), a, b)) for b in range(len(texts))]
        for a in range(len(texts))
    ]
    assert found == [[a.encode() < b.encode() for b in texts] for a in texts]
