"""Test the counter of ``benchmarks.sides``: in which rules and iterations the delta is larger than what it looks up."""

from __future__ import annotations

import numpy as np

from benchmarks.sides import TEXTS, run

CHAIN = (np.arange(8), np.arange(1, 9), np.ones(8, np.int64))
"""Deltas are paths of 1, 2, up to 4, up to 8 edges: 8, 7, 11 and 10 rows, after 0, 8, 15 and 26 rows."""


def test_counter_finds_the_iterations_whose_delta_is_the_larger_side() -> None:
    counts, _, rounds = run(TEXTS["closure, non-linear"], {"edge": CHAIN})
    assert rounds == 4
    # Each rule is driven by all deltas; only the first delta is larger than the rows before it, which are none.
    assert counts.drivers == 2 * 36
    assert counts.saved == 8
    assert counts.non_linear == counts.work


def test_linear_rules_have_no_side_to_choose() -> None:
    counts, _, _ = run(TEXTS["closure, linear"], {"edge": CHAIN})
    assert (counts.non_linear, counts.larger_delta, counts.saved) == (0, 0, 0)
    assert counts.work > 0
