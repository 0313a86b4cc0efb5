"""A Plan on 1, 2 and 7 simulated tasks gives what the Program means, and every probe is local."""
# ruff: noqa: ANN401, S311  (rows of any type, random but repeatable)

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import programs
import pytest
from check_locality import check_locality
from interpret import Sources, run_plan, run_program

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.program.assumption import parse_assumptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.program import Program

NODES = 7


def edges(rng: random.Random, *, acyclic: bool = False, columns: int = 0) -> list[tuple[Any, ...]]:
    """Some nulls among the ends, some edges twice, weights from 1."""
    out = []
    for _ in range(11):
        a, b = rng.randrange(NODES), rng.randrange(NODES)
        if acyclic:
            a, b = min(a, b), max(a, b)
            if a == b:
                continue
        ends = [None if rng.random() < 0.05 else n for n in (a, b)]
        out.append((*ends, *(rng.randint(1, 4) for _ in range(columns))))
    return out + out[:2]


def one(n: int, *rest: Any) -> list[tuple[Any, ...]]:
    return [(n, *rest), (0, *rest), (0, *rest)]


def ranks(rng: random.Random) -> list[list[tuple[Any, ...]]]:
    links = [(a, b) for a, b in edges(rng) if a is not None and b is not None and a > 1]
    degree = [(a, b, sum(x == a for x, _ in links)) for a, b in links]
    nodes = [(n, 0.125) for n in range(NODES)]
    sinks = [(n,) for n in range(NODES) if n not in {a for a, _ in links}]
    return [degree, nodes, sinks, [(n, 0.25) for n in range(NODES)], [(0.0,)]]


CASES: dict[str, tuple[Callable[[], Program], Callable[[random.Random], list[list[tuple[Any, ...]]]]]] = {
    "shortest paths": (programs.shortest_paths, lambda r: [edges(r, columns=1), one(3, 0.0)]),
    "shortest paths, large edges": (
        lambda: programs.shortest_paths(None),
        lambda r: [edges(r, columns=1), one(3, 0.0)],
    ),
    "multi source": (
        programs.multi_source,
        lambda r: [edges(r, columns=1), [(1, 1, 0.0), (5, 5, 0.0), (None, 2, 0.0)]],
    ),
    "multi source, large edges": (
        lambda: programs.multi_source(None),
        lambda r: [edges(r, columns=1), [(1, 1, 0.0), (5, 5, 0.0)]],
    ),
    "widest path": (programs.widest_path, lambda r: [edges(r, columns=1), one(3, 100.0)]),
    "components": (programs.components, lambda r: [edges(r), [(n, n) for n in range(NODES)]]),
    "bill of materials": (
        programs.bill_of_materials,
        lambda r: [edges(r, acyclic=True, columns=1), [(0, 0, 1), (1, 1, 2), (0, 1, 1)]],
    ),
    "path counts": (programs.path_counts, lambda r: [edges(r, acyclic=True), one(1, 1)]),
    "closure, left": (programs.closure_left, lambda r: [edges(r), edges(r)[:4]]),
    "closure, left, large edges": (lambda: programs.closure_left(None), lambda r: [edges(r), edges(r)[:4]]),
    "closure, right": (programs.closure_right, lambda r: [edges(r), edges(r)[:4]]),
    "closure, non-linear": (programs.closure_non_linear, lambda r: [edges(r)]),
    "all pairs": (programs.all_pairs, lambda r: [edges(r, columns=1)]),
    "same generation": (programs.same_generation, lambda r: [edges(r), [(0, 0), (1, 2)]]),
    "parents": (programs.parents, lambda r: [edges(r, columns=1), one(3, 0.0, None)]),
    "labels": (programs.labels, lambda r: [edges(r, columns=1), [(1, 0, 7), (2, 0, 8)]]),
    "allowed only": (programs.allowed_only, lambda r: [edges(r), [(n,) for n in range(5)], one(3)]),
    "hops": (programs.hops, lambda r: [edges(r), one(3, 0)]),
    "hops, one application": (
        lambda: programs.hops(max_iterations=1, on_limit="return"),
        lambda r: [edges(r), one(3, 0)],
    ),
    "paths through three atoms": (programs.three_atoms, lambda r: [edges(r)[:6]]),
    "most probable": (
        lambda: programs.most_probable(assume=parse_assumptions("p >= 0")),
        lambda r: [[(a, b, w / 4) for a, b, w in edges(r, columns=1)], one(3, 1.0)],
    ),
    "most probable, iterated": (
        lambda: programs.most_probable(mode="iterate"),
        lambda r: [[(a, b, w / 4) for a, b, w in edges(r, columns=1)], one(3, 1.0)],
    ),
    "two strata": (programs.two_strata, lambda r: [[(*e[:2], 4) for e in edges(r)], [(3,)], one(1, 0), [(100, 1)]]),
    "pagerank, 5 rounds": (lambda: programs.pagerank(max_iterations=5, on_limit="return"), ranks),
    "pagerank, iterated": (
        lambda: programs.pagerank(max_iterations=5, on_limit="return", mode="iterate"),
        ranks,
    ),
    "initial rows": (programs.with_initial, lambda r: [edges(r, columns=1), one(1, 0.5), one(2, 1.0)]),
    "static branch": (programs.static_branch, lambda r: [edges(r, columns=1), [(2, 1), (7, 0)], one(3, 0)]),
    "static branch of a sum": (
        programs.static_sum_branch,
        lambda r: [edges(r, acyclic=True), [(2, 1), (2, 5), (7, 1)], one(3, 1)],
    ),
}


@pytest.mark.parametrize("tasks", [1, 2, 7])
@pytest.mark.parametrize("name", CASES)
def test_plan_means_what_the_program_means(name: str, tasks: int) -> None:
    make, data = CASES[name]
    program = make()
    plan = compile_program(program)
    assert check_locality(plan) == []
    rounds = program.max_iterations or 100
    for seed in range(4):
        sources: Sources = dict(enumerate(data(random.Random(seed))))
        expected = run_program(program, sources, rounds)
        found = run_plan(plan, sources, tasks)
        for r in program.relations:
            assert found[r.name].keys() == expected[r.name].keys(), (r.name, seed)
            for key, values in expected[r.name].items():
                assert found[r.name][key] == pytest.approx(values, nan_ok=True), (r.name, key, seed)


def test_a_probe_in_the_wrong_place_is_noticed() -> None:
    plan = compile_program(programs.shortest_paths())
    [stratum] = plan.strata
    moved = replace(stratum.static_indexes[0], partition_by=(1,))
    broken = replace(plan, strata=(replace(stratum, static_indexes=(moved,)),))
    assert len(check_locality(broken)) == 1
