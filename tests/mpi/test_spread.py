"""Sub-buckets: which look-ups are spread, who gets copies of the delta, and that a hub's rows lie on all ranks."""

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


def planned(text: str) -> Stratum:
    resolved = resolve_text(parse(text), COLUMNS)
    empty = {n for n, source in enumerate(resolved.sources) if not source.is_external}
    return compile_program(whole_program(resolved.program, empty)).strata[-1]


def spread(text: str) -> Spread | None:
    return planned(text).spread


PATHS = "d(x, $MIN(0)) :- start(x). d(y, $MIN(v + w)) :- d(x, v), edge(x, y, w)."


def test_edges_are_spread_and_the_delta_follows_them() -> None:
    where = spread(PATHS)
    assert where is not None
    [rule] = where.stratum.rules
    [copy] = where.stratum.relation_indexes
    assert (where.statics, where.to_all) == ((0,), (copy.id,))
    assert (rule.driver.index, copy.copy, where.stratum.in_place) == (copy.id, True, False)
    assert not any(isinstance(s, Probe) and s.aligned for s in rule.steps)  # the rows of a copy have their own numbers


@pytest.mark.parametrize(("count", "is_spread"), [(1, False), (4, True)])
def test_one_sub_bucket_changes_nothing(count: int, *, is_spread: bool) -> None:
    plan = planned(PATHS)
    facts = Facts.for_stratum(plan, {}, count)
    assert (facts.stratum == plan, facts.is_spread_index(0)) == (not is_spread, is_spread)


def test_what_a_negation_looks_up_is_not_spread() -> None:
    text = "d(x) :- start(x). d(y) :- d(x), edge(x, y, _), !bad(x)."
    assert spread(text) is None  # two partitioned lookups must meet in the same place


def test_a_relation_with_a_further_key_is_spread_by_it() -> None:
    where = spread("p(x, y) :- edge(x, y, _). p(x, z) :- p(x, y), p(y, z).")
    assert where is None or not where.relations  # a copy of it is looked up, which lies by the other key
    where = spread("p(x, y) :- edge(x, y, _). p(x, z) :- p(x, y), edge(y, z, _).")
    assert where is not None
    assert where.relations == ("p",)


@pytest.mark.parametrize(("sub_buckets", "ranks"), [(1, 1), (2, 2), (4, 4), (8, 4)])
def test_a_hub_lies_on_as_many_ranks_as_it_has_sub_buckets(sub_buckets: int, ranks: int) -> None:
    rows = np.stack([np.full(1000, 7), np.arange(1000)], axis=1).ravel()
    owner = Owner([0], [type_of("bigint")] * 2, 4, 4, [1], sub_buckets)
    strings = Strings(sorted_texts([]))
    found = owner.ranks(rows, 2, -1, strings, 1000)
    assert len(set(found.tolist())) == ranks
    # Whoever asks for the rows of a key asks all of these.
    asked = {int(r[0]) for r in owner.all_ranks(rows, 2, -1, strings, 1)}
    assert set(found.tolist()) <= asked
