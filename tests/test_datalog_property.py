"""Random Datalog programs: what the compiler makes of them gives what they mean, in pure Python and on Spark.

``PARALAGG_PROGRAMS`` says how many are drawn for the simulated tasks (a tenth of them run on Spark and by the engine of
``mpi_backend`` in this process, a fortieth as DataFrames), by ``--hypothesis-seed`` or at random; without it they are
the same ones each time. What the compiler refuses with a reason is counted, and must stay rare.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from datalog.interpreter import evaluate
from datalog.programs_random import Case, cases
from datalog.simulate import simulate, simulate_whole
from hypothesis import HealthCheck, Phase, assume, given, settings
from mpi.staged import Staged
from rows import assert_same_rows, frame, rows_of

import pyspark_paralagg as ra
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import UnsupportedError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.rotates(runs=3)

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]

PROGRAMS = int(os.environ.get("PARALAGG_PROGRAMS", "150"))
MOST_REFUSED = 0.15


def drawn(share: int) -> Callable[..., Any]:
    """That many programs, without a deadline, for a JVM pauses."""
    return settings(
        max_examples=max(1, PROGRAMS // share),
        derandomize="PARALAGG_PROGRAMS" not in os.environ,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        database=None,
        print_blob=False,
        phases=(Phase.generate, Phase.shrink),
    )


def meaning(case: Case) -> Rows:
    """All derived relations by the interpreter; what overflows or divides by zero has none."""
    try:
        found = evaluate(parse(case.text), {name: set(rows) for name, rows in case.facts.items()})
    except (OverflowError, ZeroDivisionError):
        assume(condition=False)
    return {name: sorted(rows) for name, rows in found.items() if name not in case.inputs}


def simulated(case: Case, tasks: int) -> Rows:
    """All derived relations by compiled Plans on so many simulated tasks."""
    return simulate(resolve_text(parse(case.text), case.inputs), case.facts, tasks)


def whole(case: Case, tasks: int) -> Rows:
    """All derived relations by the Plan of the whole text; none where that is refused."""
    try:
        return simulate_whole(resolve_text(parse(case.text), case.inputs), case.facts, tasks)
    except (VerificationError, UnsupportedError):
        return {}


class Refusals:
    """How many programs a test drew, and why some were refused."""

    def __init__(self) -> None:
        self.drawn = 0
        self.reasons: Counter[str] = Counter()

    def skip(self, problem: VerificationError | UnsupportedError) -> None:
        self.reasons[re.sub(r"`[^`]*`|\d+", "_", f"{problem.code} {problem.message}")[:100]] += 1
        assume(condition=False)

    def told(self) -> str:
        return f"{sum(self.reasons.values())} of {self.drawn} refused: {self.reasons.most_common()}"


@pytest.mark.slow("hundreds of random texts on simulated ranks")
def test_plans_give_what_is_meant(record_property: Callable[[str, object], None]) -> None:
    refusals = Refusals()

    @drawn(1)
    @given(cases())
    def check(case: Case) -> None:
        refusals.drawn += 1
        expected = meaning(case)
        for tasks in (1, 2, 3):
            try:
                found = simulated(case, tasks)
            except (VerificationError, UnsupportedError) as problem:
                refusals.skip(problem)
            for name, rows in found.items():
                assert_same_rows(rows, expected[name])
        for name, rows in whole(case, 2).items():
            assert_same_rows(rows, expected[name])

    check()
    record_property("refused", refusals.told())
    assert sum(refusals.reasons.values()) <= MOST_REFUSED * refusals.drawn, refusals.told()


@pytest.mark.rotates(runs=3, turn=0)
@pytest.mark.slow("random texts, each compiled to machine code")
def test_the_engine_without_spark_gives_what_is_meant() -> None:
    """A twentieth, since each program is compiled to machine code once; campaigns run fresh ones."""
    refusals = Refusals()

    @drawn(20)
    @given(cases())
    def check(case: Case) -> None:
        refusals.drawn += 1
        expected = meaning(case)
        try:
            found = Staged(resolve_text(parse(case.text), case.inputs), case.facts, list(expected)).run_local()
        except (VerificationError, UnsupportedError) as problem:
            refusals.skip(problem)
        for name, rows in found.items():
            assert_same_rows(rows, expected[name])

    check()
    assert sum(refusals.reasons.values()) <= MOST_REFUSED * refusals.drawn, refusals.told()


@pytest.mark.slow("random texts, seconds each on plain DataFrames")
@pytest.mark.parametrize(("backend", "share"), [(None, 20), ("dataframe", 40)])
def test_spark_gives_what_is_meant(spark: SparkSession, backend: str | None, share: int) -> None:
    refusals = Refusals()

    @drawn(share)
    @given(cases())
    def check(case: Case) -> None:
        refusals.drawn += 1
        expected = meaning(case)
        inputs = {
            name: frame(spark, ", ".join(f"{c} {t}" for c, t in columns), case.facts[name])
            for name, columns in case.inputs.items()
        }
        try:
            relations = ra.datalog(spark, case.text, inputs, backend=backend)
            found = {name: rows_of(relations[name]) for name in relations}
        except (VerificationError, UnsupportedError) as problem:
            refusals.skip(problem)
        for name, rows in found.items():
            assert_same_rows(rows, expected[name])

    check()
