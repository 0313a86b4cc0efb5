"""Test that the scale model counts what real ranks do, in each round and on each rank."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.scale.counts import measure, sent_bytes
from benchmarks.scale.graphs import make
from benchmarks.scale.kernels import COPY_PARTNERS, PARTNERS, WORK
from benchmarks.scale.measured import run_cases
from benchmarks.scale.pairs import count, replay
from benchmarks.scale.placement import place
from benchmarks.scale.programs import QUERIES

VERTICES = [
    (query, graph, placement)
    for query in ("sssp", "components", "reach")
    for graph in ("rmat-9", "out-star-1000", "both-1000")
    for placement in ("source", "mirrors", "hybrid", "sub-buckets-2")
]
PAIRS = [("closure", graph, p) for graph in ("up-6", "ring-20-skew-GT-40") for p in ("source", "sub-buckets-3")]
CASES = [*VERTICES, *PAIRS, ("pagerank", "rmat-9", "source")]
FORMS = {"mirrored", "edges of 1 hub spread", "mirrored, edges of 1 hub spread", ""}


@pytest.mark.parametrize("ranks", [2, 3, 5])
def test_counts_are_those_of_real_ranks(ranks: int) -> None:
    real = run_cases(CASES, ranks)
    forms = set()
    for case in CASES:
        query, graph, measured = QUERIES[case[0]], make(case[1]), real[case]
        rounds = replay(query, graph)
        placement = place(case[2], ranks, query, graph, rounds.edges)
        counts = list(count(rounds, placement))
        last = len(counts)  # the mirrored form finds in one more round that nothing has changed
        assert len(measured.work) - last in (0, 1), case
        assert not np.concatenate([measured.work[last:], measured.bytes[last:]]).any(), case
        np.testing.assert_array_equal([c[WORK] for c in counts], measured.work[:last], str(case))
        np.testing.assert_array_equal(
            [sent_bytes(c, query.row_words) for c in counts], measured.bytes[:last], str(case)
        )
        np.testing.assert_array_equal([c[PARTNERS] for c in counts], measured.partners[:last], str(case))
        np.testing.assert_array_equal([c[COPY_PARTNERS] for c in counts], measured.copy_partners[:last], str(case))
        assert placement.form == measured.form, case
        assert measured.bytes.any(), case
        forms.add(placement.form)
    assert forms <= FORMS
    assert "edges of 1 hub spread" in forms


@pytest.mark.parametrize(("ranks", "expected"), [(2, 1_641_536), (4, 3_928_160), (16_384, 90_048_496)])
def test_bytes_of_shortest_paths_are_pinned(ranks: int, expected: int) -> None:
    query, graph = QUERIES["sssp"], make("rmat-16")
    rounds = replay(query, graph)
    counted = measure(count(rounds, place("source", ranks, query, graph, rounds.edges)), ranks, query.row_words)
    assert counted.total["bytes"].sum() == expected
