"""What the planner chooses for the programs that everybody knows: classes, places, targets, shortcuts."""
# ruff: noqa: ANN401  (options of a Program)

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import programs
import pytest

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.datalog.parse.parse import parse
from pyspark_paralagg.datalog.text_to_program import resolve_text
from pyspark_paralagg.errors import VerificationError
from pyspark_paralagg.plan.plan import (
    VERSION,
    Bitmap,
    BitRows,
    Driver,
    Plan,
    Probe,
    RelationIndex,
    StaticIndex,
    Stratum,
    to_data,
)
from pyspark_paralagg.plan.printer import show_plan
from pyspark_paralagg.plan.read import program_from_json
from pyspark_paralagg.program.assumption import parse_assumptions

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program


def only(program: Program, **options: Any) -> Stratum:
    [stratum] = compile_program(program, **options).strata
    return stratum


def test_shortest_paths_in_full() -> None:
    stratum = only(programs.shortest_paths())
    [rule] = stratum.rules
    assert (stratum.relation_class, stratum.in_place, stratum.bitmap) == ("lattice", True, None)
    assert stratum.relations[0].distribute_by == (0,)
    assert stratum.static_indexes == (StaticIndex(0, 1, (0,), (1, 2), "partitioned", (0,), (1,), "dist", 0),)
    assert rule.driver == Driver("dist", "delta", ("node", "dist"))
    [probe] = rule.steps
    assert isinstance(probe, Probe)
    assert (probe.binds, probe.aligned) == (("dst", "weight"), True)
    assert (rule.reads, rule.target.local) == (("dist", "weight"), False)  # dst is resolved at load
    assert not stratum.copies_order
    assert (rule.target.kind, rule.target.step, rule.target.payload) == ("resolved", 0, (0,))
    assert [r.text for r in stratum.rules] == [
        "dist(dst, min dist + weight) :- dist(node, dist), in1(src, dst, weight), node = src"
    ]


def test_plan_is_json() -> None:
    plan = compile_program(programs.pagerank(max_iterations=5))
    data = json.loads(json.dumps(plan.to_json()))
    assert data["version"] == VERSION
    assert show_plan(data) == show_plan(plan)


@pytest.mark.parametrize("program", [programs.shortest_paths(), programs.components(), programs.pagerank()])
def test_a_program_comes_back_from_its_json(program: Program) -> None:
    assert program_from_json(json.loads(json.dumps(to_data(program)))) == program


def test_components_have_an_index_for_each_direction() -> None:
    stratum = only(programs.components())
    assert [(i.input, i.keys, i.payload) for i in stratum.static_indexes] == [(1, (0,), (1,)), (1, (1,), (0,))]
    assert not stratum.cycle_check


@pytest.mark.parametrize(
    ("program", "checked"),
    [
        (programs.shortest_paths(), True),
        (programs.shortest_paths(assume=parse_assumptions("weight >= 0")), False),
        (programs.widest_path(), False),
        (programs.hops(), False),
        (programs.closure_left(), False),
        (programs.parents(), True),
        (programs.path_counts(), True),
        (programs.most_probable(mode="iterate"), True),
        (programs.most_probable(mode="iterate", max_iterations=3), False),
    ],
)
def test_an_endless_climb_is_watched_for_where_it_is_possible(program: Program, *, checked: bool) -> None:
    assert only(program).cycle_check == checked


@pytest.mark.parametrize(
    ("program", "state", "indexes"),
    [
        (programs.shortest_paths(), True, True),
        (programs.components(), True, True),
        (programs.multi_source(size=1 << 40), True, True),
        (programs.path_counts(), True, True),
        (programs.bill_of_materials(), False, True),  # sums whose keys are computed
        (programs.pagerank(), False, False),  # a rule computes keys that the indexes have ids of
        (programs.hops(max_iterations=3), False, True),  # a continued run would have other rounds
        (programs.with_initial(), False, False),
        (programs.multi_source(), False, False),  # one carried value at a time
        (programs.closure_left(), False, False),  # bitmaps
        (programs.closure_non_linear(), False, False),  # the relation is an index, too
    ],
)
def test_what_a_later_run_may_take(program: Program, *, state: bool, indexes: bool) -> None:
    stratum = only(program)
    assert (stratum.keeps_state, stratum.keeps_indexes) == (state, indexes)


def test_carried_key_and_small_edges_decompose() -> None:
    stratum = only(programs.multi_source())
    assert stratum.relations[0].distribute_by == (0,)
    assert [i.placement for i in stratum.static_indexes] == ["everywhere"]


@pytest.mark.parametrize("size", [None, 2_000, 1 << 63, (1 << 63) ** 20])
def test_large_edges_do_not_decompose(size: int | None) -> None:
    plan = compile_program(programs.multi_source(size), broadcast_max_bytes=1_500)
    [stratum] = plan.strata
    assert stratum.relations[0].distribute_by == (1,)
    assert [(i.placement, i.partition_by) for i in stratum.static_indexes] == [("partitioned", (0,))]
    assert any("not decomposed" in r for r in plan.reasons)


def test_closures_with_a_carried_key_are_bitmaps() -> None:
    assert only(programs.closure_left()).bitmap == Bitmap("path", 1, (0,))
    assert only(programs.closure_right()).bitmap == Bitmap("path", 0, (0,))
    assert only(programs.closure_left(None)).bitmap is None
    assert only(programs.closure_left(max_iterations=3)).bitmap is None
    assert only(programs.closure_non_linear()).bitmap is None
    assert only(programs.same_generation()).bitmap is None
    assert only(programs.multi_source()).bitmap is None


def test_non_linear_closure_joins_no_pair_twice() -> None:
    stratum = only(programs.closure_non_linear())
    assert stratum.relations[0].distribute_by == (1,)
    assert stratum.relation_indexes == (
        RelationIndex(0, "path", (0,), "partitioned", copy=True),
        RelationIndex(1, "path", (1,), "partitioned", copy=False),
    )
    first, second = stratum.rules
    assert (first.driver.index, second.driver.index) == (None, 0)
    versions = [s.version for r in stratum.rules for s in r.steps if isinstance(s, Probe)]
    assert versions == ["old", "full"]
    assert not stratum.in_place


def test_same_generation_keeps_the_second_side_everywhere() -> None:
    stratum = only(programs.same_generation())
    assert [(i.placement, i.keys) for i in stratum.static_indexes] == [("partitioned", (1,)), ("everywhere", (1,))]
    assert stratum.rules[0].target.kind == "computed"


@pytest.mark.parametrize(
    ("rule", "is_warned"),
    [
        ("n(x + 1, e) :- n(x, e).", True),
        ("n(x + 1, e) :- n(x, e), x < e.", False),
        ("n(x + 1, e + 1) :- n(x, e), x < e.", True),
        ("n(x + 1, e) :- n(x, e), edge(x, w, e), x < w.", False),
        ("n(x, e) :- one(e), x = range(0, 1000000).", False),
        ("n(x + y, e) :- edge(x, _, e), edge(y, _, e).", False),
        ("n(x + e, e) :- m(x, e). m(x * 2, e) :- edge(x, e, _).", False),
        ("n(x + 1, e) :- m(x, e). m(x, e) :- n(x, e).", True),
        ("n(min(5, max(1, x + w)), e) :- n(x, e), edge(_, w, e).", False),
        ("n(min(5, x + w), e) :- n(x, e), edge(_, w, e).", True),
        ("n(min(5, max(1, x)) * 2 + 1, e) :- n(x, e).", False),
        ("n(max(1, x + 2) - 1, e) :- n(x, e).", True),
        ("n(x, e + w) :- n(y, e), edge(x, w, y), x = y + 1.", False),
        ("n(y + 1, e + w) :- n(y, e), edge(x, w, y), x = y + 1.", False),
        ("n(x, e + w) :- n(y, e), edge(x, w, y), x = y - 1.", False),
        ("n(x, e + w) :- n(y, e), edge(x, w, y), x = y + 0.", True),
        ("n(x, e + w) :- n(y, e), edge(x, w, y).", True),
        ("n(x, e + w) :- n(y, e), edge(x, w, y), x = y + 1. n(x, e + w) :- n(y, e), edge(x, w, y), x = y - 1.", True),
        ("n(x, e + w) :- n(y, e), edge(x, w, y), x = y + 1. n(x, e) :- n(x, e), edge(x, _, _).", True),
        ("n(x, e + w) :- n(y, e), n(z, _), edge(x, w, y), x = y + 1, x = z + 2.", False),
        ("n(x, e + w) :- n(y, e), n(z, w), x = y + 1, x = z + 2.", True),
    ],
)
def test_keys_that_grow_are_bounded_by_what_stays(rule: str, *, is_warned: bool) -> None:
    given = {"one": (("e", "bigint"),), "edge": (("x", "bigint"), ("w", "bigint"), ("y", "bigint"))}
    plan = compile_program(resolve_text(parse(f"n(1, e) :- one(e). {rule}"), given).program)
    assert any("has no bound" in r for r in plan.reasons) == is_warned


@pytest.mark.parametrize(
    ("value", "climbs"),
    [
        ("min(5, max(1, d + w))", False),
        ("min(5, d + w)", True),
        ("min(5, max(1, d)) + 1", False),
        ("d + w", True),
    ],
)
def test_values_in_a_small_range_do_not_climb(value: str, *, climbs: bool) -> None:
    given = {"edge": (("x", "bigint"), ("w", "bigint"), ("y", "bigint"))}
    text = f"v(1, 3). v(y, $MIN({value})) :- v(x, d), edge(x, w, y)."
    [stratum] = compile_program(resolve_text(parse(text), given).program).strata
    assert stratum.cycle_check == climbs


def test_what_stands_before_a_string_keeps_the_order_and_what_stands_after_it_does_not() -> None:
    given = {"start": (("x", "string"),), "leg": (("x", "string"), ("y", "string"))}

    def program(value: str) -> Program:
        text = f"first(x, x) :- start(x). first(y, $MIN({value})) :- first(x, r), leg(x, y)."
        return resolve_text(parse(text), given).program

    assert only(program('cat(y, "<", r)')).relation_class == "lattice"
    with pytest.raises(VerificationError, match=r"with y=c: r=a improves r=ab.* gives ac, worse than abc"):
        compile_program(program("cat(r, y)"))


def test_rules_that_read_other_columns_share_an_index() -> None:
    text = """
        dist(x, d) :- start(x, d).
        dist(y, $MIN(d + w)) :- dist(x, d), edge(x, w, y), edge(x, _, z), z < y.
        dist(y, $MIN(d + 1)) :- dist(x, d), edge(x, _, y), d < 3, !edge(x, 7, _).
    """
    edge = (("x", "bigint"), ("w", "bigint"), ("y", "bigint"))
    stratum = only(resolve_text(parse(text), {"start": edge[:2], "edge": edge}).program)
    shared, sevens = stratum.static_indexes
    assert (shared.keys, shared.payload, sevens.payload) == ((0,), (1, 2), ())
    read = [
        (s.index, s.kind, len([b for b in s.binds if b])) for r in stratum.rules for s in r.steps if s.op == "probe"
    ]
    assert sorted(read) == [(0, "join", 1), (0, "join", 1), (0, "join", 2), (1, "anti", 0)]


def test_a_large_side_that_must_stand_everywhere_is_said() -> None:
    plan = compile_program(programs.same_generation(), broadcast_max_bytes=10)
    reason = "in1 (1,000 bytes) is stored in every task, because no key of the recursion alone looks it up"
    assert reason in plan.reasons


def test_large_second_side_does_not_stand_everywhere_if_the_driver_can_move() -> None:
    """Components over edges that are too large: both directions look up the node, so nothing has to."""
    stratum = only(programs.components(), broadcast_max_bytes=10)
    assert {i.placement for i in stratum.static_indexes} == {"partitioned"}


def test_pagerank_spreads_the_dangling_mass() -> None:
    stratum = only(programs.pagerank(max_iterations=20))
    assert (stratum.relation_class, stratum.max_iterations) == ("accumulating", 20)
    assert stratum.relation_indexes == (RelationIndex(0, "dangling", (), "everywhere", copy=True),)
    along, spread, lost = stratum.rules
    assert (along.target.kind, spread.target.kind, lost.target.kind) == ("resolved", "resolved", "computed")
    assert spread.driver.index == 0
    [product] = spread.steps
    assert isinstance(product, Probe)
    index = stratum.static_indexes[product.index]
    assert (index.keys, index.placement, index.partition_by, product.keys) == ((), "partitioned", (0,), ())
    assert [r.distribute_by for r in stratum.relations] == [(0,), ()]


def test_a_semi_join_after_a_hoisted_cast() -> None:
    stratum = only(programs.allowed_only())
    probes = [s for s in stratum.rules[0].steps if isinstance(s, Probe)]
    assert [(p.kind, p.binds) for p in probes] == [("join", ("dst",)), ("semi", ())]


def test_limits_mean_strict_rounds() -> None:
    for options in ({"max_iterations": 3}, {"tolerance": 0.5}, {"mode": "iterate"}):
        assert not only(programs.shortest_paths(**options)).in_place
    stratum = only(programs.hops(max_iterations=3, on_limit="return"))
    assert (stratum.max_iterations, stratum.on_limit, stratum.in_place) == (3, "return", False)


def test_initial_rows_are_iterated() -> None:
    plan = compile_program(programs.with_initial())
    assert plan.strata[0].relation_class == "iterated"
    assert plan.strata[0].relations[0].initial == 1
    assert any("initial" in r for r in plan.reasons)


def test_a_later_relation_is_a_later_stratum() -> None:
    plan = compile_program(programs.two_strata())
    assert [[r.name for r in s.relations] for s in plan.strata] == [["dist"], ["far", "far_rows"]]
    [lower] = [i for i in plan.inputs if i.relation is not None]
    assert (lower.relation, lower.source) == ("dist", -1)


def test_the_size_that_spark_estimates_for_an_unknown_input_is_unknown() -> None:
    program = programs.same_generation()
    sized = replace(program, inputs=tuple(replace(i, size_bytes=2**63 - 1) for i in program.inputs))
    plan: Plan = compile_program(sized)
    assert "in1(child, par) := source 0  [size unknown]" in show_plan(plan)
    assert any("of unknown size" in reason for reason in plan.reasons)
    assert "9,223,372,036,854" not in show_plan(plan)
    assert "223372036854" not in "".join(plan.reasons).replace(",", "")


def test_every_choice_has_a_reason() -> None:
    plan: Plan = compile_program(programs.closure_left())
    text = "\n".join(plan.reasons)
    for word in ("lattice", "distributed by x", "bitmaps", "without an iteration limit"):
        assert word in text


def test_printed_plan_reads_like_datalog() -> None:
    assert show_plan(compile_program(programs.same_generation())).splitlines()[:6] == [
        "in0(x, y) := source 1",
        "in1(child, par) := source 0  [1,000 bytes]",
        "stratum 1: lattice, in place",
        "  sg(x, y) by x, base in0",
        "  sg(child, child_2) :- Δsg(x, y), in1[par = x](child), in1[par = y](child_2)",
        "    in1 partitioned by par; in1 everywhere; target computed",
    ]


@pytest.mark.parametrize(
    ("rule", "by_target"),
    [
        ("r(y, $SUM(v * s)) :- r(x, v), share(x, s), edge(x, _, y).", True),
        ("r(y, $SUM(v * s)) :- r(x, v), share(x, s), s > 1.0, edge(x, _, y).", True),
        ("r(y, $SUM(v * w)) :- r(x, v), edge(x, w, y).", False),  # an edge has its own value
        ("r(y, $SUM(v * s)) :- r(x, v), edge(x, _, y), share(y, s).", False),  # a lookup by the target comes last
        ("r(y, $SUM(v)) :- r(x, v), share(x, s), edge(x, w, y), w > s.", False),  # some edges are left out
        ("r(y, $MIN(v + s)) :- r(x, v), share(x, s), edge(x, _, y).", False),
    ],
)
def test_rules_that_may_add_up_by_target(rule: str, *, by_target: bool) -> None:
    given = {
        "first": (("x", "bigint"), ("v", "double")),
        "share": (("x", "bigint"), ("s", "double")),
        "edge": (("x", "bigint"), ("w", "double"), ("y", "bigint")),
    }
    first = rule[:9].replace("r(y", "r(x")  # the same aggregate
    text = f"{first}(v)) :- first(x, v). {rule} .limit r(iterations=9)"
    plan = compile_program(resolve_text(parse(text), given).program)
    assert any(r.adds_by_target for r in plan.strata[-1].rules) == by_target
    assert any("writes each sum once, by target" in r for r in plan.reasons) == by_target


def test_copies_follow_between_rounds() -> None:
    text = "price($MIN(p)) :- base(p). price($MIN(min(p, o))) :- price(p), offers(o)."
    given = {"base": [("price", "bigint")], "offers": [("offer", "bigint")]}
    plan = compile_program(resolve_text(parse(text), given).program)
    stratum = plan.strata[-1]
    assert (stratum.relation_indexes[0].copy, stratum.in_place) == (True, False)
    assert "a rule reads a copy, which is updated between rounds" in plan.reasons[-1]


POINTS_TO = """
    .decl new, assign, load, store(v: number, w: number)
    .input new, assign, load, store
    pt(v, o) :- new(v, o).
    pt(v, o) :- assign(v, w), pt(w, o).
    pt(v, o) :- load(v, w), pt(w, p), hpt(p, o).
    hpt(p, o) :- store(v, w), pt(v, p), pt(w, o).
"""


def bit_rows(text: str, size: int = 1000) -> BitRows | None:
    """Return how rows of bits evaluate the last stratum of a text whose inputs have ``size`` bytes each."""
    program = resolve_text(parse(text), {}).program
    sized = replace(program, inputs=tuple(replace(i, size_bytes=size) for i in program.inputs))
    return compile_program(sized).strata[-1].bit_rows


def test_the_edges_of_rows_of_bits() -> None:
    form = bit_rows(POINTS_TO)
    assert form is not None
    assert form.carried == (1, 1, 1)
    flows = {(f.head, f.source, f.reads, f.key, f.origin, f.target) for f in form.flows}
    assert flows == {
        ("pt", "pt_rows", None, None, "row", "row"),
        ("pt", "pt", None, "row", "row", "found"),
        ("pt", "hpt", "pt", "row", "carried", "found"),
        ("hpt", "pt", "pt", "row", "found", "carried"),
    }


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("assign(v, w), pt(w, o)", "assign(v, w), pt(w, o), o > 1"),
        ("assign(v, w), pt(w, o)", "assign(v, w), pt(w, o), !load(v, o)"),
        ("assign(v, w), pt(w, o)", "assign(v, w), pt(w, o), new(v, o)"),
        ("pt(w, p), hpt(p, o)", "pt(w, p), hpt(p, o), assign(p, w)"),
        ("pt(v, p), pt(w, o)", "pt(v, p), pt(w, o), pt(p, o)"),
        ("hpt(p, o) :-", "hpt(o, o) :-"),
        ("hpt(p, o) :-", "hpt(p + 1, o) :-"),
        ("pt(v, o) :- new(v, o).", "pt(v, o) :- new(v, o). pt(v, v) :- pt(v, _)."),
        ("w: number)", "w: float)"),
    ],
)
def test_rules_that_are_no_edges(old: str, new: str) -> None:
    assert bit_rows(POINTS_TO) is not None
    assert bit_rows(POINTS_TO.replace(old, new)) is None


def test_large_inputs_are_not_stored_in_every_task() -> None:
    assert bit_rows(POINTS_TO, size=1 << 40) is None
    plan = compile_program(resolve_text(parse(POINTS_TO), {}).program)
    assert any("the static sides are of unknown size: no rows of bits" in reason for reason in plan.reasons)


def test_many_relations_in_rows_of_bits() -> None:
    """Each of them may carry one of two keys: to try all is 2^24 ways."""
    ring = "\n".join(f"r{(i + 1) % 24}(v, o) :- assign(v, w), r{i}(w, o)." for i in range(24))
    inputs = ".decl assign, load(v: number, w: number)\n.input assign, load\nr0(v, o) :- assign(v, o).\n"
    form = bit_rows(f"{inputs}{ring}\nr5(v, o) :- load(v, w), r6(w, p), r7(p, o).")
    assert form is not None
    assert set(form.carried) == {1}
    assert bit_rows(f"{inputs}{ring}\nr5(o, v) :- load(v, w), r6(w, p), r7(p, o).") is None
