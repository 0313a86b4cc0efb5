"""Collect the facts about a rule's variables from its inputs, the relations that it reads, and its filters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.facts import NOT_NEGATIVE, Facts, Invariants, input_facts
from pyspark_paralagg.compile.prove.monotone import Monotone
from pyspark_paralagg.compile.rewrite.scope import variables

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule


def facts_of(rule: Rule, program: Program, invariants: Invariants | None = None) -> Facts:
    """Return the facts about a rule's variables, its own filters included.

    An assumption holds for columns of the user's DataFrames, guarded at load; ``invariants`` hold for recursive ones.
    """
    invariants = invariants or Invariants()
    facts, present = Facts(setting=program.setting), set()
    systems: dict[int, Monotone] = {}
    for name, v in variables(rule, program).items():
        source = rule.body[v.atom].input
        if source is not None:
            input_read = program.input(source)
            if source not in systems:
                systems[source] = Monotone({}, input_facts(input_read, program, invariants, assumes=True))
            value = systems[source].behaviour(input_read.exprs[v.position])
            range_, is_nullable = value.range, value.is_nullable
        else:
            key = (str(v.relation), v.column.name)
            range_, is_nullable = invariants.ranges.get(key), key not in invariants.present
            if v.dependent is not None and v.dependent.definition.is_counted:
                range_ = NOT_NEGATIVE if range_ is None else range_.intersect(NOT_NEGATIVE)
                is_nullable = False
        present |= set() if is_nullable else {name}
        if range_ is not None:
            facts = facts.with_range(name, range_)
    facts = replace(facts, present=frozenset(present))
    for condition in rule.conditions:
        facts = facts.assuming(condition)
    return facts
