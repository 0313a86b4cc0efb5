"""What the Plan offers Catalyst's rules: keys that are carried, and smaller strata where few columns are read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import programs
import pytest

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text


@pytest.mark.parametrize(
    ("program", "carried"),
    [
        (programs.multi_source(), ((0,),)),
        (programs.multi_source(max_iterations=3), ((0,),)),
        (programs.closure_left(), ((0,),)),
        (programs.closure_right(), ((1,),)),
        (programs.closure_non_linear(), ()),
        (programs.same_generation(), ()),
        (programs.shortest_paths(), ()),
        (programs.two_strata(), ()),
    ],
)
def test_carried_keys(program: Any, carried: tuple[tuple[int, ...], ...]) -> None:  # noqa: ANN401 - a Program
    assert compile_program(program).strata[0].carried == carried


def test_a_carried_key_is_followed_through_many_relations() -> None:
    """Each has three keys: to try them all in every relation would be 3^20 ways."""
    [stratum] = compile_program(programs.ring(20)).strata
    assert stratum.carried == (tuple(i % 3 for i in range(20)),)


def test_keys_that_a_rule_makes_equal_are_both_followed() -> None:
    """Whoever filters ``even.s`` may do so by ``odd.a`` as well as by ``odd.b``."""
    assert compile_program(programs.equal_keys()).strata[0].carried == ((0, 0), (0, 1))


def test_a_tree_without_its_parents() -> None:
    plan = compile_program(programs.parents())
    [smaller] = plan.narrower
    assert (smaller.position, smaller.relation, smaller.columns) == (0, "dist", ("dist",))
    assert [r.text for r in smaller.stratum.rules] == [
        "dist(dst, min dist + weight) :- dist(node, dist), in1(src, dst, weight), node = src"
    ]
    assert [(s.input, s.columns) for s in smaller.slices] == [(0, (0, 1)), (1, (0, 1, 2))]
    assert len(smaller.inputs) == 2


def test_components_without_their_labels_are_what_is_reached() -> None:
    [smaller] = compile_program(programs.components()).narrower
    assert smaller.columns == ()
    assert [r.text for r in smaller.stratum.rules] == [
        "comp(dst) :- comp(node), in1(src, dst), node = src",
        "comp(src) :- comp(node), in1(src, dst), node = dst",
    ]


def test_what_may_climb_stays() -> None:
    assert compile_program(programs.shortest_paths()).narrower == ()


@pytest.mark.parametrize("options", [{"max_iterations": 3}, {"max_iterations": 3, "on_limit": "error"}])
def test_a_limit_that_is_an_error_keeps_every_column(options: dict[str, Any]) -> None:
    assert compile_program(replace(programs.parents(), **options)).narrower == ()


def test_slices_are_of_inputs_that_the_plan_reads() -> None:
    """Two rules read one input by the same column, so that the Plan reads it once, with the columns of both."""
    text = """
        .decl f(x: number, y: number)
        .decl e(x: number, y: number, z: number)
        .input f, e
        r(s, $GCD(v)) :- r(s, v), f(z, x), (e(_, x, x); e(x, _, _), !e(z, _, _)).
        r("c", $GCD(max(x - x, 0))) :- f(z, w), x = min v + 1 : { e(z, v, z), v != 2 }, (z % 2 = 0; f(x, x)).
    """
    plan = compile_program(resolve_text(parse(text), {}).program)
    assert plan.narrower
    assert {s.input for n in plan.narrower for s in n.slices} <= {i.id for i in plan.inputs}
