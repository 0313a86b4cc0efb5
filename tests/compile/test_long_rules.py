"""Rules of four to six atoms: their plans mean what the programs mean, in an order that the statistics give."""
# ruff: noqa: S311  (random but repeatable)

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import long_rules
import programs
import pytest
from check_locality import check_locality
from interpret import Row, Sources, run_plan, run_program
from steps import Document, Frame, relation, same

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.plan.plan import Filter, Plan, PlannedRule, Probe
from pyspark_paralagg.program.expr import columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.program import Program

MAKERS = [
    long_rules.flow_analysis,
    long_rules.points_to,
    long_rules.disjoint_groups,
    long_rules.costs,
    long_rules.from_one_source,
    long_rules.two_networks,
]


def rows(rng: random.Random, arity: int, count: int) -> list[Row]:
    """Rows of few values, so that joins of six atoms still find something; some nulls, some twice."""
    values = 2 if arity > 3 else 3
    found = [tuple(None if rng.random() < 0.03 else rng.randrange(values) for _ in range(arity)) for _ in range(count)]
    return found + found[:1]


def sources(program: Program, rng: random.Random) -> Sources:
    bases = {r.base for r in program.relations}
    return {i.source: rows(rng, len(i.columns), 2 if i.id in bases else 4) for i in program.inputs}


@pytest.mark.parametrize("tasks", [1, 2, 3])
@pytest.mark.parametrize("make", MAKERS)
def test_long_rules_mean_what_they_say(make: Callable[[], Program], tasks: int) -> None:
    program = make()
    plan = compile_program(program)
    assert check_locality(plan) == []
    moved = 0
    for seed in range(4):
        data = sources(program, random.Random(seed))
        expected = run_program(program, data)
        assert run_plan(plan, data, tasks) == expected, seed
        moved += expected != run_program(program, data, rounds=0)
    assert moved, "nothing was derived, so nothing was compared"


@pytest.mark.parametrize("make", MAKERS)
def test_every_order_by_hand_means_the_same(make: Callable[[], Program]) -> None:
    program = make()
    data = sources(program, random.Random(11))
    expected = run_program(program, data)
    for seed in range(3):
        rng = random.Random(seed)
        orders = [rng.sample(range(len(r.body)), len(r.body)) for r in program.rules]
        by_hand = replace(
            program, rules=tuple(replace(r, order=tuple(o)) for r, o in zip(program.rules, orders, strict=True))
        )
        plan = compile_program(by_hand)
        assert check_locality(plan) == []
        assert run_plan(plan, data, 2) == expected, orders


@pytest.mark.parametrize(
    "make", [*MAKERS, programs.same_generation, programs.parents, programs.pagerank, programs.allowed_only]
)
def test_no_step_keeps_a_column_that_no_later_one_reads(make: Callable[[], Program]) -> None:
    for stratum in compile_program(make()).strata:
        for rule in stratum.rules:
            bound = [(rule.driver.binds, -1), *((s.binds, n) for n, s in enumerate(rule.steps) if isinstance(s, Probe))]
            for binds, n in bound:
                assert {b for b in binds if b is not None} <= read_after(rule, n), rule.text
        for index in stratum.static_indexes:
            probes = [s for r in stratum.rules for s in r.steps if isinstance(s, Probe) and not s.recursive]
            read = {p for s in probes if s.index == index.id for p, b in zip(index.payload, s.binds, strict=True) if b}
            assert set(index.payload) == read


def read_after(rule: PlannedRule, step: int) -> set[str]:
    """The variables that steps after this one, or the head, read."""
    exprs = list(rule.emit)
    for s in rule.steps[step + 1 :]:
        exprs += [s.condition] if isinstance(s, Filter) else s.keys
    return {name for e in exprs for name in columns(e)}


def order(plan: Plan, rule: int = 0) -> list[str]:
    """Source columns that name the inputs of a rule's probes, in the order in which they are joined."""
    [stratum] = plan.strata
    names = {i.id: i.columns[-1].name for i in plan.inputs}
    probes = [s for s in stratum.rules[rule].steps if isinstance(s, Probe)]
    return [names[stratum.static_indexes[p.index].input] for p in probes]


def star(small: int | None, large: int | None, *, chained: bool = False) -> Program:
    """``reach(z) :- reach(n), p(n, .., y), q(n, .., z)``: p is written first."""
    doc = Document(relation("reach", "n bigint"))
    r = doc.reference("reach")
    p, q = doc.source("p", large, a="bigint", y="bigint"), doc.source("q", small, b="bigint", z="bigint")
    first = r.join(p, same(p["a"], r["n"])).join(q, same(q["b"], p["y"] if chained else r["n"]))
    return doc.program(reach=both_read(first, p, q))


def both_read(frame: Frame, p: Frame, q: Frame) -> Frame:
    less = {"fn": "LessThan", "args": [p["y"], q["z"]], "type": "boolean", "nullable": True, "handle": 0}
    return frame.where({**less, "deterministic": True, "codegen": True}).select(n=q["z"])


def test_the_smaller_input_is_joined_first() -> None:
    plan = compile_program(star(1_000, 1_000_000))
    assert order(plan) == ["z", "y"]
    why = "connected inputs first, then those with fewer matches"
    assert f"step of reach: joined as reach then in2 then in1 ({why})" in plan.reasons


@pytest.mark.parametrize(("small", "large"), [(None, None), (1_000, 1_000), (1_000, 1_050), (None, 1_000)])
def test_the_written_order_decides_where_sizes_do_not(small: int | None, large: int | None) -> None:
    plan = compile_program(star(small, large))
    assert order(plan) == ["y", "z"]
    assert not any("joined as" in r for r in plan.reasons)


def test_what_is_connected_comes_before_what_is_small() -> None:
    assert order(compile_program(star(10, 1_000_000, chained=True))) == ["y", "z"]


def test_the_users_order_wins() -> None:
    program = star(1_000, 1_000_000)
    by_hand = replace(program, rules=tuple(replace(r, order=(0, 1, 2)) for r in program.rules))
    assert order(compile_program(by_hand)) == ["y", "z"]
    backwards = replace(program, rules=tuple(replace(r, order=(2, 1)) for r in star(None, None).rules))
    plan = compile_program(backwards)
    assert order(plan) == ["z", "y"]
    assert "step of reach: joined as reach then in2 then in1 (in the user's order)" in plan.reasons


def test_a_group_of_its_own_is_entered_by_its_smaller_side() -> None:
    assert order(compile_program(long_rules.disjoint_groups())) == ["x", "c", "y"]


def test_a_constant_is_carried_to_where_rows_are_loaded() -> None:
    plan = compile_program(long_rules.from_one_source())
    [edges] = [i for i in plan.inputs if len(i.columns) == 3]
    assert len(edges.filters) == 2
    assert len(edges.exprs) == 2


def test_an_equality_through_a_third_atom_is_a_key() -> None:
    """``live(e)``, written as ``live.e = at.e``, is asked before ``at`` is joined: both equal ``reads.e``."""
    [stratum] = compile_program(long_rules.flow_analysis()).strata
    [rule] = [r for r in stratum.rules if "live" in r.text or r.driver.relation == "store"]
    probes = [s for s in rule.steps if isinstance(s, Probe)]
    assert all(s.keys for s in probes)
    assert not any(isinstance(s, Filter) for s in rule.steps)


@pytest.mark.parametrize("nodes", [2, 17, 64])
def test_non_linear_closure_doubles_its_paths(nodes: int) -> None:
    """The last round finds nothing new; a chain of 2,000 runs in tests/test_closure_of_a_chain.py."""
    program = programs.closure_non_linear()
    chain: list[Row] = [(n, n + 1) for n in range(nodes)]
    doublings = (nodes - 1).bit_length()
    plan = compile_program(program)
    assert len(run_plan(plan, {0: chain}, 1, rounds=doublings)["path"]) == nodes * (nodes + 1) // 2
    if nodes > 2:
        assert len(run_plan(plan, {0: chain}, 1, rounds=doublings - 1)["path"]) < nodes * (nodes + 1) // 2
