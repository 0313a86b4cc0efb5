"""`.limitsize r(n=…)` ends a recursion after the iteration that has n rows: the same rows on every engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rows import rows_of

import pyspark_paralagg as ra
from pyspark_paralagg.command import engine
from pyspark_paralagg.command.standalone import sources_of
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.read import read
from pyspark_paralagg.datalog.text_to_program import resolve, resolve_text
from pyspark_paralagg.errors import DatalogError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BACKENDS = ["spark", "local", "mpi", "dataframe"]
EDGES = "".join(f"e({x}, {x + 1}). e({x}, {3 * x}). " for x in range(1, 20))
PROGRAMS = {
    "moved": EDGES + "r(x, y) :- e(x, y). r(x, z) :- r(x, y), e(y, z).",
    "doubled": EDGES + "r(x, y) :- e(x, y). r(x, z) :- r(x, y), r(y, z).",
    "computed": "r(1, 1). r(x + 1, y * 2) :- r(x, y), x < 40.",
    "texts": 'r("a", 1). r(cat(s, "b"), x + 1) :- r(s, x), x < 40. r(cat(s, "c"), x + 1) :- r(s, x), x < 40.',
}


def _limited(text: str, limit: str) -> list[tuple[object, ...]]:
    """Return the rows of `r` with this limit, from the engine in this process."""
    resolved = resolve_text(parse(f"{text} {limit}"), {})
    plan = compile_program(requested_program(resolved, ["r"]))
    result = engine.run_in_process(plan, dict(sources_of(resolved, plan, {})), ["r"], lambda _: None, ansi=True)
    return sorted(tuple(row.values()) for row in result.tables["r"].to_pylist())


@pytest.mark.slow(reason="all engines")
@pytest.mark.parametrize("name", PROGRAMS)
def test_every_engine_ends_after_the_same_iteration(spark: SparkSession, name: str) -> None:
    text = PROGRAMS[name]
    first, second = (_limited(text, f".limit r(iterations={n})") for n in (1, 2))
    assert len(first) < len(second)
    for size, expected in ((1, first), (len(first), first), (len(first) + 1, second), (len(second), second)):
        assert _limited(text, f".limitsize r(n={size})") == expected
    for backend in BACKENDS if name == "moved" else ["spark"]:
        found = ra.datalog(spark, f"{text} .limitsize r(n={len(first) + 1})", backend=backend)["r"]
        assert sorted(rows_of(found)) == second, backend


@pytest.mark.parametrize("backend", BACKENDS)
def test_later_rules_and_filters_read_the_limited_rows(spark: SparkSession, backend: str) -> None:
    text = PROGRAMS["moved"] + " s(x, y) :- r(x, y), y > 8. .limitsize r(n=60)"
    found = ra.datalog(spark, text, backend=backend)
    every_row = rows_of(found["r"])
    assert 60 <= len(every_row) < len(rows_of(ra.datalog(spark, PROGRAMS["moved"], backend="local")["r"]))
    assert sorted(rows_of(found["s"])) == sorted(row for row in every_row if row[1] > 8)
    assert sorted(rows_of(found["r"].where("x = 2"))) == sorted(row for row in every_row if row[0] == 2)


def test_a_size_that_is_not_reached_and_a_relation_without_recursion(spark: SparkSession) -> None:
    text = "r(1). r(x + 1) :- r(x), x < 5. s(x) :- r(x). .limitsize r(n=100) .limitsize s(n=1)"
    found = ra.datalog(spark, text, backend="local")
    assert len(rows_of(found["r"])) == len(rows_of(found["s"])) == 5


def test_candidates_of_a_subsumption_are_limited() -> None:
    text = read("r(1, 1). r(x + 1, y + 1) :- r(x, y). r(a, b) <= r(c, d) :- a < c, b < d. .limitsize r(n=4)")
    assert [(x.relation, x.rows) for x in resolve(text).limits] == [("r@all", 4)]


def test_the_plan_has_the_size_and_rounds() -> None:
    program = resolve(parse("n(0). n(x + 1) :- n(x). .limitsize n(n=47) .limitsize n(n=50)"))
    stratum = compile_program(program).strata[-1]
    assert (stratum.ends_at, stratum.in_place, stratum.max_iterations) == (47, False, None)


@pytest.mark.parametrize(
    ("text", "code", "told"),
    [
        ("p(1). p(x + 1) :- p(x). .limitsize p(n=0)", "PARALAGG_BAD_OPTION", "needs a number of rows"),
        ("p(1). p(x + 1) :- p(x). .limitsize p(n=-3)", "PARALAGG_BAD_OPTION", "needs a number of rows"),
        ("p(1). p(x + 1) :- p(x). .limitsize p(m=5)", "PARALAGG_BAD_OPTION", "write `.limitsize p(n=1000)`"),
        ("p(1). p(x + 1) :- p(x). .limitsize p", "PARALAGG_BAD_OPTION", "write `.limitsize p(n=1000)`"),
        ("p(1). .limitsize q(n=5)", "PARALAGG_UNKNOWN_RELATION", "`q` does not exist"),
        (
            "p(1). p(x) :- q(x). q(x + 1) :- p(x). .limitsize p(n=5)",
            "PARALAGG_DATALOG_UNSUPPORTED",
            "recursive with `q`",
        ),
        (
            "p(1, $MIN(0)) :- true. p(1, $MIN(d)) :- p(1, d). .limitsize p(n=5)",
            "PARALAGG_DATALOG_UNSUPPORTED",
            "`p` has aggregates",
        ),
    ],
)
def test_what_is_refused(text: str, code: str, told: str) -> None:
    with pytest.raises(DatalogError) as refused:
        resolve(parse(text))
    assert refused.value.code == code
    assert told in str(refused.value)
