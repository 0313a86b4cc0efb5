"""A slice of the program campaign (``make fuzz``), with a fresh seed that is printed; about a minute."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING

import pytest
from campaigns.programs import campaign, engines, outer
from campaigns.programs.draw import case_of
from campaigns.programs.shrink import shrunk, split
from datalog.programs_random import Case

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotates(runs=3)

MOST_REFUSED = 0.15
SECONDS = 20


@pytest.fixture
def first(record_property: Callable[[str, object], None]) -> int:
    """The seed of the first program: another one each time, or that of PARALAGG_SEED."""
    seed = int(os.environ.get("PARALAGG_SEED") or random.SystemRandom().randrange(10**9))
    record_property("seed", seed)
    print(f"PARALAGG_SEED={seed}")  # noqa: T201 - pytest shows it where the test fails
    return seed


def passed(tally: campaign.Tally, first: int, least: int) -> None:
    refused = sum(tally.refused.values())
    print(tally)  # noqa: T201 - likewise
    assert not tally.failures, f"PARALAGG_SEED={first}: {tally}\n" + "\n".join(tally.failures)
    assert tally.agreed >= least, f"PARALAGG_SEED={first}: {tally}"
    assert refused <= max(2, MOST_REFUSED * tally.programs), tally.refused.most_common()


@pytest.mark.parametrize("engine", [engines.simulated, engines.whole], ids=["a Plan a stratum", "one Plan"])
def test_programs_on_simulated_ranks(first: int, engine: Callable[[Case], list[engines.Rows]]) -> None:
    until = time.monotonic() + SECONDS / 2
    passed(campaign.run(range(first, first + 100), engine, until=until), first, 5)


@pytest.mark.slow("a campaign of twenty seconds")
def test_programs_in_process(first: int) -> None:
    """With compiled kernels. With kernels run by Python (``interpreted``) it takes a process of its own."""
    pytest.importorskip("numba", reason="the engine needs numba")
    until = time.monotonic() + SECONDS
    passed(campaign.run(range(first, first + 8), engines.local, until=until), first, 1)


def test_programs_on_spark(spark: SparkSession, first: int) -> None:
    until = time.monotonic() + SECONDS
    passed(campaign.run(range(first, first + 8), engines.on_spark(spark, None), until=until), first, 1)


def test_queries_over_recursions(spark: SparkSession, first: int) -> None:
    until = time.monotonic() + SECONDS
    passed(outer.run(spark, range(first, first + 10), until), first, 1)


def test_the_same_seed_draws_the_same_program() -> None:
    assert repr(case_of(7)) == repr(case_of(7))
    assert repr(case_of(7)) != repr(case_of(8))


def test_a_wrong_engine_is_found_and_its_program_shrunk() -> None:
    """The interpreter with a fault: it loses rows with a 3 in them."""

    def wrong(case: Case) -> list[engines.Rows]:
        return [{n: [row for row in rows if 3 not in row] for n, rows in engines.meaning(case).items()}]

    tally = campaign.run(range(31, 32), wrong)
    assert "seed 31" in tally.failures[0]
    assert "rows of e3 differ (run 0): 6 rows, expected 8" in tally.failures[0]
    assert tally.failures[0].rstrip().endswith("Case:\ne3(3, 5).")


def test_an_engine_that_crashes_is_found() -> None:
    def broken(_: Case) -> list[engines.Rows]:
        raise KeyError("lost")

    tally = campaign.run(range(3), broken, shrinks=False)
    assert [f.partition(": ")[2].partition("\n")[0] for f in tally.failures] == ["KeyError: 'lost'"] * 3


def test_shrinking_keeps_what_fails() -> None:
    case = Case(
        'r1(x) :- e(x, y), !f(y), x < 3.\nr2(x) :- r1(x), s("a,b)", x).\nr3(1).',
        {"e": (("c0", "bigint"), ("c1", "bigint")), "f": (("c0", "bigint"),), "s": (("c0", "string"),)},
        {"e": [(1, 2), (3, 4), (5, 6)], "f": [(4,)], "s": [("a",)]},
    )
    smallest = shrunk(case, lambda c: "r1(x) :-" in c.text and (3, 4) in c.facts.get("e", []))
    assert smallest.text == "r1(x) :- e(x, y)."
    assert smallest.facts == {"e": [(3, 4)]}
    assert split('e(x, y), s("a,b)", x), n = count : { e(x, _), x < 3 }') == [
        "e(x, y)",
        's("a,b)", x)',
        "n = count : { e(x, _), x < 3 }",
    ]
