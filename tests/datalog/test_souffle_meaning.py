"""Test that generators and aggregates in bodies have Soufflé's semantics, by one Plan for each text.

The expected rows follow Soufflé's sources: ``runRange`` for ranges, ``ast/analysis/Aggregate.cpp`` for scopes and
witnesses.
"""

from __future__ import annotations

from typing import Any

import pytest
from datalog.simulate import simulate_whole

from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import ParalaggError

Rows = list[tuple[Any, ...]]

FACTS = """
r(1). r(2).
s(7). s(9).
e("a", 3). e("a", 8). e("b", 8). e("c", 2).
pair(1, 2). pair(5, 6). pair(-50, 3).
high("x", 9, 1). high("y", 9, 2). high("z", 4, 3).
bounds(1, 4, 1). bounds(4, 1, -2). bounds(2, 5, 0). bounds(3, 3, 0). bounds(9, 0, 1).
"""

RANGES: dict[str, tuple[str, Rows]] = {
    "two_equal_ones_give_all_pairs": ("p(x, y) :- x = range(0, 2), y = range(0, 2).", [(0, 0), (0, 1), (1, 0), (1, 1)]),
    "two_equal_ones_in_a_head_too": ("p(range(0, 2), range(0, 2)) :- r(1).", [(0, 0), (0, 1), (1, 0), (1, 1)]),
    "two_equal_ones_of_variables_too": (
        "p(x, y) :- r(n), x = range(0, n), y = range(0, n), n = 2.",
        [(0, 0), (0, 1), (1, 0), (1, 1)],
    ),
    "one_that_is_read_twice_has_one_value": ("p(x, x) :- x = range(0, 2).", [(0, 0), (1, 1)]),
    "a_step_of_zero_gives_the_start": ("p(x) :- x = range(5, 1, 0).", [(5,)]),
    "a_step_of_zero_upwards_too": ("p(x) :- x = range(1, 5, 0).", [(1,)]),
    "a_step_of_zero_over_nothing_gives_nothing": ("p(x) :- x = range(5, 5, 0).", []),
    "a_step_away_from_the_end_gives_nothing": ("p(x) :- x = range(9, 0, 1).", []),
    "a_negative_step_away_too": ("p(x) :- x = range(0, 9, -1).", []),
    "without_a_step_it_goes_down_as_well": ("p(x) :- x = range(3, 1).", [(3,), (2,)]),
    "over_nothing": ("p(x) :- x = range(5, 5).", []),
    "a_negative_step": ("p(x) :- x = range(5, 1, -2).", [(5,), (3,)]),
    "floats": ("p(x) :- x = range(5.0, 3.75, -0.5).", [(5.0,), (4.5,), (4.0,)]),
    "floats_without_a_step": ("p(x) :- x = range(3.75, 5.0).", [(3.75,), (4.75,)]),
    "numbers_beside_a_float_are_floats": ("p(x) :- x = range(-1, 0, 0.5).", [(-1.0,), (-0.5,)]),
    "a_step_of_zero_between_floats": ("p(x) :- x = range(5.0, 3.75, 0.0).", [(5.0,)]),
    "bounds_and_steps_of_rows": (
        "p(a, b, x) :- bounds(a, b, c), x = range(a, b, c).",
        [(1, 4, 1), (1, 4, 2), (1, 4, 3), (4, 1, 4), (4, 1, 2), (2, 5, 2)],
    ),
    "bounds_that_are_ranges": (
        "p(m, n, x) :- x = range(m, n), m = range(1, 3), n = range(3, 4).",
        [(1, 3, 1), (1, 3, 2), (2, 3, 2)],
    ),
    "unsigned": (".decl p(x: unsigned)\np(x) :- x = range(1u, 5u, 2u).", [(1,), (3,)]),
    "unsigned_downwards": (".decl p(x: unsigned)\np(x) :- x = range(3u, 1u).", [(3,), (2,)]),
    "in_an_aggregate": ("p(n) :- n = count : { x = range(0, 3), y = range(0, 3) }.", [(9,)]),
}

SCOPES: dict[str, tuple[str, Rows]] = {
    "the_aggregated_variable_is_local": ("p(x) :- x = max x : { r(x) }.", [(2,)]),
    "what_only_the_value_binds_outside_is_local": ("p(x) :- x = count : { r(x) }.", [(2,)]),
    "it_does_not_capture": ("p(x, y) :- s(x), y = sum x : { r(x) }.", [(7, 3), (9, 3)]),
    "nor_does_an_expression": ("p(x, y) :- s(x), y = sum x + 1 : { r(x) }.", [(7, 5), (9, 5)]),
    "what_is_bound_outside_is_the_key": ("p(x, n) :- e(x, 8), n = count : { e(x, _) }.", [("a", 2), ("b", 1)]),
    "an_equation_binds_as_well": ('p(x, n) :- n = count : { e(x, _) }, x = "c".', [("c", 1)]),
    "a_range_binds_as_well": ("p(x, n) :- n = count : { r(x) }, x = range(1, 4).", [(1, 1), (2, 1), (3, 0)]),
    "aggregates_do_not_see_each_other": (
        "p(a, b) :- a = count : { e(_, y), y > 2 }, b = count : { e(_, y), y < 4 }.",
        [(3, 2)],
    ),
    "an_inner_aggregate_has_a_scope_of_its_own": (
        "p(x) :- s(x), 7 = max x : { s(x), x < sum x : { s(x), x > 7 } }.",
        [(7,), (9,)],
    ),
    "equal_texts_in_other_scopes": (
        "p(n, m) :- n = count : { r(x) }, m = max y : { pair(x, y), 0 = count : { r(x) } }.",
        [(2, 6)],
    ),
}

WITNESSES: dict[str, tuple[str, Rows]] = {
    "the_maximum_is_there": ("p(x, m) :- m = max y : { e(x, y), y != 8 }.", [("a", 3)]),
    "ties_are_all_witnesses": ("p(x, m) :- m = max y : { e(x, y) }.", [("a", 8), ("b", 8)]),
    "min_alike": ("p(x, m) :- m = min y : { e(x, y) }.", [("c", 2)]),
    "several_of_them": ("p(m, x, z) :- m = min y : { high(x, y, z) }.", [(4, "z", 3)]),
    "of_an_expression": ("p(x, y, m) :- m = min x + y : { pair(x, y) }.", [(-50, 3, -47)]),
    "of_a_value_that_the_body_computes": ("p(x, m) :- m = min w : { pair(x, y), w = x + y }.", [(-50, -47)]),
    "the_value_is_not_of_interest": ("p(x) :- _ = max y : { pair(x, y) }.", [(5,)]),
    "for_each_key": ("p(k, x, m) :- r(k), m = max y : { pair(x, y), x < k + 4 }.", [(1, -50, 3), (2, 5, 6)]),
    "a_condition_outside_is_about_the_witness": ('p(x, m) :- m = max y : { e(x, y) }, x != "a".', [("b", 8)]),
    "of_two_aggregates": ("p(x) :- _ = max y : { high(x, y, _) }, _ = min z : { high(x, _, z) }.", [("x",)]),
    "of_alternatives": ("p(x, m) :- m = max y : { pair(x, y); high(_, y, x) }.", [(1, 9), (2, 9)]),
    "nothing_of_nothing": ("p(x, m) :- m = max y : { pair(x, y), y > 100 }.", []),
    "a_binding_counts_once": ('p($COUNT) :- m = max y : { high(x, y, _), s(_), r(w) }, m > 0, x != "x".', [(1,)]),
}


@pytest.mark.parametrize("name", [*RANGES, *SCOPES, *WITNESSES])
def test_a_text_gives_the_rows_that_souffle_gives(name: str) -> None:
    text, expected = {**RANGES, **SCOPES, **WITNESSES}[name]
    rows = simulate_whole(resolve_text(parse(FACTS + text), {}), {}, 2)["p"]
    assert sorted(rows) == sorted(expected)
    assert {type(v) for row in rows for v in row} == {type(v) for row in expected for v in row}


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("p(x, n) :- n = count : { e(x, _) }.", "nothing outside of count binds `x`, but count has no witness"),
        ("p(x, n) :- n = sum y : { e(x, y) }.", "nothing outside of sum binds `x`, but sum has no witness"),
        ("p(x, n) :- n = mean y : { e(x, y) }.", "nothing outside of mean binds `x`, but mean has no witness"),
        ("p(x, y) :- y = max x : { r(x) }.", "max aggregates `x`, which has no value outside of the aggregate"),
        ("p(x) :- 1 = count : { r(y), y > min z : { pair(z, x) } }.", "nothing in the body binds `x`"),
    ],
)
def test_a_variable_without_a_witness_is_unbound(rule: str, message: str) -> None:
    with pytest.raises(ParalaggError, match="PARALAGG_DATALOG_UNBOUND") as caught:
        resolve_text(parse(FACTS + rule), {})
    assert message in caught.value.message
    assert str(caught.value.place).startswith("line 8, ")


def test_a_range_in_counted_alternatives_is_refused() -> None:
    text = FACTS + "p($COUNT) :- s(x), (y = range(0, 3); y = range(2, 5))."
    with pytest.raises(ParalaggError, match="PARALAGG_DATALOG_UNSUPPORTED: range is in one of several") as caught:
        resolve_text(parse(text), {})
    assert caught.value.place == "line 8, column 25"


def test_a_range_over_an_unbound_variable_is_an_error_of_the_rule() -> None:
    with pytest.raises(ParalaggError, match="nothing in the body binds `x`") as caught:
        resolve_text(parse("p(x, y) :- y = range(0, x)."), {})
    assert "@" not in str(caught.value)
