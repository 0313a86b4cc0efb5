"""Build the recursion for one value of its carried keys: a relation without them, whose rows fit plain arrays.

    dist(s, y, min d + w) :- dist(s, x, d), edges(x, y, w)      for each s:  dist(y, min d + w) :- dist(x, d),
    edges(x, y, w)

Correct only if every rule copies the carried keys and reads them nowhere else. Hashing pairs instead costs 3 to 30
times more if few values lead to many rows (docs/architecture.md, "The engine without Spark").
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import columns

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Atom, Program, Relation, Rule


def without_carried(program: Program, relation: Relation, carried: tuple[int, ...]) -> Program | None:
    """Return ``program`` reduced to ``relation`` without its carried keys; None if a rule reads them."""
    rules = []
    for rule in program.rules:
        if rule.head != relation.name:
            continue
        stripped = _rule(rule, relation, carried)
        if stripped is None:
            return None
        rules.append(stripped)
    base = program.input(relation.base)
    reduced_base = replace(
        base,
        id=max(i.id for i in program.inputs) + 1,
        exprs=tuple(e for p, e in enumerate(base.exprs) if p not in carried),
    )
    reduced = replace(
        relation,
        keys=tuple(k for p, k in enumerate(relation.keys) if p not in carried),
        base=reduced_base.id,
        initial=None,
    )
    return replace(
        program,
        relations=(reduced,),
        inputs=(*program.inputs, reduced_base),
        rules=tuple(rules),
        strata=((relation.name,),),
        classes=tuple(c for c in program.classes if c[0] == relation.name),
    )


def _rule(rule: Rule, relation: Relation, carried: tuple[int, ...]) -> Rule | None:
    recursive_atoms = [a for a in rule.body if a.relation == relation.name]
    names = {a.variables[p] for a in recursive_atoms for p in carried}
    kept = tuple(e for p, e in enumerate(rule.exprs) if p not in carried)
    others = {v for a in rule.body if a.relation != relation.name for v in a.variables}
    if len(recursive_atoms) != 1 or any(columns(e) & names for e in (*kept, *rule.conditions)) or others & names:
        return None
    return replace(rule, exprs=kept, body=tuple(_atom(a, relation, carried) for a in rule.body))


def _atom(atom: Atom, relation: Relation, carried: tuple[int, ...]) -> Atom:
    if atom.relation != relation.name:
        return atom
    return replace(atom, variables=tuple(v for p, v in enumerate(atom.variables) if p not in carried))
