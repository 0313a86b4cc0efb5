"""A text as one Program for engines that run all of its strata themselves.

Rules that need nothing of their stratum belong to the base of its relations: there from the first round on, and in
every round. One that reads a single relation becomes the base where there is no other; for the rest nobody can tell
without a limit when rows of a lattice enter, else such rules become a relation below, ``r@base``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.scope import inlined
from pyspark_paralagg.compile.rewrite.stratify import needs_of, strongly_connected
from pyspark_paralagg.program.expr import Col
from pyspark_paralagg.program.program import Input, Program, Relation

if TYPE_CHECKING:
    from collections.abc import Container

    from pyspark_paralagg.program.program import Rule


def whole_program(program: Program, empty: Container[int] = ()) -> Program:
    """``program`` with rules without recursion where they belong; ``empty`` are the sources that have no rows."""
    for relation in program.relations:
        program = _with_base(program, relation, empty)
    for names in strongly_connected(needs_of(program)):
        is_limited = program.limit(names)[::2] != (None, None)
        for name in names:
            static = [r for r in program.rules if r.head == name and not _recurses(r, names)]
            recursive = any(r.head == name and _recurses(r, names) for r in program.rules)
            of = program.relation(name)
            if static and recursive and (is_limited or not of.is_idempotent):
                program = _split(program, of, static)
    return program


def _with_base(program: Program, of: Relation, empty: Container[int]) -> Program:
    """The first rule of ``of`` that computes its rows from those of one input, as the input that is its base."""
    base = program.input(of.base)
    if base.relation is not None or base.source not in empty:
        return program
    for rule in program.rules:
        if rule.head == of.name and len(rule.body) == 1 and rule.body[0].input is not None:
            read = program.input(rule.body[0].input)
            inner = {v: read.exprs[n] for n, v in enumerate(rule.body[0].variables) if v is not None}
            loaded = replace(
                read,
                id=max(i.id for i in program.inputs) + 1,
                exprs=tuple(inlined(e, inner) for e in rule.exprs),
                filters=(*read.filters, *(inlined(c, inner) for c in rule.conditions)),
            )
            return replace(
                program,
                relations=tuple(replace(r, base=loaded.id) if r is of else r for r in program.relations),
                inputs=(*program.inputs, loaded),
                rules=tuple(r for r in program.rules if r is not rule),
            )
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
