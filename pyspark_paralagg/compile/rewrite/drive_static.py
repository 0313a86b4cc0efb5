"""Give a rule without a recursive atom a driver: a new relation that holds the rows that the rule reads.

    far(x) :- in3(x, d), d > 9          far(x) :- far_rows(x)          far_rows' base: in3(x) where d > 9

The rule's rows are the same in every iteration, so they enter with the first one, as the delta of a relation that never
changes. With one atom the new relation has the head's schema and its rows are aggregated like the head's. With several
atoms it is the set of the columns that the rule reads from the smallest. If the head counts repetition, the relation
needs all columns of an input that is a set.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.order_joins import next_atom
from pyspark_paralagg.compile.rewrite.scope import inlined, variables
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Col, columns
from pyspark_paralagg.program.names import fresh_name
from pyspark_paralagg.program.program import Atom, Column, Input, Program, Relation, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.compile.rewrite.scope import Variable


def drive_static(program: Program) -> Program:
    """Return the program with a recursive atom in every rule; a new relation joins the stratum of its rule's head."""
    for n, rule in enumerate(program.rules):
        if any(a.relation is not None for a in rule.body):
            continue
        source_id = max(i.id for i in program.inputs) + 1
        name = _fresh(f"{rule.head}_rows", program)
        if len(rule.body) == 1:
            relation, source, driven = _from_one_atom(program, rule, name, source_id)
        else:
            relation, source, driven = _from_several_atoms(program, rule, name, source_id)
        program = replace(
            program,
            relations=(*program.relations, relation),
            inputs=(*program.inputs, source),
            rules=(*program.rules[:n], driven, *program.rules[n + 1 :]),
            strata=tuple((*s, name) if rule.head in s else s for s in program.strata),
            notes=(
                *program.notes,
                f"{rule.place}: reads no recursive relation; its rows are added in the first iteration",
            ),
        )
    return program


def _fresh(stem: str, program: Program) -> str:
    return fresh_name(stem, {r.name for r in program.relations})


def _from_one_atom(program: Program, rule: Rule, name: str, source_id: int) -> tuple[Relation, Input, Rule]:
    """Compute the rule where its input is loaded; the rule then copies the rows."""
    source = program.input(rule.body[0].input or 0)
    names = rule.body[0].variables
    inner = {v: source.exprs[p] for p, v in enumerate(names) if v is not None}
    head = program.relation(rule.head)
    loaded = replace(
        source,
        id=source_id,
        exprs=tuple(inlined(e, inner) for e in rule.exprs),
        filters=(*source.filters, *(inlined(c, inner) for c in rule.conditions)),
    )
    plain = tuple(Col(c.name, c.type, c.nullable) for c in head.columns)
    atom = Atom(tuple(c.name for c in plain), relation=name)
    return (
        Relation(name, head.keys, head.dependents, source_id),
        loaded,
        replace(rule, exprs=plain, body=(atom,), conditions=()),
    )


def _from_several_atoms(program: Program, rule: Rule, name: str, source_id: int) -> tuple[Relation, Input, Rule]:
    """Make the columns that the rule reads from its smallest atom keys of the driver; the other atoms are looked up."""
    counts_repetition = not program.relation(rule.head).is_idempotent
    joins = [n for n, a in enumerate(rule.body) if a.kind == "join"]
    if counts_repetition:
        joins = [n for n in joins if _is_set(program.input(rule.body[n].input or 0))]
    if not joins:
        raise UnsupportedError(
            "PARALAGG_STEP_UNSUPPORTED",
            "a branch that reads no recursive relation but joins others cannot add to a sum inside the loop",
            value=rule.head,
            place=rule.place,
            hint="add its rows to the base",
        )
    first = next_atom(rule, program, joins, dict.fromkeys(joins, 0))
    source = program.input(rule.body[first].input or 0)
    scope = variables(rule, program)
    read = {c for e in (*rule.exprs, *rule.conditions) for c in columns(e)}
    source_variables = rule.body[first].variables
    kept = [p for p, v in enumerate(source_variables) if counts_repetition or v in read]
    names = tuple(source_variables[p] if source_variables[p] in read else None for p in kept)
    keys = tuple(_key(p, v, source, scope) for p, v in zip(kept, names, strict=True))
    loaded = replace(source, id=source_id, exprs=tuple(source.exprs[p] for p in kept))
    body = list(rule.body)
    body[first] = Atom(names, relation=name)
    return Relation(name, keys, (), source_id), loaded, replace(rule, body=tuple(body))


def _is_set(source: Input) -> bool:
    """Return whether ``source`` has no duplicate rows: it is a set or a relation, with all its columns."""
    return (source.is_set or source.relation is not None) and len(source.exprs) == len(source.columns)


def _key(position: int, variable: str | None, source: Input, scope: Mapping[str, Variable]) -> Column:
    """Return the key for an expression of the source; its position names one that no rule reads."""
    expr = source.exprs[position]
    if variable is None:
        return Column(f"@{position}", expr.type, may_be_null(expr))
    return Column(variable, expr.type, scope[variable].column.nullable)
