"""Which derivations support a stored value: those of the same value, only where no worse value can stand behind it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyspark_paralagg.compile.prove.find_support import supports_have_the_value
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit
from pyspark_paralagg.program.program import Atom, Column, Dependent, Input, Program, Relation, Rule


def program(value: Expr, type_: str = "bigint", aggregator: str = "min", assume: tuple[Expr, ...] = ()) -> Program:
    """``r(dst, value) :- r(node, d), edge(node, dst, w)``."""
    relation = Relation("r", (Column("node", "bigint"),), (Dependent(Column("d", type_), aggregator),), 0)
    columns = (Column("src", "bigint"), Column("dst", "bigint"), Column("w", type_))
    edge = Input(1, 0, columns, tuple(Col(c.name, c.type) for c in columns))
    base = Input(0, 1, relation.columns, tuple(Col(c.name, c.type) for c in relation.columns))
    body = (Atom(("node", "d"), relation="r"), Atom(("node_2", "dst", "w"), input=1))
    conditions = (Call("EqualTo", (Col("node", "bigint"), Col("node_2", "bigint")), "boolean"),)
    return Program(
        (relation,), (base, edge), (Rule("r", (Col("dst", "bigint"), value), body, conditions),), assume=assume
    )


def added(type_: str, *args: Expr) -> Expr:
    return Call("Add", args, type_)


D, W = Col("d", "bigint"), Col("w", "bigint")
X, Y = Col("d", "double"), Col("w", "double")
NOT_NEGATIVE = (Call("GreaterThanOrEqual", (Col("w", "any"), Lit(0, "int")), "boolean"),)


@pytest.mark.parametrize(
    "value",
    [
        D,
        added("bigint", D, W),
        added("bigint", W, D),
        Call("Subtract", (D, W), "bigint"),
        added("bigint", D, Lit(1, "bigint")),
    ],
)
def test_sums_of_integers_are_traceable(value: Expr) -> None:
    assert supports_have_the_value(program(value), ["r"])


@pytest.mark.parametrize(
    "value",
    [
        Call("Least", (D, Lit(5, "bigint")), "bigint"),  # 5 was derived from 7, which is 5 by now
        Call("Greatest", (Call("Subtract", (D, W), "bigint"), W), "bigint"),
        Call("Multiply", (D, Lit(0, "bigint")), "bigint"),
        Lit(0, "bigint"),
        W,
        Call("Subtract", (W, D), "bigint"),
    ],
)
def test_values_that_hide_what_they_were_derived_from_are_not(value: Expr) -> None:
    assert not supports_have_the_value(program(value), ["r"])


@pytest.mark.parametrize("type_", ["bigint", "double"])
def test_the_worst_of_a_value_and_others_is_traceable(type_: str) -> None:
    greatest, least = (Call(fn, (Col("d", type_), Col("w", type_)), type_) for fn in ("Greatest", "Least"))
    for value, better, worse in ((greatest, "min", "max"), (least, "max", "min")):
        assert supports_have_the_value(program(value, type_, better), ["r"])
        assert not supports_have_the_value(program(value, type_, worse), ["r"])


def test_strict_and_worsening_rules_do_not_mix() -> None:
    worst, sum_ = Call("Greatest", (D, W), "bigint"), Call("Subtract", (D, Lit(3, "bigint")), "bigint")
    both = program(worst)
    both = replace(both, rules=(*both.rules, *program(sum_).rules))  # 4 gives 5 = greatest(4, 5), which gives 2
    assert not supports_have_the_value(both, ["r"])
    assert supports_have_the_value(replace(both, rules=both.rules[:1]), ["r"])


def test_a_sum_of_doubles_needs_a_sign() -> None:
    assert supports_have_the_value(program(X, "double"), ["r"])
    assert not supports_have_the_value(program(added("double", X, Y), "double"), ["r"])
    assert supports_have_the_value(program(added("double", X, Y), "double", assume=NOT_NEGATIVE), ["r"])
    assert not supports_have_the_value(program(added("double", X, Y), "double", "max", assume=NOT_NEGATIVE), ["r"])


def test_a_combination_of_values_supports_nothing_alone() -> None:
    assert not supports_have_the_value(program(D, aggregator="bit_or"), ["r"])
    assert not supports_have_the_value(program(D, aggregator="gcd"), ["r"])
