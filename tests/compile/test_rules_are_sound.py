"""The rule systems of the check never prove what small numbers refute, and prove what people write."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING, Any

import programs
import pytest

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.compile.prove.counterexample import Values, against_filter, against_linear, against_monotone
from pyspark_paralagg.compile.prove.facts import NOT_NEGATIVE, Facts, fact
from pyspark_paralagg.compile.prove.linear import degree
from pyspark_paralagg.compile.prove.monotone import MOVE_OF, Monotone, range_of
from pyspark_paralagg.compile.rewrite.evaluate import NotEvaluableError, evaluate
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit
from pyspark_paralagg.program.functions import Setting
from pyspark_paralagg.program.functions.value_range import Range, type_range
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.program import Program

N = 3_000
FACTS = Facts({"e": NOT_NEGATIVE, "p": NOT_NEGATIVE})


def number(rng: random.Random, depth: int) -> Expr:
    """A random number made of d and e, which move, and w and p, which do not."""
    if depth == 0 or rng.random() < 0.2:
        if rng.random() < 0.25:
            return Lit(rng.choice([-2, -1, 0, 1, 2, 3]), "bigint")
        return Col(rng.choice(["d", "d", "e", "w", "p"]), "bigint", nullable=False)
    fn = rng.choice(
        ["Add", "Subtract", "Multiply", "Least", "Greatest", "UnaryMinus", "Abs", "If", "IntegralDivide", "Cast"]
    )
    if fn == "If":
        args = (truth(rng, depth - 1), number(rng, depth - 1), number(rng, depth - 1))
    elif fn in ("UnaryMinus", "Abs", "Cast"):
        args = (number(rng, depth - 1),)
    else:
        args = (number(rng, depth - 1), number(rng, depth - 1))
    return Call(fn, args, "bigint", nullable=False)


def truth(rng: random.Random, depth: int) -> Expr:
    """A random condition."""
    fn = rng.choice(["LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "EqualTo", "And", "Or", "Not"])
    if fn in ("And", "Or", "Not") and depth > 0:
        args = tuple(truth(rng, depth - 1) for _ in range(1 if fn == "Not" else 2))
    else:
        fn = fn if fn not in ("And", "Or", "Not") else "LessThan"
        args = (number(rng, max(depth - 1, 0)), number(rng, max(depth - 1, 0)))
    return Call(fn, args, "boolean", nullable=False)


@pytest.mark.parametrize(("how_d", "how_e"), [("min", "min"), ("max", "max"), ("min", "max")])
def test_proved_is_never_refuted(how_d: str, how_e: str) -> None:
    rng = random.Random(7)  # noqa: S311
    values = Values({"d": AGGREGATORS[how_d], "e": AGGREGATORS[how_e]}, FACTS)
    moves = {"d": MOVE_OF[how_d], "e": MOVE_OF[how_e]}
    proved = {"down": 0, "up": 0, "true": 0}
    for _ in range(N // 6):
        expr = number(rng, 3)
        found = Monotone(moves, FACTS).move(expr)
        if found in ("down", "up"):
            assert against_monotone(expr, AGGREGATORS["min" if found == "down" else "max"], values) is None, show(expr)
            proved[found] += 1
        condition = truth(rng, 2)
        if Monotone(moves, FACTS).move(condition) == "up":
            assert against_filter(condition, values) is None, show(condition)
            proved["true"] += 1
    assert min(proved.values()) > 15


def test_ranges_hold_for_all_values() -> None:
    rng = random.Random(8)  # noqa: S311
    informative = 0
    for _ in range(N):
        expr = number(rng, 3)
        found = range_of(expr, FACTS)
        assert found is not None
        informative += found != type_range("bigint")
        for _ in range(10):
            given = {n: rng.randint(0 if n in "ep" else -5, 5) for n in "dewp"}
            try:
                value = evaluate(expr, given)
            except NotEvaluableError:
                continue
            assert value in found, (show(expr), given)
    assert informative > 200


def test_a_square_that_wraps_around_may_be_negative() -> None:
    w = Col("w", "int")
    square = Call("Multiply", (w, w), "int")
    assert range_of(square, Facts(setting=Setting(ansi=False))) == type_range("int")
    assert range_of(square, Facts(setting=Setting(ansi=True))) == Range(0, 2**31 - 1)


def test_a_call_without_arguments_has_the_range_of_its_type() -> None:
    assert range_of(Call("Rand", (), "double"), Facts()) == type_range("double")


def test_a_square_of_floats_may_be_infinite() -> None:
    square = Call("Multiply", (Col("w", "float"), Col("w", "float")), "float")
    largest = (2 - 2**-23) * 2.0**127
    assert range_of(square, Facts().with_range("w", Range(-largest, largest))) == Range(0, math.inf)


def test_a_date_that_is_computed_may_leave_the_calendar() -> None:
    """An ``int`` of days wraps around, or reaches beyond the year 9999."""
    day = Call("DateAdd", (Col("day", "date"), Col("n", "int")), "date")
    assert range_of(day, Facts()) == type_range("int")
    assert range_of(Call("DateDiff", (Col("today", "date"), day), "int"), Facts()) == type_range("int")
    assert range_of(Call("DateAdd", (Col("day", "date"), Lit(7, "int")), "date"), Facts()) != type_range("int")


@pytest.mark.parametrize("nullable", ["", "d", "de"])
def test_linear_is_never_refuted(nullable: str) -> None:
    """Columns in ``nullable`` may be null; a null adds nothing."""
    rng = random.Random(9)  # noqa: S311
    sums, proved, refuted = frozenset("de"), 0, 0
    for _ in range(N):
        expr = number(rng, 3)
        if rng.random() < 0.5:
            zero = Call("Coalesce", (number(rng, 1), Lit(0, "bigint")), "bigint", nullable=False)
            expr = Call("Add", (zero, expr), "bigint", nullable=False)
        if degree(expr, sums, frozenset(nullable)) == "linear":
            proved += 1
            assert against_linear(expr, sums, frozenset(nullable), Facts()) is None, show(expr)
        elif degree(expr, sums) == "linear":
            refuted += against_linear(expr, sums, frozenset(nullable), Facts()) is not None
    assert proved > 50
    assert (refuted > 5) == bool(nullable)


D, W = Col("d", "bigint", nullable=False), Col("w", "bigint", nullable=False)


def on(fn: str, *args: Expr | int, type_: str = "bigint") -> Call:
    return Call(fn, tuple(Lit(a, "bigint") if isinstance(a, int) else a for a in args), type_, nullable=False)


PROVED: list[tuple[str, Expr]] = [
    ("down", on("Add", D, W)),
    ("down", on("Subtract", D, W)),
    ("up", on("Subtract", W, D)),
    ("down", on("Multiply", D, 2)),
    ("up", on("Multiply", D, -2)),
    ("down", on("Divide", D, 2, type_="double")),
    ("down", on("Multiply", D, on("Abs", W))),
    ("down", on("Multiply", D, on("Multiply", W, W))),
    ("down", on("Greatest", on("Add", D, W), 0)),
    ("down", on("Least", D, W)),
    ("down", on("Cast", D, type_="int")),
    ("unknown", on("Sqrt", D, type_="double")),  # of what is negative it is NaN, the largest value
    ("down", on("Exp", on("Cast", D, type_="double"), type_="double")),
    ("down", on("If", on("LessThan", W, 3, type_="boolean"), D, on("Add", D, 1))),
    ("down", on("CaseWhen", on("LessThan", W, 3, type_="boolean"), D, on("EqualTo", W, 3, type_="boolean"), 7)),
    ("up", on("If", on("LessThan", D, 3, type_="boolean"), 1, 0)),
    ("up", on("LessThan", D, W, type_="boolean")),
    ("up", on("Not", on("GreaterThanOrEqual", D, W, type_="boolean"), type_="boolean")),
    ("const", on("Remainder", W, 3)),
    ("unknown", on("Multiply", D, W)),
    ("unknown", on("Remainder", D, 3)),
    ("unknown", on("Subtract", D, D)),
]


@pytest.mark.parametrize(("found", "expr"), PROVED, ids=lambda x: show(x) if isinstance(x, Call) else x)
def test_direction_of_what_people_write(found: str, expr: Expr) -> None:
    assert Monotone({"d": "down"}, Facts()).move(expr) == found


@pytest.mark.parametrize(
    ("found", "expr"),
    [
        ("bits_up", on("BitwiseOr", D, W)),
        ("bits_up", on("BitwiseAnd", D, W)),
        ("bits_up", on("ShiftLeft", D, 2)),
        ("bits_down", on("BitwiseNot", D)),
        ("unknown", on("BitwiseXor", D, W)),
        ("unknown", on("Add", D, W)),
        ("up", on("Not", on("EqualTo", on("BitwiseAnd", D, 4), 0, type_="boolean"), type_="boolean")),
        ("up", on("EqualTo", on("BitwiseAnd", D, Lit(4, "bigint")), Lit(4, "bigint"), type_="boolean")),
        ("unknown", on("EqualTo", D, 4, type_="boolean")),
    ],
    ids=lambda x: show(x) if isinstance(x, Call) else x,
)
def test_direction_of_bits(found: str, expr: Expr) -> None:
    assert Monotone({"d": "bits_up"}, Facts()).move(expr) == found


def padded(width: int) -> Call:
    digits = Call("Cast", (Col("n", "int"),), "string")
    return Call("StringLPad", (digits, Lit(width, "int"), Lit("0", "string")), "string")


@pytest.mark.parametrize(
    ("direction", "expr", "range_"),
    [
        ("up", padded(3), Range(0, 999)),
        ("unknown", padded(3), Range(0, 1_000)),  # 1000 is cut to 100
        ("unknown", padded(3), Range(-1, 999)),
        ("up", padded(10), Range(0, 2_147_483_647)),
        ("up", Call("Cast", (Col("n", "int"),), "string"), Range(10, 99)),
        ("unknown", Call("Cast", (Col("n", "int"),), "string"), Range(9, 10)),
        ("up", Call("Cast", (Col("n", "date"),), "string"), Range(0, 2_932_896)),
        ("up", Call("Cast", (on("DateAdd", Col("n", "date"), 1, type_="date"),), "string"), Range(0, 9)),
        ("unknown", Call("Cast", (on("DateAdd", Col("n", "date"), 1, type_="date"),), "string"), Range(0, 2_932_896)),
        ("up", Call("Quarter", (Col("n", "date"),), "int"), Range(0, 364)),
        ("unknown", Call("Quarter", (Col("n", "date"),), "int"), Range(0, 365)),
    ],
    ids=str,
)
def test_texts_and_quarters_grow_in_a_range(direction: str, expr: Expr, range_: Range) -> None:
    assert Monotone({"n": "up"}, Facts().with_range("n", range_)).move(expr) == direction


@pytest.mark.parametrize(
    ("fn", "limit", "low", "high"),
    [
        ("GreaterThan", 0, 1, math.inf),
        ("GreaterThanOrEqual", 0, 0, math.inf),
        ("GreaterThan", -1, 0, math.inf),
        ("LessThan", 0, -math.inf, -1),
        ("LessThanOrEqual", 0, -math.inf, 0),
        ("EqualTo", 3, 3, 3),
    ],
)
def test_ranges_from_a_comparison(fn: str, limit: int, low: float, high: float) -> None:
    has_nan = fn.startswith("Greater")
    assert fact(Call(fn, (W, Lit(limit, "bigint")), "boolean")) == ("w", Range(low, high, has_nan))


def test_a_comparison_of_a_cut_number_says_nothing() -> None:
    w = Col("w", "double")
    cut = Call("Cast", (w,), "int")
    assert fact(Call("GreaterThanOrEqual", (cut, Lit(0, "int")), "boolean")) is None
    assert fact(Call("GreaterThan", (w, Lit(0.0, "double")), "boolean")) == ("w", Range(5e-324, math.inf, has_nan=True))


@pytest.mark.parametrize(
    ("make", "class_"),
    [
        (programs.shortest_paths, "lattice"),
        (programs.widest_path, "lattice"),
        (programs.components, "lattice"),
        (programs.closure_non_linear, "lattice"),
        (programs.all_pairs, "lattice"),
        (programs.parents, "lattice"),
        (programs.labels, "lattice"),
        (programs.hops, "lattice"),
        (programs.pagerank, "accumulating"),
        (programs.bill_of_materials, "accumulating"),
        (programs.path_counts, "accumulating"),
    ],
)
def test_classes_of_what_everybody_knows(make: Callable[..., Program], class_: str) -> None:
    assert [s.relation_class for s in compile_program(make()).strata] == [class_]


def test_evaluator_keeps_sparks_nulls() -> None:
    null = Lit(None, "bigint")
    truths: list[tuple[Call, Any]] = [
        (on("And", Lit(False, "boolean"), Lit(None, "boolean")), False),  # noqa: FBT003
        (on("Or", Lit(True, "boolean"), Lit(None, "boolean")), True),  # noqa: FBT003
        (on("And", Lit(True, "boolean"), Lit(None, "boolean")), None),  # noqa: FBT003
        (on("Add", null, 1), None),
        (on("Greatest", null, 1), 1),
        (on("Coalesce", null, 4), 4),
        (on("IntegralDivide", -7, 2), -3),
        (on("Remainder", -7, 2), -1),
    ]
    assert [evaluate(e, {}) for e, _ in truths] == [v for _, v in truths]
