"""What is known of a rule's variables: the facts of its inputs, of the relations that it reads, and of its filters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.facts import NOT_NEGATIVE, Facts, Known, input_facts
from pyspark_paralagg.compile.prove.monotone import Monotone
from pyspark_paralagg.compile.rewrite.scope import variables

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule


def facts_of(rule: Rule, program: Program, known: Known | None = None) -> Facts:
    """Return what is known of a rule's variables, its own filters included.

    An assumption holds for columns of the user's DataFrames, where it is guarded at load; ``known`` has the ranges of
    the recursion's own columns.
    """
    own = known or Known()
    facts, present = Facts(setting=program.setting), set()
    systems: dict[int, Monotone] = {}
    for name, v in variables(rule, program).items():
        source = rule.body[v.atom].input
        if source is not None:
            of = program.input(source)
            if source not in systems:
                systems[source] = Monotone({}, input_facts(of, program, own, assumes=True))
            value = systems[source].behaviour(of.exprs[v.position])
            found, is_nullable = value.range, value.is_nullable
        else:
            key = (str(v.relation), v.column.name)
            found, is_nullable = own.ranges.get(key), key not in own.present
            if v.dependent is not None and v.dependent.definition.is_counted:
                found = NOT_NEGATIVE if found is None else found.intersect(NOT_NEGATIVE)
                is_nullable = False
        present |= set() if is_nullable else {name}
        if found is not None:
            facts = facts.with_range(name, found)
    facts = replace(facts, present=frozenset(present))
    for condition in rule.conditions:
        facts = facts.given(condition)
    return facts
