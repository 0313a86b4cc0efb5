"""z3 behind the rule systems: what it proves holds for all values that are tried, what it refutes is so."""

# ruff: noqa: ANN401  (options of a Program, fields of a Claim)

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from test_rules_are_sound import number, truth

from pyspark_paralagg.compile.prove.claim import Claim, Kind, Moving
from pyspark_paralagg.compile.prove.custom_order import claim_of_custom
from pyspark_paralagg.compile.prove.facts import NOT_NEGATIVE, Facts
from pyspark_paralagg.compile.prove.render import (
    Carried,
    render_carried,
    render_constant,
    render_filter,
    render_linear,
    render_monotone,
)
from pyspark_paralagg.compile.prove.solve import _decide, solve
from pyspark_paralagg.compile.prove.to_z3 import Encoder, Term
from pyspark_paralagg.compile.rewrite.evaluate import NotEvaluableError, evaluate
from pyspark_paralagg.compile.rewrite.scope import Variable
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.custom import Custom
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, columns, walk
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.program import Column, Dependent
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Callable


D, E, W, P = (Col(n, "bigint", nullable=False) for n in "dewp")
B = Col("b", "boolean", nullable=False)


def on(fn: str, *args: Expr | int, type_: str = "bigint") -> Call:
    given = tuple(
        a if isinstance(a, Col | Lit | Call) else Lit(a, "bigint" if isinstance(a, int) else "double") for a in args
    )
    return Call(fn, given, type_)


def holds_(fn: str, *args: Expr | int) -> Call:
    return on(fn, *args, type_="boolean")


def claim(kind: Kind, *exprs: Expr, how: str = "min", **more: Any) -> Claim:
    """About d, which ``how`` improves; every other variable stays."""
    return Claim(kind, exprs, how, (Moving(D, how),), **more)


# The terms mean what the evaluator says


def with_nulls(expr: Expr) -> Expr:
    if isinstance(expr, Col):
        return Col(expr.name, expr.type)
    return Call(expr.fn, tuple(map(with_nulls, expr.args)), expr.type) if isinstance(expr, Call) else expr


def test_terms_mean_what_the_evaluator_says() -> None:
    import z3  # noqa: PLC0415 - as in the package: only where it is needed

    rng = random.Random(1)  # noqa: S311
    compared = nulls = 0
    for n in range(400):
        expr = with_nulls(number(rng, 3) if n % 2 else truth(rng, 3))
        if n % 5 == 0:
            expr = on("Coalesce", on("Remainder", expr if n % 2 else D, 3), Lit(None, "bigint"), 4)
        encoder = Encoder(z3, z3.Context())
        given = {c: rng.choice([None, -7, -3, -1, 0, 1, 2, 5]) for c in "dewp"}
        env = {c: Term(z3.IntVal(v or 0, encoder.ctx), z3.BoolVal(v is None, encoder.ctx)) for c, v in given.items()}
        term = encoder.encode(expr, env)
        solver = z3.Solver(ctx=encoder.ctx)
        solver.add(*encoder.axioms)
        try:
            value = evaluate(expr, given)
        except NotEvaluableError:
            assert solver.check() == z3.unsat, (show(expr), given)  # a division by zero
            continue
        assert solver.check() == z3.sat, (show(expr), given)
        assert z3.is_true(z3.simplify(term.null)) == (value is None), (show(expr), given)
        if value is not None:
            found = z3.simplify(term.value)
            assert (z3.is_true(found) if isinstance(value, bool) else found.as_long()) == value, (show(expr), given)
            compared += 1
        else:
            nulls += 1
    assert compared > 150
    assert nulls > 50


# Random claims


def values_of(exprs: tuple[Expr, ...], rng: random.Random) -> dict[str, Any]:
    return {c.name: rng.randint(-9, 9) for x in exprs for c in walk(x) if isinstance(c, Col)}


def better_of(value: int, how: str, rng: random.Random) -> int:
    return value - rng.randint(0, 6) if how == "min" else value + rng.randint(0, 6)


@pytest.mark.parametrize("how", ["min", "max"])
def test_monotone_claims_are_proved_and_refuted_rightly(how: str) -> None:
    rng = random.Random(2)  # noqa: S311
    proved = refuted = 0
    for n in range(120):
        is_filter = n % 2 == 1
        expr = truth(rng, 2) if is_filter else number(rng, 2)
        if "d" not in columns(expr):
            continue
        moving = (Moving(D, how), Moving(E, how))
        answer, model = solve(Claim("filter" if is_filter else "value", (expr,), "" if is_filter else how, moving))

        def told(worse: dict[str, Any], better: dict[str, Any], expr: Expr = expr, f: bool = is_filter) -> str | None:  # noqa: FBT001
            return render_filter(expr, worse, better) if f else render_monotone(expr, AGGREGATORS[how], worse, better)

        if answer.proved:
            proved += 1
            for _ in range(60):
                worse = values_of((expr,), rng)
                better = worse | {c: better_of(worse[c], how, rng) for c in "de" if c in worse}
                assert told(worse, better) is None, show(expr)
        elif answer.model:
            refuted += 1
            assert told(*model), (show(expr), model)
    assert proved > 10
    assert refuted > 20


def test_linear_claims_are_proved_and_refuted_rightly() -> None:
    rng = random.Random(3)  # noqa: S311
    sums = frozenset(("d", "e"))
    proved = refuted = 0
    for _ in range(120):
        expr = number(rng, 2)
        if "d" not in columns(expr):
            continue
        answer, model = solve(Claim("linear", (expr,), "sum", (Moving(D, "sum"), Moving(E, "sum"))))
        read = sums & columns(expr)
        if answer.proved:
            proved += 1
            for _ in range(40):
                one = values_of((expr,), rng)
                two = one | {c: rng.randint(-9, 9) for c in read}
                assert render_linear(expr, read, one, two) is None, show(expr)
        elif answer.model:
            refuted += 1
            assert render_linear(expr, read, *model), (show(expr), model)
    assert proved > 10
    assert refuted > 20


def test_filters_on_sums_are_proved_and_refuted_rightly() -> None:
    rng = random.Random(4)  # noqa: S311
    sums = frozenset(("d",))
    refuted = 0
    for _ in range(60):
        condition = truth(rng, 2)
        if "d" not in columns(condition):
            continue
        answer, _ = solve(Claim("constant", (condition,), "", (Moving(D, "sum"),)))
        for _ in range(60):
            one = values_of((condition,), rng)
            two = one | {"d": rng.randint(-9, 9)}
            found = render_constant(condition, sums, one, two)
            refuted += found is not None
            assert found is None or not answer.proved, show(condition)
    assert refuted > 100


@pytest.mark.parametrize(
    ("order", "is_proved"),
    [
        (on("Add", D, W), True),
        (on("Add", D, on("Multiply", D, on("Multiply", D, D))), True),
        (on("Multiply", D, on("Add", on("Multiply", W, W), 1)), True),
        (on("Least", D, W), False),
        (on("Multiply", D, W), False),
        (on("IntegralDivide", D, 2), False),
        (W, False),
    ],
    ids=lambda x: show(x) if isinstance(x, Call) else str(x),
)
def test_what_is_carried_needs_an_order_without_ties(order: Expr, is_proved: bool) -> None:  # noqa: FBT001
    label = Col("e", "bigint", nullable=False)
    moving = (Moving(D, "min"), Moving(label, "min_by", D))
    answer, model = solve(Claim("carried", (order, label), "min_by", moving, bounds=(("w", NOT_NEGATIVE),)))
    pair = Carried(order, label, "label")
    assert answer.proved == is_proved
    rng = random.Random(5)  # noqa: S311
    if not is_proved:
        assert render_carried(pair, {"e"}, *model)
        return
    for _ in range(300):
        worse = values_of((order, label, D), rng) | {"w": 3}
        better = worse | {"d": better_of(worse["d"], "min", rng)}
        better["e"] = rng.randint(-9, 9) if better["d"] != worse["d"] else min(worse["e"], rng.randint(-9, 9))
        assert render_carried(pair, {"e"}, worse, better) is None


@pytest.mark.parametrize(
    ("expr", "how", "is_proved"),
    [
        (on("Add", on("BitwiseAnd", D, 4), 1), "bit_or", True),
        (on("BitwiseXor", D, W), "bit_or", False),
        (on("BitwiseOr", D, on("BitwiseAnd", D, W)), "bit_and", True),
        (on("Add", D, 1), "bit_or", False),
        (on("ShiftLeft", on("BitwiseOr", D, W), 3), "bit_or", True),
    ],
    ids=lambda x: show(x) if isinstance(x, Call) else str(x),
)
def test_bits(expr: Expr, how: str, is_proved: bool) -> None:  # noqa: FBT001
    answer, model = solve(claim("value", expr, how=how))
    assert answer.proved == is_proved
    if not is_proved:
        assert render_monotone(expr, AGGREGATORS[how], *model)


def test_bits_of_what_a_fraction_is_cast_to_are_not_known() -> None:
    fraction = Call("Cast", (Col("f", "decimal(10,2)", nullable=True),), "bigint", nullable=True)
    expr = on("BitwiseXor", on("Greatest", fraction, W), D)
    assert not solve(claim("value", expr, how="max"))[0].proved


def test_a_function_is_ordered_by_what_holds_of_both_its_arguments() -> None:
    """The minus of a day and the minus of that lie on both sides of zero; a constant does not say how others lie."""
    day, moment = Lit(86_400_000_000, "interval day"), Col("t", "timestamp", nullable=True)
    back = Call("UnaryMinus", (Call("UnaryMinus", (day,), "interval day"),), "interval day")
    expr = Call("TimestampAddInterval", (moment, back), "timestamp", nullable=True)
    setting = Setting(ansi=True, time_zone="America/New_York")
    answer, _ = solve(Claim("value", (expr,), "max", (Moving(moment, "max"),), setting=setting))
    assert not answer.proved


# What is known


def test_premises_are_used_and_others_are_left_out() -> None:
    factor = on("Multiply", D, on("Subtract", 9, W))
    at_most = holds_("LessThanOrEqual", W, 9)
    assert not solve(claim("value", factor))[0].proved
    assert solve(claim("value", factor, premises=(at_most,)))[0].proved
    # What says nothing of these variables does not make another question of it.
    before = _decide.cache_info().hits
    assert solve(claim("value", factor, premises=(at_most, holds_("GreaterThan", P, 0))))[0].proved
    assert _decide.cache_info().hits == before + 1


def test_a_filter_counts_for_values_but_not_for_itself() -> None:
    above = holds_("GreaterThan", D, 0)
    assert not solve(claim("filter", above, before=(above,)))[0].proved
    square = on("Multiply", D, D)
    assert solve(claim("value", square, how="max", premises=(above,), before=(above,)))[0].proved
    assert not solve(claim("value", square, how="max"))[0].proved


def test_one_answer_for_all_names() -> None:
    one = claim("value", on("Subtract", on("Multiply", D, 3), D))
    other = Claim("value", (on("Subtract", on("Multiply", W, 3), W),), "min", (Moving(W, "min"),))
    assert solve(one)[0].proved
    hits = _decide.cache_info().hits
    assert solve(other)[0].proved
    assert _decide.cache_info().hits == hits + 1


def test_division_is_only_checked_where_it_happens() -> None:
    half = on("If", holds_("EqualTo", W, 0), on("UnaryMinus", D), on("IntegralDivide", D, on("Multiply", W, W)))
    answer, model = solve(claim("value", half))
    assert answer.model
    assert model[0]["w"] == 0


def test_unknown_functions_may_prove_but_never_refute() -> None:
    crc = Call("Crc32", (D,), "bigint", nullable=False)
    assert solve(claim("value", on("Add", on("Subtract", crc, crc), D)))[0].proved
    answer, _ = solve(claim("value", crc))
    assert (answer.proved, answer.model, answer.why) == (False, None, "z3 does not model crc32")
    root = on("Sqrt", on("Add", D, 1), type_="double")
    assert not solve(claim("value", root))[0].proved, "below -1 it is NaN, the largest value"
    assert solve(claim("value", root, bounds=(("d", NOT_NEGATIVE),)))[0].proved


def test_a_hard_claim_is_given_up_the_same_way_each_time() -> None:
    cube = on("Multiply", D, on("Multiply", D, D))
    hard = on("Remainder", on("Multiply", cube, cube), on("Add", on("Multiply", W, cube), P))
    found = []
    for _ in range(2):
        _decide.cache_clear()
        answer, _ = solve(claim("value", hard, premises=(holds_("GreaterThan", D, on("Multiply", W, 1000)),)))
        found.append((answer.proved, answer.model is None, answer.why))
    assert found[0] == found[1]
    assert not found[0][0]


def test_text_is_an_order_of_points() -> None:
    name = Col("name", "string", nullable=False)
    moving = (Moving(name, "min"),)
    below = Call("LessThan", (name, Lit("m", "string")), "boolean")
    least = Call("If", (below, name, Lit("m", "string")), "string")
    assert solve(Claim("value", (least,), "min", moving))[0].proved
    assert solve(Claim("filter", (Call("LessThan", (name, Lit("k", "string")), "boolean"),), "", moving))[0].proved


# A user's own aggregator


def cheapest() -> Custom:
    names = ("cost", "hops")
    old, new = ([Col(f"{side}.{n}", "bigint", nullable=False) for n in names] for side in ("old", "new"))
    tie = on("And", holds_("EqualTo", new[0], old[0]), holds_("LessThan", new[1], old[1]), type_="boolean")
    better = on("Or", holds_("LessThan", new[0], old[0]), tie, type_="boolean")
    return Custom("cheapest", names, combine=tuple(on("If", better, n, o) for o, n in zip(old, new, strict=True)))


@pytest.mark.parametrize(
    ("make", "is_proved"),
    [
        (lambda c, h: (on("Add", c, W), on("Add", h, 1)), True),
        (lambda c, h: (on("Multiply", c, 2), h), True),
        (lambda c, h: (on("Least", c, W), h), False),
        (lambda c, h: (h, c), False),
    ],
)
def test_orders_of_the_users_own(make: Callable[[Col, Col], tuple[Expr, ...]], is_proved: bool) -> None:  # noqa: FBT001
    custom = cheapest()
    scope = {"w": Variable(1, 0, Column("w", "bigint"), "static")}
    for part, name in enumerate(custom.columns):
        d = Dependent(Column(name, "bigint"), "cheapest", custom=custom, part=part)
        scope[name] = Variable(0, part + 1, d.column, "dependent", "best", d)
    exprs = make(Col("cost", "bigint", nullable=False), Col("hops", "bigint", nullable=False))
    asked = claim_of_custom(exprs, custom, scope, Facts(), ())
    assert asked is not None
    answer, model = solve(asked.claim)
    assert answer.proved == is_proved
    if not is_proved:
        told = asked.render(*model)
        assert told
        assert "which cheapest does not keep over" in told
        return
    rng = random.Random(6)  # noqa: S311
    for _ in range(200):
        w, *rows = rng.randint(-5, 5), *((rng.randint(-5, 5), rng.randint(0, 5)) for _ in range(2))
        worse, better = sorted(rows, reverse=True)
        gives = [tuple(evaluate(e, {"cost": c, "hops": h, "w": w}) for e in exprs) for c, h in (worse, better)]
        assert gives[1] <= gives[0]
