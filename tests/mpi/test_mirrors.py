"""Test the choice of mirrors: strata whose rules all follow edges between rows, with enough edges for every rank."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from mpi_backend.comm import SingleRank
from mpi_backend.load.inputs import Inputs
from mpi_backend.load.place_edges import place_edges
from mpi_backend.state.facts import Facts
from mpi_backend.state.strings import Strings
from mpi_backend.state.types import Column, Table, type_of
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.whole import whole_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text

COLUMNS = {
    "edge": [("x", "bigint"), ("y", "bigint"), ("w", "bigint")],
    "narrow": [("x", "bigint"), ("y", "int")],
    "start": [("x", "bigint")],
}
PATHS = "d(x, $MIN(0)) :- start(x). d(y, $MIN(v + w)) :- d(x, v), edge(x, y, w)."
NOT_MIRRORED = {
    "a limit": ".limit d(iterations=3)\n" + PATHS,
    "rows found by hashing": "d(x, $MIN(0)) :- start(x). d(y + 0, $MIN(v + w)) :- d(x, v), edge(x, y, w).",
    "two look-ups elsewhere": "d(x, $MIN(0)) :- start(x). d(z, $MIN(v)) :- d(x, v), edge(x, y, _), edge(x, z, _).",
    "edges from a part of a key": "d(x, x, $MIN(0)) :- start(x). d(y, w, $MIN(v + 1)) :- d(x, _, v), edge(x, y, w).",
    "not linear": "d(x, y, $MIN(w)) :- edge(x, y, w). d(x, z, $MIN(a + b)) :- d(x, y, a), d(y, z, b).",
    "two relations": "a(x) :- start(x). b(y) :- a(x), edge(x, y, _). a(y) :- b(x), edge(x, y, _).",
}


class TwoRanks(SingleRank):
    """One of two ranks with the same rows."""

    size = 2

    def allreduce_sum(self, votes: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
        return 2 * votes


def compile_facts(text: str, sub_buckets: int = 1) -> Facts:
    resolved = resolve_text(parse(text), COLUMNS)
    empty = {n for n, source in enumerate(resolved.sources) if not source.is_external}
    plan = compile_program(whole_program(resolved.program, empty))
    return Facts.for_stratum(plan.strata[-1], {i.id: i for i in plan.inputs}, sub_buckets)


def make_inputs(facts: Facts, degree: int) -> Inputs:
    """Return inputs with 100 rows that have ``degree`` edges each."""
    return inputs_of(facts, np.arange(100 * degree, dtype=np.int64) // degree)


def inputs_of(facts: Facts, words: np.ndarray) -> Inputs:  # type: ignore[type-arg]
    """Return inputs with these words in every column."""
    count = len(words)
    tables = {
        n: Table(tuple(Column(type_of(e.type), words, None, None) for e in i.exprs), count)
        for n, i in facts.inputs.items()
    }
    return Inputs(tables, Strings(pa.array([], pa.string())))


def test_edges_move_to_their_targets() -> None:
    facts = compile_facts(PATHS)
    mirrored = place_edges(facts, make_inputs(facts, 5), TwoRanks())
    [before], [after] = facts.stratum.static_indexes, mirrored.stratum.static_indexes
    assert (before.partition_by, after.partition_by) == (before.keys, (before.payload[0],))
    [copy], [rule] = mirrored.stratum.relation_indexes, mirrored.stratum.rules
    assert (mirrored.mirror, rule.driver.index, copy.placement, copy.copy) == (copy.id, copy.id, "everywhere", True)


@pytest.mark.parametrize("degree", [1, 4])
def test_few_edges_get_no_mirrors(degree: int) -> None:
    facts = compile_facts(PATHS)
    assert place_edges(facts, make_inputs(facts, degree), TwoRanks()) == facts


@pytest.mark.parametrize("hub", [0, 1])
@pytest.mark.parametrize(("degree", "is_mirrored"), [(1, False), (8, True)])
def test_a_hub_does_not_decide_for_all(hub: int, degree: int, is_mirrored: bool) -> None:  # noqa: FBT001 - a parameter
    """Of many rows a sample of the keys is counted, and a hub in it must not count for others. Key 0 always is."""
    facts = compile_facts(PATHS)
    many = np.arange(70_000 * degree, dtype=np.int64) // degree + 2
    inputs = inputs_of(facts, np.concatenate([np.full(70_000, hub, np.int64), many]))
    placement = place_edges(facts, inputs, TwoRanks()).placement
    assert placement is not None
    assert placement.at_targets == is_mirrored
    [ends] = placement.ends.values()
    hubs = 0 if is_mirrored else 1  # among so many edges it has less than a fourth of a rank's fair part
    assert len(ends.heavy_sources) == len(ends.heavy_targets) == hubs


def test_one_rank_has_no_mirrors() -> None:
    facts = compile_facts(PATHS)
    assert place_edges(facts, make_inputs(facts, 5), SingleRank()) == facts


@pytest.mark.parametrize("text", NOT_MIRRORED.values(), ids=NOT_MIRRORED)
def test_other_rules_have_no_mirrors(text: str) -> None:
    facts = compile_facts(text)
    assert place_edges(facts, make_inputs(facts, 5), TwoRanks()).mirror is None


def test_sub_buckets_exclude_mirrors() -> None:
    facts = compile_facts(PATHS, 4)
    assert facts.spread is not None
    assert place_edges(facts, make_inputs(facts, 5), TwoRanks()).mirror is None
