"""Test sub-buckets: which lookups are spread, which ranks get copies of the delta, where the rows of a hub are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from mpi_backend.state.facts import Facts
from mpi_backend.state.owner import Owner
from mpi_backend.state.strings import Strings, sorted_texts
from mpi_backend.state.types import type_of
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.whole import whole_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.plan.plan import Probe

if TYPE_CHECKING:
    from pyspark_paralagg.plan.plan import Spread, Stratum

COLUMNS = {
    "edge": [("x", "bigint"), ("y", "bigint"), ("w", "bigint")],
    "bad": [("x", "bigint")],
    "start": [("x", "bigint")],
}


def compile_stratum(text: str) -> Stratum:
    resolved = resolve_text(parse(text), COLUMNS)
    empty = {n for n, source in enumerate(resolved.sources) if not source.is_external}
    return compile_program(whole_program(resolved.program, empty)).strata[-1]


def spread(text: str) -> Spread | None:
    return compile_stratum(text).spread


PATHS = "d(x, $MIN(0)) :- start(x). d(y, $MIN(v + w)) :- d(x, v), edge(x, y, w)."


def test_edges_are_spread_and_the_delta_is_copied() -> None:
    result = spread(PATHS)
    assert result is not None
    [rule] = result.stratum.rules
    [copy] = result.stratum.relation_indexes
    assert (result.statics, result.to_all) == ((0,), (copy.id,))
    assert (rule.driver.index, copy.copy, result.stratum.in_place) == (copy.id, True, False)
    assert not any(isinstance(s, Probe) and s.aligned for s in rule.steps)  # a copy numbers its rows itself


@pytest.mark.parametrize(("count", "is_spread"), [(1, False), (4, True)])
def test_one_sub_bucket_changes_nothing(count: int, *, is_spread: bool) -> None:
    plan = compile_stratum(PATHS)
    facts = Facts.for_stratum(plan, {}, count)
    assert (facts.stratum == plan, facts.is_spread_index(0)) == (not is_spread, is_spread)


def test_a_rule_with_a_negation_is_not_spread() -> None:
    text = "d(x) :- start(x). d(y) :- d(x), edge(x, y, _), !bad(x)."
    assert spread(text) is None  # two partitioned lookups must meet in the same place


def test_a_relation_is_spread_by_its_other_key() -> None:
    result = spread("p(x, y) :- edge(x, y, _). p(x, z) :- p(x, y), p(y, z).")
    assert result is None or not result.relations  # the lookup is on a copy partitioned by the other key
    result = spread("p(x, y) :- edge(x, y, _). p(x, z) :- p(x, y), edge(y, z, _).")
    assert result is not None
    assert result.relations == ("p",)


@pytest.mark.parametrize(("sub_buckets", "ranks"), [(1, 1), (2, 2), (4, 4), (8, 4)])
def test_the_rows_of_a_hub_are_on_a_rank_for_each_sub_bucket(sub_buckets: int, ranks: int) -> None:
    rows = np.stack([np.full(1000, 7), np.arange(1000)], axis=1).ravel()
    owner = Owner([0], [type_of("bigint")] * 2, 4, 4, [1], sub_buckets)
    strings = Strings(sorted_texts([]))
    row_ranks = owner.ranks(rows, 2, -1, strings, 1000)
    assert len(set(row_ranks.tolist())) == ranks
    # A lookup of a key goes to all of these ranks.
    lookup_ranks = {int(r[0]) for r in owner.all_ranks(rows, 2, -1, strings, 1)}
    assert set(row_ranks.tolist()) <= lookup_ranks


@pytest.mark.parametrize(("sub_buckets", "ranks"), [(2, 2), (2, 4), (4, 4), (8, 4), (3, 5)])
def test_distinct_keys_are_even_on_all_ranks(sub_buckets: int, ranks: int) -> None:
    rows = np.stack([np.arange(100_000), np.arange(100_000) * 7], axis=1).ravel()
    owner = Owner([0], [type_of("bigint")] * 2, ranks, ranks, [1], sub_buckets)
    on_rank = np.bincount(owner.ranks(rows, 2, -1, Strings(sorted_texts([])), 100_000), minlength=ranks)
    assert on_rank.max() / on_rank.mean() < 1.05


@pytest.mark.parametrize("sub_buckets", [1, 2, 3, 4])
def test_rows_without_a_sub_bucket_are_where_their_partition_is_written(sub_buckets: int) -> None:
    """Rank r writes partition r and every ``ranks``-th one after it."""
    rows = np.arange(1000)
    owner = Owner([0], [type_of("bigint")], 7, 2, (), sub_buckets)
    strings = Strings(sorted_texts([]))
    buckets = owner.buckets(rows, 1, -1, strings, 1000)
    assert (owner.ranks(rows, 1, -1, strings, 1000) == buckets % 2).all()
