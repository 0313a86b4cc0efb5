"""Test programs that campaigns found to be wrong or refused without need, by stratum and as one Plan."""

from __future__ import annotations

import pytest
from campaigns.programs.engines import compared, meaning, simulated, whole
from datalog.programs_random import Case

PAIRS = {"e": [(1, 2), (2, 3), (3, 1), (3, -4), (2, 6)], "f": [(2,), (3,), (5,)]}
PROGRAMS = {
    "an aggregate in a comparison uses the value of another one": """
        r(x, n) :- e(x, y), n = sum v : { e(x, v), v <= y }, mean v + 1 : { f(v), v <= n } >= 2.5.
    """,
    "values of rules without recursion are not null": """
        .decl r(x: number, v: number)
        r(x, $MIN(y)) :- f(x), e(_, y).
        r(y, $MIN(max(v, 2))) :- r(x, v), e(x, y).
    """,
    "values of a relation below are not null, with a limit": """
        r(x, $MAX(y)) :- f(x), e(_, y).
        r(y, $MAX(min(v + x, 40))) :- r(x, v), e(x, y).
        .limit r(iterations=2)
    """,
    "a sum whose only rule is never true": """
        r(0, x, $SUM(x)) :- f(2), e(x, x), x != x.
        r(i + 1, y, $SUM(v)) :- r(i, x, v), e(x, y).
        .limit r(iterations=4)
        s(x, v) :- r(_, x, v).
    """,
    "a cycle of three relations that climbs for 120 rounds": """
        a(x, $MAX(y)) :- f(x), e(x, y).
        a(x, $MAX(min(v + 1, 40))) :- c(x, v).
        b(x, $MAX(v)) :- a(x, v).
        c(x, $MAX(v)) :- b(x, v).
    """,
    "the gcd of one negative number": "r(1, $GCD(y)) :- e(3, y), y < 0.",
}


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_found(text: str) -> None:
    columns = {n: tuple((f"c{p}", "bigint") for p in range(len(rows[0]))) for n, rows in PAIRS.items()}
    case = Case(text, columns, PAIRS)
    assert compared([*simulated(case), *whole(case)], meaning(case)) is None
