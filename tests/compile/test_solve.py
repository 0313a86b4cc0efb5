"""z3 behind the rule systems: what it proves holds for all values that are tried, what it refutes is so."""

# ruff: noqa: ANN401  (options of a Program, fields of a Claim)

from __future__ import annotations

import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import programs
import pytest
from steps import Document, Frame, Json, add, call, cast, holds, lit, relation, same, subtract, times
from test_rules_are_sound import number, truth

from pyspark_paralagg.api.dependents import typed_dependents
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.compile.prove.claim import Claim, Kind, Moving
from pyspark_paralagg.compile.prove.custom_order import claim_of_custom
from pyspark_paralagg.compile.prove.facts import NOT_NEGATIVE, Facts, Invariants
from pyspark_paralagg.compile.prove.invariants import find_invariants, unhoisted
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
from pyspark_paralagg.errors import VerificationError
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.assumption import parse_assumptions
from pyspark_paralagg.program.custom import Custom
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, columns, walk
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.program import Column, Dependent
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.program import Program

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


# Through the compiler


def program(
    values: Callable[[Frame, Frame], dict[str, Json]],
    aggs: str = "dist bigint min",
    edges: dict[str, str] | None = None,
    condition: Callable[[Frame, Frame], Json] | None = None,
    **options: Any,
) -> Program:
    doc = Document(relation("dist", "node bigint", aggs))
    d = doc.reference("dist")
    e = doc.source("edges", **(edges or {"src": "bigint", "dst": "bigint", "w": "double"}))
    joined = d.join(e, same(d["node"], e["src"]))
    joined = joined.where(condition(d, e)) if condition else joined
    return doc.program(dist=joined.select(node=e["dst"], **values(d, e)), **options)


def scaled(d: Frame, e: Frame) -> dict[str, Json]:
    return {"dist": times(d["dist"], subtract(lit(1.0), e["w"]))}


def test_explain_says_by_what_a_claim_was_proved() -> None:
    plan = compile_program(program(scaled, "dist double max", assume=parse_assumptions("w <= 1")))
    assert plan.strata[0].relation_class == "lattice"
    claim_ = "step of dist: dist = dist * (1.0 - w) never gets worse under max"
    assert f"{claim_}: proved by the rules of monotone expressions" in plan.reasons
    plan = compile_program(programs.shortest_paths())
    told = "step of dist: dist = dist + weight never gets worse under min: proved by the rules of monotone expressions"
    assert told in plan.reasons


def test_the_weakest_assumption_that_helps_is_named() -> None:
    with pytest.raises(VerificationError) as caught:
        compile_program(program(scaled, "dist double max"))
    assert caught.value.code == "PARALAGG_NOT_PROVED"
    assert 'assume="w <= 1"' in str(caught.value)
    assert "without an assumption, with w=2: dist=2 improves dist=1, but dist * (1.0 - w) gives -2.0" in str(
        caught.value
    )


@pytest.mark.parametrize("mode", ["auto", "trust"])
def test_what_z3_refutes_is_told_with_values_that_do(mode: str) -> None:
    def far(d: Frame, _: Frame) -> dict[str, Json]:
        near = holds("LessThan", d["dist"], lit(5000, "bigint"))
        return {"dist": call("If", near, add(d["dist"], 7000), d["dist"], type_="bigint")}

    with pytest.raises(VerificationError) as caught:
        compile_program(program(far, mode=mode))
    assert caught.value.code == "PARALAGG_NOT_MONOTONE"
    example = str(caught.value).split("): ")[-1]
    assert "improves" in example


def test_a_filter_above_zero_loses_rows() -> None:
    with pytest.raises(VerificationError, match="dist=0 improves dist=1, but no longer passes dist > 0"):
        compile_program(
            program(
                lambda d, _: {"dist": d["dist"]},
                condition=lambda d, _: holds("GreaterThan", d["dist"], lit(0, "bigint")),
            )
        )


def test_what_is_tried_is_told() -> None:
    with pytest.raises(VerificationError) as caught:
        compile_program(program(lambda d, _: {"dist": call("Crc32", d["dist"], type_="bigint")}))
    tried = "(tried: the rules do not apply; no small value refutes it; z3 does not model crc32)"
    assert tried in str(caught.value)


def test_a_sum_that_cancels_is_linear() -> None:
    plan = compile_program(program(lambda d, _: {"n": subtract(add(d["n"], 1), 1)}, "n bigint sum"))
    assert plan.strata[0].relation_class == "accumulating"
    assert any("n + 1 - 1 is linear under sum: proved by z3" in r for r in plan.reasons)


def test_a_filter_on_a_sum_is_refuted_by_its_parts() -> None:
    with pytest.raises(VerificationError) as caught:
        compile_program(
            program(
                lambda d, _: {"n": d["n"]},
                "n bigint sum",
                condition=lambda d, _: holds("GreaterThan", d["n"], lit(1, "bigint")),
            )
        )
    assert "n=1 fails n > 1 and n=1 fails, but their sum n=2 passes" in str(caught.value)


def test_a_value_that_an_input_computes_is_seen_through() -> None:
    edges = {"src": "bigint", "dst": "bigint", "tag": "string"}
    length = lambda d, e: {"dist": times(d["dist"], cast(call("Length", e["tag"], type_="int"), "bigint"))}  # noqa: E731
    plan = compile_program(program(length, edges=edges))
    assert plan.strata[0].relation_class == "lattice"
    assert any("dist * cast(length(tag) as bigint) never gets worse" in r for r in plan.reasons)


def test_what_is_never_negative_stays_so() -> None:
    """The product of two values of the recursion: no base row is negative, and no product of such values is."""
    doc = Document(relation("best", "x bigint, y bigint", "p bigint max"))
    p, q = doc.reference("best"), doc.reference("best")
    step = p.join(q, same(p["y"], q["x"])).select(x=p["x"], y=q["y"], p=times(p["p"], q["p"]))
    made = doc.program(best=step)
    with pytest.raises(VerificationError):
        compile_program(made)
    base = made.input(0)
    positive = Call("GreaterThan", (base.exprs[2], Lit(0, "bigint")), "boolean")
    kept = replace(made, inputs=tuple(replace(i, filters=(positive,)) if i.id == 0 else i for i in made.inputs))
    assert find_invariants(kept, ("best",), Invariants()).ranges["best", "p"].low == 1
    assert compile_program(kept).strata[0].relation_class == "lattice"


def test_rules_without_hoisted_columns_are_left_alone() -> None:
    made = programs.shortest_paths()
    assert unhoisted(made.rules[0], made) == (made.rules[0], made)


def test_the_incremental_form_of_initial_rows_is_shown() -> None:
    plan = compile_program(programs.with_initial())
    assert plan.strata[0].relation_class == "iterated"
    [shown] = [r for r in plan.reasons if "incremental form" in r]
    assert shown.splitlines() == [
        "rank: incremental form, ΔX¹ = G⁻(G∘F(X⁰), X⁰), then F' on Δ alone",
        "  Δrank(1, node, sum rank) :- in0(node, rank)",
        "  Δrank(1, node, sum -rank) :- in1(node, rank)",
        "  Δrank(1, dst, sum rank * share) :- in1(node, rank), in2(src, dst, share), node = src",
        "  Δrank(i+1, dst, sum rank * share) :- Δrank(i, node, rank), in2(src, dst, share), node = src",
        "  rank(n) = in1 + Δrank(1) + ... + Δrank(n)",
    ]


def test_the_incremental_form_gives_the_rounds() -> None:
    """Theorem 1 on numbers: X(n) by rounds, and as X(0) and differences of which the first takes away."""
    links = {(1, 2): 0.5, (2, 3): 0.25, (3, 1): 0.5, (1, 3): 0.5}
    base, initial = dict.fromkeys((1, 2, 3), 0.25), dict.fromkeys((1, 2, 3), 8.0)

    def step(x: dict[int, float]) -> dict[int, float]:
        return {n: sum(x[a] * s for (a, b), s in links.items() if b == n) for n in (1, 2, 3)}

    rounds = initial
    for _ in range(6):
        rounds = {n: base[n] + v for n, v in step(rounds).items()}
    delta = {n: base[n] + v - initial[n] for n, v in step(initial).items()}
    assert min(delta.values()) < 0
    total = dict(initial)
    for _ in range(6):
        total = {n: total[n] + delta[n] for n in total}
        delta = step(delta)
    assert total == pytest.approx(rounds)


@pytest.mark.parametrize("name", ["mean", "avg"])
def test_a_mean_is_refused_with_the_reason(name: str) -> None:
    with pytest.raises(VerificationError) as caught:
        typed_dependents({"x": name}, ["k"], {"k": "bigint", "x": "double"}, "relation r", None)  # type: ignore[arg-type]
    assert (caught.value.code, caught.value.value, caught.value.place) == ("PARALAGG_NOT_LINEAR", name, "relation r")
    assert "the mean of 1 and the mean of 3 and 5 is 2.5, but the mean of 1, 3 and 5 is 3" in str(caught.value)
    assert (1 + (3 + 5) / 2) / 2 == 2.5
    assert (1 + 3 + 5) / 3 == 3


def test_z3_is_not_loaded_for_what_the_rules_prove() -> None:
    here = Path(__file__).parent
    code = f"import sys; sys.path[:0] = [{str(here)!r}, {str(here.parent.parent)!r}]; import programs; "
    code += "from pyspark_paralagg.compile import compile_program; "
    code += (
        "[compile_program(p()) for p in (programs.shortest_paths, programs.pagerank)]; assert 'z3' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)  # noqa: S603 - our own code
