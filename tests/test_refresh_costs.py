"""Test what refreshes cost, as records and commits have it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_paralagg.delta import decide
from pyspark_paralagg.delta.record import Costs, LastRefresh, Record
from pyspark_paralagg.delta.tables import Commit

FULL = Record("full", "", "", None, 0, {}, began=100.0)


def after(record: Record, seconds: float | None) -> Costs:
    return LastRefresh(Commit(1, "WRITE", None, {}, seconds), record, None).costs


def test_a_full_refresh_costs_what_it_took() -> None:
    assert after(FULL, 104.0) == Costs(4.0, None)


def test_a_full_refresh_after_a_vain_attempt_is_both() -> None:
    assert after(replace(FULL, wasted=3.0, has_deletes=True), 104.0) == Costs(1.0, 4.0)


def test_maintained_deletes_cost_what_they_took() -> None:
    known = Costs(2.0, 9.0)
    assert after(replace(FULL, kind="incremental", has_deletes=True, costs=known), 103.0) == Costs(2.0, 3.0)
    assert after(replace(FULL, kind="incremental", costs=known), 103.0) == known


def test_the_cost_of_deletes_is_forgotten_by_and_by() -> None:
    record, tries = replace(FULL, costs=Costs(1.0, 9.0)), 0
    while decide.costs_more(record.costs.deletes, record.costs.full):
        record, tries = replace(FULL, costs=after(record, 101.0)), tries + 1
    assert 5 < tries < 20


@pytest.mark.parametrize("seconds", [None, 99.0])
def test_clocks_that_differ_say_nothing(seconds: float | None) -> None:
    assert after(replace(FULL, costs=Costs(1.0, 2.0)), seconds) == Costs(1.0, 2.0)


@pytest.mark.parametrize("costs", [Costs(), Costs(1.0), Costs(None, 9.0), Costs(1.0, 3.1), Costs(100.0, 121.0)])
def test_small_differences_and_unknown_costs_decide_nothing(costs: Costs) -> None:
    assert not decide.costs_more(costs.deletes, costs.full)


@pytest.mark.parametrize("costs", [Costs(1.0, 3.3), Costs(100.0, 123.0)])
def test_deletes_that_took_longer_are_not_maintained(costs: Costs) -> None:
    assert decide.costs_more(costs.deletes, costs.full)


def test_deletes_from_a_kept_state_have_a_cost_of_their_own() -> None:
    known = Costs(2.0, 9.0, 5.0)
    record = replace(FULL, kind="incremental", has_deletes=True, from_state=True, costs=known)
    assert after(record, 101.5) == Costs(2.0, 9.0, 1.5)
    assert after(replace(FULL, costs=known), 104.0) == Costs(4.0, 8.1, 4.5)


def test_a_record_is_read_as_it_was_written_and_older_ones_have_no_costs() -> None:
    record = replace(FULL, costs=Costs(1.0, 2.0))
    assert Record.from_json(record.to_json()) == record
    older = (
        record.to_json()
        .replace('"began": 100.0, ', "")
        .replace('"costs": {"deletes": 2.0, "from_state": null, "full": 1.0}, ', "")
    )
    found = Record.from_json(older)
    assert found is not None
    assert (found.began, found.costs) == (None, Costs())
