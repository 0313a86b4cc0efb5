"""The example of control-flow analysis: its rows equal those of an analyser that knows terms and no Datalog.

The analyser follows a program the way a machine would, again and again, with what it has found so far, until a walk
finds nothing new. Counts of small cases are written down besides.
"""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from datalog.interpreter import evaluate
from rows import frame, read_table, rows_of

import pyspark_paralagg as ra
from examples.kcfa import Function, Reference, Term, facts_of, program, worst_case
from pyspark_paralagg.datalog.parse.parse import parse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIXTURE = Path(__file__).parent / "fixtures" / "kcfa"
RECURSIVE = ("reached", "value", "bound")
TYPES = {"start": "e bigint", "reference": "e bigint, x string", "call": "e bigint, f bigint, a bigint"}
TYPES["function"] = "e bigint, x string, body bigint"

Rows = set[tuple[Any, ...]]


class Walk:
    """Walks over a term with what former walks have found, until one of them finds nothing."""

    def __init__(self, term: Term, depth: int) -> None:
        self.depth = depth
        self.terms: dict[int, Term] = {}
        self.parts: dict[int, list[int]] = {}
        self.found: dict[tuple[int, tuple[int, ...]], Rows] = defaultdict(set)
        self.heap: dict[tuple[str, tuple[int, ...]], Rows] = defaultdict(set)
        whole, size = self.index(term), None
        while size != (size := self.size()):
            self.seen: set[tuple[int, tuple[int, ...]]] = set()
            self.values(whole, (0,) * depth)

    def index(self, term: Term) -> int:
        own = len(self.terms) + 1
        self.terms[own] = term
        self.parts[own] = [self.index(part) for part in parts_of(term)]
        return own

    def size(self) -> tuple[int, ...]:
        return len(self.found), sum(map(len, self.found.values())), sum(map(len, self.heap.values()))

    def values(self, e: int, context: tuple[int, ...]) -> Rows:
        values = self.found[e, context]
        if (e, context) in self.seen:
            return values
        self.seen.add((e, context))
        term = self.terms[e]
        if isinstance(term, Reference):
            values |= self.heap[term.name, context]
        elif isinstance(term, Function):
            values.add((e, context))
        else:
            functions, arguments = (set(self.values(part, context)) for part in self.parts[e])
            for function, home in functions if arguments else ():
                values |= self.applied(function, home, arguments, (e, *context)[: self.depth])
        return values

    def applied(self, function: int, home: tuple[int, ...], arguments: Rows, inside: tuple[int, ...]) -> Rows:
        term = self.terms[function]
        assert isinstance(term, Function)
        self.heap[term.parameter, inside] |= arguments
        for x in free(term):
            self.heap[x, inside] |= self.heap[x, home]
        return self.values(self.parts[function][0], inside)

    def rows(self) -> dict[str, Rows]:
        return {
            "free": {(x, e) for e, term in self.terms.items() for x in free(term)},
            "reached": {(e, *context) for e, context in self.seen},
            "value": {(e, *c, v, *d) for (e, c), values in self.found.items() for v, d in values},
            "bound": {(x, *c, v, *d) for (x, c), values in self.heap.items() for v, d in values},
        }


def parts_of(term: Term) -> tuple[Term, ...]:
    if isinstance(term, Reference):
        return ()
    return (term.body,) if isinstance(term, Function) else (term.function, term.argument)


def free(term: Term) -> set[str]:
    if isinstance(term, Reference):
        return {term.name}
    inner = set().union(*map(free, parts_of(term)))
    return inner - {term.parameter} if isinstance(term, Function) else inner


def analyse(term: Term, depth: int) -> dict[str, Rows]:
    """What ``program(depth)`` says of ``term``."""
    return Walk(term, depth).rows()


# Levels and depth: how many are reached, values, bound.
COUNTS = {
    (1, 0): (12, 12, 4),
    (1, 1): (13, 13, 5),
    (2, 0): (23, 23, 8),
    (2, 1): (27, 29, 16),
    (2, 2): (32, 33, 17),
    (3, 2): (51, 53, 35),
}


@pytest.mark.parametrize(("levels", "depth"), COUNTS)
def test_counts_of_small_cases(levels: int, depth: int) -> None:
    found = analyse(worst_case(levels), depth)
    assert tuple(len(found[name]) for name in RECURSIVE) == COUNTS[levels, depth]


@pytest.mark.parametrize(("levels", "depth"), [(1, 0), (1, 2), (2, 0)])
def test_rules_say_what_the_walk_says(levels: int, depth: int) -> None:
    term = worst_case(levels)
    facts: dict[str, Rows] = {name: set(rows) for name, rows in facts_of(term).items()}
    found = evaluate(parse(program(depth)), facts)
    expected = analyse(term, depth)
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize(("levels", "depth"), [(5, 0), (4, 3)])
def test_analysis_on_spark_equals_the_walk(spark: SparkSession, levels: int, depth: int) -> None:
    term = worst_case(levels)
    frames = {name: frame(spark, TYPES[name], rows) for name, rows in facts_of(term).items()}
    found = ra.datalog(spark, program(depth), frames, backend="spark")
    for name, rows in analyse(term, depth).items():
        assert set(rows_of(found[name])) == rows, name


def test_fixture_is_the_example_with_two_levels_and_one_call() -> None:
    assert (FIXTURE / "program.dl").read_text() == program(1)
    for name, rows in facts_of(worst_case(2)).items():
        assert read_table(FIXTURE / f"{name}.tsv")[1] == rows


def test_bodies_have_up_to_six_atoms() -> None:
    bodies = [rule.split(":-")[1] for rule in program(2).split(".\n") if ":-" in rule]
    assert sorted(len(re.findall(r"\w+\(", body)) for body in bodies)[-3:] == [5, 5, 6]
