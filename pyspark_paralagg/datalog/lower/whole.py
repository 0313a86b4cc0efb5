"""Move rules without recursion to the base of their relations, for engines that run all strata of a Program.

Rows of a rule that reads nothing of its stratum belong to the base: they exist from the first iteration on, in every
iteration. A rule that reads a single input becomes the base if the relation has no other. Other such rules stay, since
the result does not depend on when their rows enter. The exceptions are relations with a limit or an aggregate that is
not idempotent: there the rules move to a new relation below, ``r@base``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.scope import inlined
from pyspark_paralagg.compile.rewrite.stratify import needs_of, strongly_connected
from pyspark_paralagg.program.expr import Col
from pyspark_paralagg.program.names import added_name
from pyspark_paralagg.program.program import Input, Program, Relation

if TYPE_CHECKING:
    from collections.abc import Container

    from pyspark_paralagg.program.program import Rule


def whole_program(program: Program, empty: Container[int] = ()) -> Program:
    """Return ``program`` with its non-recursive rules in the bases; ``empty`` has the sources without rows."""
    for r in program.relations:
        program = _with_base(program, r, empty)
    for names in strongly_connected(needs_of(program)):
        is_limited = program.limit(names)[::2] != (None, None) or program.row_limit(names) is not None
        for name in names:
            static = [r for r in program.rules if r.head == name and not _recurses(r, names)]
            recursive = any(r.head == name and _recurses(r, names) for r in program.rules)
            relation = program.relation(name)
            if static and recursive and (is_limited or not relation.is_idempotent):
                program = _split_base(program, relation, static)
    return program


def _with_base(program: Program, relation: Relation, empty: Container[int]) -> Program:
    """Make the first rule of ``relation`` that reads one input only its base, if the base has no rows."""
    base = program.input(relation.base)
    if base.relation is not None or base.source not in empty:
        return program
    for rule in program.rules:
        if rule.head == relation.name and len(rule.body) == 1 and rule.body[0].input is not None:
            source = program.input(rule.body[0].input)
            inner = {v: source.exprs[n] for n, v in enumerate(rule.body[0].variables) if v is not None}
            loaded = replace(
                source,
                id=max(i.id for i in program.inputs) + 1,
                exprs=tuple(inlined(e, inner) for e in rule.exprs),
                filters=(*source.filters, *(inlined(c, inner) for c in rule.conditions)),
            )
            return replace(
                program,
                relations=tuple(replace(r, base=loaded.id) if r is relation else r for r in program.relations),
                inputs=(*program.inputs, loaded),
                rules=tuple(r for r in program.rules if r is not rule),
            )
    return program


def _recurses(rule: Rule, names: tuple[str, ...]) -> bool:
    return any(a.relation in names for a in rule.body if a.relation is not None)


def _split_base(program: Program, relation: Relation, static: list[Rule]) -> Program:
    """Move the ``static`` rules to a relation below: its keys are all columns but the sums, so it keeps all rows."""
    added = tuple(d for d in relation.dependents if not d.is_idempotent)
    sums = {d.column.name for d in added}
    keys = tuple(c for c in relation.supplied if c.name not in sums)
    order = [n for n, c in enumerate(relation.supplied) if c.name not in sums]
    order += [n for n, c in enumerate(relation.supplied) if c.name in sums]
    base_input = program.input(relation.base)
    exprs = tuple(base_input.exprs[n] for n in order)
    below = replace(base_input, id=max(i.id for i in program.inputs) + 1, exprs=exprs)
    base = Relation(added_name(relation.name, "base"), keys, added, below.id)
    columns = {c.name: Col(c.name, c.type, c.nullable) for c in base.columns}
    above = Input(below.id + 1, -1, base.columns, tuple(columns[c.name] for c in relation.supplied), relation=base.name)
    moved = {id(r): replace(r, head=base.name, exprs=tuple(r.exprs[n] for n in order)) for r in static}
    return replace(
        program,
        relations=(*(replace(r, base=above.id) if r is relation else r for r in program.relations), base),
        inputs=(*program.inputs, below, above),
        rules=tuple(moved.get(id(r), r) for r in program.rules),
    )
