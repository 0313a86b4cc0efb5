"""Claims that z3 decides, in programs: what is accepted, refused and explained."""

# ruff: noqa: ANN401  (options of a Program)

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import programs
import pytest
from steps import Document, Frame, Json, add, call, cast, holds, lit, relation, same, subtract, times

from pyspark_paralagg.api.dependents import typed_dependents
from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.compile.prove.facts import Invariants
from pyspark_paralagg.compile.prove.invariants import find_invariants, unhoisted
from pyspark_paralagg.errors import VerificationError
from pyspark_paralagg.program.assumption import parse_assumptions
from pyspark_paralagg.program.expr import Call, Lit

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.program import Program


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
