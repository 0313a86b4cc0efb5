"""gcd, witnesses and users' aggregators in the compiler: what is proved, what is refused, how witnesses are planned."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from steps import Document, add, arithmetic, cast, holds, relation, same, times

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.errors import UnsupportedError, VerificationError
from pyspark_paralagg.plan.printer import show_plan
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.custom import Custom
from pyspark_paralagg.program.program import Column, Dependent, Relation
from pyspark_paralagg.program.text import show_program

if TYPE_CHECKING:
    from collections.abc import Callable

    from steps import Frame

    from pyspark_paralagg.program.program import Program

EDGES = {"src": "bigint", "dst": "bigint", "w": "bigint!"}


def along_edges(of: Relation, **values: Callable[[Frame, Frame], Any]) -> Program:
    doc = Document(of)
    d, e = doc.reference(of.name), doc.source("edges", **EDGES)
    joined = d.join(e, same(d["node"], e["src"]))
    return doc.program(**{of.name: joined.select(node=e["dst"], **{c: v(d, e) for c, v in values.items()})})


def divisor(value: Callable[[Frame, Frame], Any], where: Callable[[Frame, Frame], Any] | None = None) -> Program:
    doc = Document(relation("g", "node bigint", "size bigint! gcd"))
    d, e = doc.reference("g"), doc.source("edges", **EDGES)
    joined = d.join(e, same(d["node"], e["src"]))
    joined = joined if where is None else joined.where(where(d, e))
    return doc.program(g=joined.select(node=e["dst"], size=value(d, e)))


@pytest.mark.parametrize(
    "program",
    [
        divisor(lambda d, _: d["size"]),
        divisor(lambda _, e: e["w"]),
        divisor(lambda d, e: times(d["size"], e["w"])),
        divisor(lambda d, _: times(times(d["size"], d["size"]), -3)),
        divisor(lambda d, _: d["size"], lambda d, _: same(arithmetic("Remainder", cast(12, "bigint"), d["size"]), 0)),
    ],
    ids=["copy", "constant", "multiple", "square", "divides"],
)
def test_gcd_goes_through_what_keeps_divisors(program: Program) -> None:
    stratum = compile_program(program).strata[0]
    assert stratum.relation_class == "lattice"
    assert not stratum.cycle_check


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (divisor(lambda d, e: add(d["size"], e["w"])), "size"),
        (divisor(lambda d, _: d["size"], lambda d, _: holds("GreaterThan", d["size"], 1)), "size=1 improves size=2"),
    ],
    ids=["sum", "threshold"],
)
def test_gcd_is_refuted_where_divisors_are_lost(program: Program, told: str) -> None:
    with pytest.raises(VerificationError, match="PARALAGG_NOT_MONOTONE") as problem:
        compile_program(program)
    assert told in str(problem.value)


def test_definitions_improve_as_they_combine() -> None:
    for a in AGGREGATORS.values():
        if not a.is_idempotent or a.parameters == "order":
            continue
        values = [False, True] if a.name in ("any", "all") else [0, 1, 2, 3, 4, 6, 12]
        for x in values:
            assert a.combine(x, x) == x, a.name
            assert a.identity is None or a.combine(a.identity, x) == x, a.name
            for y in values:
                assert a.combine(x, y) == a.combine(y, x), a.name
                assert a.improves(y, x) == (a.combine(x, y) != x), a.name
        assert a.improves(1, None)
        assert not a.improves(None, 1)


def test_sums_are_taken_back_by_their_inverse() -> None:
    for name in ("sum", "count"):
        a = AGGREGATORS[name]
        assert a.inverse is not None
        assert a.inverse(a.combine(5, 3), 3) == 5


OWN = Custom("own", ("value",))


def own(custom: Custom, value: Callable[[Frame, Frame], Any], **options: Any) -> Program:  # noqa: ANN401 - of a Program
    of = Relation("r", (Column("node", "bigint"),), (Dependent(Column("v", "bigint"), "own", custom=custom),), 0)
    return replace(along_edges(of, v=value), **options)


def test_own_aggregator_is_proved_where_it_is_copied() -> None:
    assert compile_program(own(OWN, lambda d, _: d["v"])).strata[0].relation_class == "lattice"
    assert compile_program(own(OWN, lambda _, e: e["w"])).strata[0].relation_class == "lattice"


def test_own_aggregator_is_open_elsewhere_and_may_be_trusted() -> None:
    with pytest.raises(VerificationError, match="PARALAGG_NOT_PROVED") as problem:
        compile_program(own(OWN, lambda d, e: add(d["v"], e["w"])))
    assert "v + w" in str(problem.value)
    assert "own" in str(problem.value)
    assert compile_program(own(OWN, lambda d, e: add(d["v"], e["w"]), mode="trust")).strata[0].cycle_check


def test_own_aggregator_that_adds_up_needs_an_inverse() -> None:
    adds = replace(OWN, doubts="combine(2, 2) is 4")
    with pytest.raises(VerificationError, match="PARALAGG_AGGREGATOR_LAW") as problem:
        compile_program(own(adds, lambda d, _: d["v"]))
    assert "combine(2, 2) is 4" in str(problem.value)
    assert 'mode="iterate"' in str(problem.value)
    assert compile_program(own(adds, lambda d, _: d["v"], mode="iterate")).strata[0].relation_class == "iterated"
    inverse = replace(adds, has_inverse=True)
    assert compile_program(own(inverse, lambda d, _: d["v"])).strata[0].relation_class == "accumulating"


def test_own_aggregator_over_strings_may_make_some() -> None:
    of = Relation("r", (Column("node", "bigint"),), (Dependent(Column("v", "string"), "own", custom=OWN),), 0)
    assert compile_program(along_edges(of, v=lambda d, _: d["v"])).strata[0].makes_strings


def test_own_aggregator_over_a_nested_type_goes_to_plain_dataframes() -> None:
    of = Relation("r", (Column("node", "bigint"),), (Dependent(Column("v", "array<int>"), "own", custom=OWN),), 0)
    with pytest.raises(UnsupportedError, match="the column v of type array<int>"):
        compile_program(along_edges(of, v=lambda d, _: d["v"]))


def attendance(threshold: Callable[[Frame], Any], **options: Any) -> Program:  # noqa: ANN401 - of a Program
    counted = Dependent(Column("n", "bigint", nullable=False), "mcount", supplied=(Column("friend", "bigint"),))
    doc = Document(Relation("attends", (Column("node", "bigint"),), (counted,), 0))
    d, e = doc.reference("attends"), doc.source("edges", **EDGES)
    step = d.where(threshold(d)).join(e, same(d["node"], e["src"])).select(node=e["dst"], friend=d["node"])
    of = doc.relations[0]
    # The document's inputs have the visible columns; base rows have the supplied ones.
    doc.relations = (replace(of, dependents=(Dependent(counted.supplied[0], "min"),)),)
    program = doc.program(attends=step, **options)
    return replace(program, relations=(of,))


def test_witnesses_are_a_relation_that_is_counted_where_it_stands() -> None:
    program = attendance(lambda d: holds("GreaterThanOrEqual", d["n"], 3))
    assert "attends(dst, mcount(node)) :- attends(node, n)" in show_program(program)
    plan = compile_program(program)
    (stratum,) = plan.strata
    assert [r.name for r in stratum.relations] == ["attends", "attends_by_friend"]
    assert [r.distribute_by for r in stratum.relations] == [(0,), (0,)]
    assert {r.head for r in stratum.rules} == {"attends_by_friend"}
    assert not stratum.in_place
    assert "mcount n of attends_by_friend" in show_plan(plan)


def test_counts_are_read_through_upward_thresholds_only() -> None:
    with pytest.raises(VerificationError, match="PARALAGG_NOT_MONOTONE") as problem:
        compile_program(attendance(lambda d: holds("LessThan", d["n"], 3)))
    assert "n < 3" in str(problem.value)


def test_a_limit_leaves_witnesses_in_one_stratum() -> None:
    program = attendance(lambda d: holds("GreaterThanOrEqual", d["n"], 3), max_iterations=2, on_limit="return")
    assert len(compile_program(program).strata) == 1
