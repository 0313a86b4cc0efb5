"""Joins that take nulls for equal, as intersection and difference do: one case for each choice of nulls."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

import pytest
from check_locality import check_locality
from interpret import Row, run_plan
from steps import Document, Frame, Json, call, holds, relation, same

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.compile.rewrite.separate_nulls import separate_nulls
from pyspark_paralagg.compile.rewrite.stratify import stratify
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.plan.plan import Probe
from pyspark_paralagg.program.expr import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.program import Program

EDGES: list[Row] = [(1, 2), (2, 3), (3, None), (2, 7), (4, 1), (3, 4), (None, 8)]
GIVEN: dict[str, list[Row]] = {
    "leftsemi": [(1, 2), (1, 3), (1, None), (None, None), (None, 2), (1, 3)],
    "leftanti": [(1, None), (None, 4), (1, 7), (2, 2)],
}
START: list[Row] = [(1, 1), (None, 1)]


def alike(a: Json, b: Json) -> Json:
    """``a <=> b``."""
    return call("EqualNullSafe", a, b, type_="boolean")


def spelled(a: Json, b: Json) -> Json:
    """The same without ``<=>``."""
    nulls = call("And", call("IsNull", a, type_="boolean"), call("IsNull", b, type_="boolean"), type_="boolean")
    return call("Or", same(a, b), nulls, type_="boolean")


def pairs(how: str, *, width: int = 2) -> Program:
    """``path(x, z) :- path(x, y), edges(y, z)``, its rows in (semi) or not in (anti) what is given."""
    doc = Document(relation("path", "x bigint, y bigint"))
    p, e = doc.reference("path"), doc.source("edges", src="bigint", dst="bigint")
    given = doc.source("given", **{f"c{i}": "bigint" for i in range(width)})
    rows = p.join(e, same(p["y"], e["src"])).select(x=p["x"], y=e["dst"])
    columns = [rows["x"], rows["y"]]
    condition = alike(columns[0], given["c0"])
    for i in range(1, width):
        condition = call("And", condition, alike(columns[i % 2], given[f"c{i}"]), type_="boolean")
    return doc.program(path=rows.join(given, condition, how).distinct())


def closed(how: str) -> set[Row]:
    """The same, written for clearness."""
    found, kept = set(START), how == "leftsemi"
    while True:
        new = {
            (x, z) for x, y in found for a, z in EDGES if y == a and y is not None and ((x, z) in GIVEN[how]) == kept
        }
        if new <= found:
            return found
        found |= new


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("how", ["leftsemi", "leftanti"])
def test_rows_are_compared_as_a_whole(how: str, tasks: int) -> None:
    plan = compile_program(pairs(how))
    assert check_locality(plan) == []
    expected = closed(how)
    assert len(expected) > 5
    assert set(run_plan(plan, {0: EDGES, 1: GIVEN[how], 2: START}, tasks)["path"]) == expected


def test_a_semi_join_finds_a_row_once_under_a_sum() -> None:
    doc = Document(relation("paths", "node bigint", "n bigint sum"))
    d, e, g = doc.reference("paths"), doc.source("edges", src="bigint", dst="bigint"), doc.source("given", c="bigint")
    rows: Frame = d.join(e, same(d["node"], e["src"])).select(node=e["dst"], n=d["n"])
    plan = compile_program(doc.program(paths=rows.join(g, alike(rows["node"], g["c"]), "leftsemi")))
    sources: dict[int, list[Row]] = {0: [(1, 2), (1, None), (2, None)], 1: [(2,), (2,), (None,), (None,)], 2: [(1, 1)]}
    assert run_plan(plan, sources, 2)["paths"] == {(1,): (1,), (2,): (1,), (None,): (2,)}


def test_more_than_four_columns_that_may_be_null_are_refused() -> None:
    assert compile_program(pairs("leftsemi", width=4)).strata
    with pytest.raises(UnsupportedError, match="a null-safe anti join on 5 nullable columns"):
        compile_program(pairs("leftanti", width=5))


def test_other_alternatives_stay_conditions() -> None:
    doc = Document(relation("reach", "node bigint"))
    r, e, a = doc.reference("reach"), doc.source("edges", src="bigint", dst="bigint"), doc.source("ok", id="bigint")
    other = call("Or", same(e["dst"], a["id"]), holds("LessThan", a["id"], e["dst"]), type_="boolean")
    step = r.join(e, same(r["node"], e["src"])).join(a, other, "leftsemi")
    [rule] = doc.program(reach=step.select(node=e["dst"])).rules
    assert len(rule.conditions) == 2


@pytest.mark.parametrize("tasks", [1, 3])
@pytest.mark.parametrize("how", [alike, spelled])
def test_a_join_that_takes_nulls_for_equal_is_looked_up(how: Callable[[Json, Json], Json], tasks: int) -> None:
    doc = Document(relation("paths", "node bigint", "n bigint max"))
    d, e = doc.reference("paths"), doc.source("edges", src="bigint", dst="bigint")
    step = d.join(e, how(d["node"], e["src"])).select(node=e["dst"], n=d["n"])
    plan = compile_program(doc.program(paths=step))
    lookups = [s for r in plan.strata[0].rules for s in r.steps if isinstance(s, Probe)]
    assert [len(s.keys) for s in lookups] == [1, 1]
    rows = run_plan(plan, {0: EDGES, 1: [(1, 5), (3, 7)]}, tasks)["paths"]
    assert rows == {(1,): (7,), (3,): (7,), (2,): (7,), (7,): (7,), (4,): (7,), (None,): (7,), (8,): (7,)}


def test_a_sum_counts_a_row_of_one_case_once() -> None:
    doc = Document(relation("paths", "node bigint", "n bigint sum"))
    d, e = doc.reference("paths"), doc.source("edges", src="bigint", dst="bigint")
    step = d.join(e, alike(d["node"], e["src"])).select(node=e["dst"], n=d["n"])
    sources: dict[int, list[Row]] = {0: [(1, None), (None, 2), (None, 2), (1, 2)], 1: [(1, 1), (None, 10)]}
    plan = compile_program(doc.program(paths=step))
    assert run_plan(plan, sources, 2)["paths"] == {(1,): (1,), (None,): (11,), (2,): (23,)}


def test_values_and_further_columns_stay_filters() -> None:
    doc = Document(relation("dist", "a bigint, b bigint, c bigint", "d bigint min"))
    d, e = doc.reference("dist"), doc.source("edges", a="bigint", b="bigint", c="bigint", d="bigint")
    every = [alike(d[c], e[c]) for c in "abcd"]
    step = d.join(e, reduce(lambda x, y: call("And", x, y, type_="boolean"), every))
    program = separate_nulls(stratify(doc.program(dist=step.select(a=e["a"], b=e["b"], c=e["c"], d=d["d"]))))
    assert [sum(isinstance(c, Call) and c.fn == "EqualNullSafe" for c in r.conditions) for r in program.rules] == [
        2
    ] * 4
