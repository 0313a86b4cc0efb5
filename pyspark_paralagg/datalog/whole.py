"""A text as one Program for engines that run all of its strata themselves.

Rules that need nothing of their stratum belong to the base of its relations: there from the first round on, and in every
round. Without a limit nobody can tell when rows of a lattice enter; else such rules become a relation below, ``r@base``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.stratify import needs_of, strongly_connected
from pyspark_paralagg.program.expr import Col
from pyspark_paralagg.program.program import Input, Program, Relation

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Rule


def whole_program(program: Program) -> Program:
    """``program`` with the rules without recursion of limited or summed relations in strata of their own."""
    for names in strongly_connected(needs_of(program)):
        is_limited = program.limit(names)[::2] != (None, None)
        for name in names:
            static = [r for r in program.rules if r.head == name and not _recurses(r, names)]
            recursive = any(r.head == name and _recurses(r, names) for r in program.rules)
            of = program.relation(name)
            if static and recursive and (is_limited or not of.is_idempotent):
                program = _split(program, of, static)
    return program


def _recurses(rule: Rule, names: tuple[str, ...]) -> bool:
    return any(a.relation in names for a in rule.body if a.relation is not None)


def _split(program: Program, of: Relation, static: list[Rule]) -> Program:
    """What is added up stays added up below; every other column is a key there, so that all rows arrive."""
    added = tuple(d for d in of.dependents if not d.is_idempotent)
    sums = {d.column.name for d in added}
    keys = tuple(c for c in of.supplied if c.name not in sums)
    order = [n for n, c in enumerate(of.supplied) if c.name not in sums]
    order += [n for n, c in enumerate(of.supplied) if c.name in sums]
    given = program.input(of.base)
    below = replace(given, id=max(i.id for i in program.inputs) + 1, exprs=tuple(given.exprs[n] for n in order))
    base = Relation(f"{of.name}@base", keys, added, below.id)
    read = {c.name: Col(c.name, c.type, c.nullable) for c in base.columns}
    above = Input(below.id + 1, -1, base.columns, tuple(read[c.name] for c in of.supplied), relation=base.name)
    moved = {id(r): replace(r, head=base.name, exprs=tuple(r.exprs[n] for n in order)) for r in static}
    return replace(
        program,
        relations=(*(replace(r, base=above.id) if r is of else r for r in program.relations), base),
        inputs=(*program.inputs, below, above),
        rules=tuple(moved.get(id(r), r) for r in program.rules),
    )
