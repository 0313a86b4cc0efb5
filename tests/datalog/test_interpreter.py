"""Test the reference interpreter against results computed by hand."""

from __future__ import annotations

from typing import Any

import pytest
from datalog.interpreter import evaluate

from pyspark_paralagg.datalog.parse.parse import parse

Rows = set[tuple[Any, ...]]

EDGE: Rows = {(1, 2), (2, 3), (3, 1), (3, 4)}
ROAD: Rows = {("a", "b", 1), ("b", "c", 1), ("a", "c", 5), ("c", "a", 1)}


def rows(text: str, name: str, **facts: Rows) -> Rows:
    return evaluate(parse(text), facts)[name]


def test_closure_of_a_cycle_ends() -> None:
    text = "path(x, y) :- edge(x, y).  path(x, z) :- path(x, y), edge(y, z)."
    assert rows(text, "path", edge=EDGE) == {(x, y) for x in (1, 2, 3) for y in (1, 2, 3, 4)}


def test_facts_and_input_rows_form_one_relation() -> None:
    assert rows("n(1). n(2). n(x) :- m(x).", "n", n={(7,)}, m={(2,), (3,)}) == {(1,), (2,), (3,), (7,)}


def test_several_heads_and_alternatives() -> None:
    text = "small(x), marked(x, 1) :- n(x), (x < 2; x = 5)."
    result = evaluate(parse(text), {"n": {(1,), (3,), (5,)}})
    assert result["small"] == {(1,), (5,)}
    assert result["marked"] == {(1, 1), (5, 1)}


def test_constants_wildcards_and_repeated_variables_in_atoms() -> None:
    edge: Rows = {(1, 1), (1, 2), (2, 2), (3, 1)}
    text = "loop(x) :- edge(x, x). to1(x) :- edge(x, 1). some() :- edge(_, 2). next(x) :- edge(x, x + 1)."
    result = evaluate(parse(text), {"edge": edge})
    assert (result["loop"], result["to1"], result["some"], result["next"]) == (
        {(1,), (2,)},
        {(1,), (3,)},
        {()},
        {(1,)},
    )


def test_negation_reads_complete_relations() -> None:
    text = """
        reach(1).  reach(y) :- reach(x), edge(x, y).
        lost(x) :- node(x), !reach(x).
        sink(x) :- node(x), !edge(x, _).
        none(x) :- node(x), !(reach(x); x = 9).
    """
    result = evaluate(parse(text), {"edge": {(1, 2), (5, 6)}, "node": {(2,), (5,), (9,)}})
    assert (result["lost"], result["sink"], result["none"]) == ({(5,), (9,)}, {(2,), (9,)}, {(5,)})


def test_negation_in_a_recursion_is_refused() -> None:
    with pytest.raises(AssertionError, match="recurses through"):
        rows("win(x) :- move(x, y), !win(y).", "win", move={(1, 2)})


def test_numbers_divide_towards_zero_and_remainders_have_the_sign_of_the_left() -> None:
    text = "out(x / 2, x % 2, -x / 2, x ^ 2, x / 2.0) :- n(x)."
    assert rows(text, "out", n={(-3,), (7,)}) == {(-1, -1, 1, 9, -1.5), (3, 1, -3, 49, 3.5)}


@pytest.mark.parametrize(("term", "error"), [("x / 0", ZeroDivisionError), ("x * 4611686018427387904", OverflowError)])
def test_undefined_arithmetic_raises(term: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        rows(f"out({term}) :- n(x).", "out", n={(2,)})


def test_functors_on_symbols() -> None:
    text = 'out(cat(s, "!", s), strlen(s), substr(s, 1, 2)) :- word(s), match("a.*", s), contains("c", s).'
    assert rows(text, "out", word={("abcd",), ("ab",), ("cab",)}) == {("abcd!abcd", 4, "bc")}


def test_ranges_go_up_and_down_and_leave_out_their_end() -> None:
    text = "up(x) :- x = range(0, 3). down(x) :- x = range(2, 0). by(x, y) :- n(x), y = range(0, x, 2)."
    result = evaluate(parse(text), {"n": {(5,)}})
    assert (result["up"], result["down"]) == ({(0,), (1,), (2,)}, {(2,), (1,)})
    assert result["by"] == {(5, 0), (5, 2), (5, 4)}


def test_a_body_aggregate_counts_distinct_bindings() -> None:
    text = """
        degree(x, n) :- node(x), n = count : { edge(x, _) }.
        total(x, n) :- node(x), n = sum y : { edge(x, y), y < 9 }.
        least(x, n) :- node(x), n = min y : { edge(x, y) }.
        middle(n) :- n = mean y : { edge(_, y) }.
        twice(n) :- n = sum v : { pair(_, v) }.
        one(n) :- n = sum v : { pair(k, v), k = 1; pair(_, v), false }.
    """
    facts: dict[str, Rows] = {"node": {(1,), (2,)}, "edge": {(1, 3), (1, 4), (1, 9)}, "pair": {(1, 5), (2, 5)}}
    result = evaluate(parse(text), facts)
    assert result["degree"] == {(1, 3), (2, 0)}
    assert result["total"] == {(1, 7), (2, 0)}
    assert result["least"] == {(1, 3)}
    assert result["middle"] == {(16 / 3,)}
    assert result["twice"] == {(10,)}
    assert result["one"] == {(5,)}


def test_a_groups_variable_is_bound_outside() -> None:
    text = "below(x, n) :- node(x), n = count : { edge(_, y), y < x }."
    assert rows(text, "below", node={(2,), (5,)}, edge={(0, 1), (3, 1), (0, 4)}) == {(2, 2), (5, 3)}


def test_a_head_adds_once_for_each_binding() -> None:
    text = """
        all($SUM(v)) :- pair(_, v).
        some($SUM(v)) :- value(v).  value(v) :- pair(_, v).
        how($COUNT) :- pair(_, _).
        weighed($COUNT(v)) :- pair(_, v).
        once($SUM(v)) :- pair(_, v), (v < 6; v > 2).
    """
    result = evaluate(parse(text), {"pair": {(1, 5), (2, 5)}})
    values = {n: result[n] for n in ("all", "some", "how", "weighed", "once")}
    assert values == {"all": {(10,)}, "some": {(5,)}, "how": {(2,)}, "weighed": {(10,)}, "once": {(10,)}}


def test_shortest_paths_with_their_predecessor() -> None:
    text = """
        path(x, 0, "") :- x = "a".
        path(y, $MIN(d + w), $MIN_BY(x, d + w)) :- path(x, d, _), road(x, y, w).
    """
    assert rows(text, "path", road=ROAD) == {("a", 0, ""), ("b", 1, "a"), ("c", 2, "b")}


def test_max_by_takes_the_smallest_value_at_a_tie() -> None:
    text = "best(k, $MAX_BY(v, x)) :- mark(k, v, x)."
    assert rows(text, "best", mark={(1, "b", 3), (1, "a", 3), (1, "z", 2), (2, "c", 0)}) == {(1, "a"), (2, "c")}


def test_sums_along_an_acyclic_graph() -> None:
    text = "needs(1, 1).  needs(y, $SUM(n * k)) :- needs(x, n), part(x, y, k)."
    assert rows(text, "needs", part={(1, 2, 2), (1, 3, 1), (2, 3, 3), (3, 4, 2)}) == {(1, 1), (2, 2), (3, 7), (4, 14)}


def test_paths_counted_up_to_a_limit() -> None:
    text = "paths(1, $COUNT) :- true.  paths(y, $COUNT(n)) :- paths(x, n), edge(x, y).  .limit paths(iterations=4)"
    # After 1: {1, 2}, 2: {1, 2, 3}, 3: 1 has itself and a way round, 4: so has 2.
    assert rows(text, "paths", edge={(1, 2), (2, 3), (3, 1)}) == {(1, 2), (2, 2), (3, 1)}


def test_attendance_reads_a_count_of_witnesses_through_a_threshold() -> None:
    text = """
        attends(x) :- organizer(x).
        attends(x) :- friends(x, n), n >= 2.
        friends(y, $MCOUNT(x)) :- attends(x), friend(y, x).
    """
    friend: Rows = {(3, 1), (3, 2), (4, 3), (4, 1), (5, 4)}
    result = evaluate(parse(text), {"organizer": {(1,), (2,)}, "friend": friend})
    assert result["attends"] == {(1,), (2,), (3,), (4,)}
    assert result["friends"] == {(3, 2), (4, 2), (5, 1)}


def test_a_witness_adds_its_largest_share() -> None:
    text = "held(y, $MSUM(n, x)) :- share(x, y, n)."
    assert rows(text, "held", share={(1, 9, 3), (1, 9, 5), (2, 9, 4), (3, 9, -7), (3, 8, -1)}) == {(9, 9), (8, 0)}


def test_the_other_lattices() -> None:
    text = """
        bits($BITOR(v), $BITAND(v), $GCD(v)) :- n(v).
        over($ANY(v > 8), $ALL(v > 8)) :- n(v).
        middle($MEAN(v)) :- n(v).
    """
    result = evaluate(parse(text), {"n": {(6,), (10,)}})
    assert (result["bits"], result["over"], result["middle"]) == ({(14, 2, 2)}, {(True, False)}, {(8.0,)})


def test_an_iteration_index_is_not_a_column() -> None:
    text = """
        rank(0, x, $SUM(8)) :- node(x).
        rank(i + 1, x, $SUM(1)) :- node(x).
        rank(i + 1, y, $SUM(r / 2)) :- rank(i, x, r), edge(x, y).
        .limit rank(iterations=2)
        top(x) :- rank(_, x, r), r > 2.
    """
    result = evaluate(parse(text), {"node": {(1,), (2,)}, "edge": {(1, 2), (2, 2)}})
    assert result["rank"] == {(1, 1), (2, 5)}  # (8, 8), then (1, 1 + 4 + 4), then (1, 1 + 0 + 4)
    assert result["top"] == {(2,)}


def test_a_column_that_counts_levels_stays() -> None:
    text = "level(0, 1).  level(n + 1, y) :- level(n, x), edge(x, y), n < 2."
    assert rows(text, "level", edge={(1, 2), (2, 1)}) == {(0, 1), (1, 2), (2, 1)}


def test_a_tolerance_ends_the_rounds() -> None:
    text = """
        mass(1, $SUM(x)) :- x = 1.0.
        mass(1, $SUM(m / 2)) :- mass(1, m).
        .limit mass(tolerance=0.3)
    """
    assert rows(text, "mass") == {(1, 1.75)}  # the changes are 0.5 and 0.25


def test_declared_floats_hold_floats() -> None:
    text = ".type Weight = float .decl w(x: number, v: Weight) w(1, 3). half(v / 2) :- w(_, v)."
    assert rows(text, "half") == {(1.5,)}
