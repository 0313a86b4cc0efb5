"""Test that the scale model counts what real ranks do, in each round and on each rank."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import structures
from benchmarks.scale import placement as placement_module
from benchmarks.scale.costs import Sample, error, fit
from benchmarks.scale.counts import measure, sent_bytes
from benchmarks.scale.graphs import make
from benchmarks.scale.kernels import COPY_PARTNERS, PARTNERS, WORK
from benchmarks.scale.many_ranks import OneOfMany, on_all_ranks
from benchmarks.scale.measured import run_cases
from benchmarks.scale.pairs import count, replay
from benchmarks.scale.placement import STRINGS, place
from benchmarks.scale.programs import QUERIES, compile_query, table
from mpi_backend.load import place_edges
from mpi_backend.load.inputs import Inputs

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


@pytest.mark.parametrize("graph", ["out-star-1000", "both-1000", "rmat-9"])
@pytest.mark.parametrize("query", ["sssp", "components"])
def test_one_rank_decides_as_all_ranks_do(monkeypatch: pytest.MonkeyPatch, query: str, graph: str) -> None:
    edges = replay(QUERIES[query], make(graph)).edges
    together = place("hybrid", 7, QUERIES[query], make(graph), edges)
    monkeypatch.setattr(placement_module, "_EACH_RANK", 1)
    alone = place("hybrid", 7, QUERIES[query], make(graph), edges)
    assert together.form == alone.form
    np.testing.assert_array_equal(together.edge_rank, alone.edge_rank)


def test_hubs_are_found_if_a_rank_reads_few_edges() -> None:
    """A share of 13 edges has some 13 keys: the mean of all edges over these is thousands of times too large."""
    query, graph = QUERIES["sssp"], make("rmat-12")
    edges = replay(query, graph).edges
    at_sources, hybrid = (place(name, 4096, query, graph, edges) for name in ("source", "hybrid"))
    assert "hubs spread" in hybrid.form
    assert hybrid.edge_balance < at_sources.edge_balance / 4


def test_ranks_gather_no_vertices_but_hubs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 32 ranks reads 94 edges, fewer than 8 for each rank, so each vertex that it reads might be a hub."""
    gathered = set()

    def allgather_bytes(comm: OneOfMany, data: bytes) -> list[bytes]:
        gathered.add(len(data))
        return all_bytes(comm, data)

    all_bytes = OneOfMany.allgather_bytes
    monkeypatch.setattr(OneOfMany, "allgather_bytes", allgather_bytes)
    monkeypatch.setattr(placement_module, "_EACH_RANK", 32)
    query, graph = QUERIES["sssp"], make("out-star-1000")
    placement = place("hybrid", 32, query, graph, replay(query, graph).edges)
    assert placement.form == "edges of 1 hub spread"
    assert gathered == {0, 8}


@pytest.mark.parametrize("rows", [1000, 50_000])
def test_the_mean_degree_does_not_depend_on_the_order_of_edges(monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Each share of shuffled edges has most keys, so its own mean would be a tenth."""
    monkeypatch.setattr(place_edges, "_SAMPLED_ROWS", 1024)
    plan, _ = compile_query("sssp", limited=False)
    indexes = [i for i in plan.strata[-1].static_indexes if len(i.keys) == 1]
    sources = np.random.default_rng(0).integers(rows // 20, size=rows)

    def mean(comm: OneOfMany) -> float:
        inputs = Inputs({i.input: table([sources] * 3, comm.rank, comm.size) for i in indexes}, STRINGS)
        return place_edges._mean_degree(indexes, inputs, comm)

    assert on_all_ranks(10, mean) == pytest.approx(20, rel=0.1)


def test_costs_are_fitted_and_missed_only_by_noise() -> None:
    query, graph = QUERIES["sssp"], make("rmat-9")
    rounds = replay(query, graph)
    samples = []
    for ranks in (1, 2, 4):
        counted = measure(count(rounds, place("source", ranks, query, graph, rounds.edges)), ranks, query.row_words)
        seconds = 1e-5 * ranks + 2e-9 * counted.most["work"] + 3e-8 * counted.most["rows"]
        samples.append(Sample(("sssp", "rmat-9", "source"), ranks, counted, seconds))
    costs = fit(samples, {1: 1e-5, 2: 2e-5, 4: 4e-5})
    np.testing.assert_allclose([costs.edge, costs.row], [2e-9, 3e-8])
    assert max(abs(error(costs, s)) for s in samples) < 1e-9


def test_round_robin_leaves_no_rank_without_a_sub_bucket() -> None:
    (_, idle, _), (_, hashed_idle, _) = structures.mappings(make("rmat-9"), 512, 1)
    assert idle == 0
    assert hashed_idle == pytest.approx(100 / np.e, abs=3)


def test_structures_have_the_same_answers() -> None:
    assert len(list(structures.indexes(make("rmat-9")))) == 4
    assert [pairs for _, _, pairs, _ in structures.growing(make("ring-20"))] == [420, 420]
