"""Drop the columns that a rule never reads from its atoms and its inputs.

    reach(y) :- reach(x, h), in1(a, y, w), x = a
    reach(y) :- reach(x, _), in2(a, y), x = a                          in2 := in1 without w

Rows are bags: an input keeps its number of rows without a column, so sums keep their multiplicity.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.simplify import with_input
from pyspark_paralagg.program.expr import columns

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program


def prune(program: Program) -> Program:
    """Return the program whose inputs have only columns that a rule reads; atoms of relations bind None instead."""
    rules = []
    for rule in program.rules:
        read = {v for e in (*rule.exprs, *rule.conditions) for v in columns(e)}
        body = []
        for atom in rule.body:
            names = tuple(v if v in read else None for v in atom.variables)
            if atom.input is None:
                body.append(replace(atom, variables=names))
                continue
            source = program.input(atom.input)
            kept = [p for p, v in enumerate(names) if v is not None]
            exprs = tuple(source.exprs[p] for p in kept)
            program, input_id = with_input(program, replace(source, exprs=exprs))
            body.append(replace(atom, input=input_id, variables=tuple(names[p] for p in kept)))
        rules.append(replace(rule, body=tuple(body)))
    used = {a.input for r in rules for a in r.body} | {i for r in program.relations for i in (r.base, r.initial)}
    return replace(program, rules=tuple(rules), inputs=tuple(i for i in program.inputs if i.id in used))
