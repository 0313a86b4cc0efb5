"""What is known of a rule's variables before anything is proved: signs and conditions.

From outside come the user's assumptions (guarded at load), an input's filters, and what an input computes. The
recursion's own columns have invariants: where no base row is negative and no rule makes a negative value, none ever is.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.scope import inlined, variables
from pyspark_paralagg.compile.signs import ANY, NOT_NEGATIVE, Signs, fact, facts_of, signs, sum_of
from pyspark_paralagg.compile.simplify import with_input
from pyspark_paralagg.program.aggregators import is_numeric
from pyspark_paralagg.program.expr import Col, Expr, columns, substitute, walk

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.program.program import Column, Input, Program, Relation, Rule

Invariants = dict[tuple[str, str], Signs]
"""Signs by relation and column; what is not there can have any."""

_KEEPS = ("min", "max", "min_by", "max_by")


def invariants(program: Program, names: tuple[str, ...], below: Invariants) -> Invariants:
    """``below``, what is known of lower strata, and what holds of the columns of the stratum ``names``."""
    relations = [program.relation(n) for n in names]
    found = dict(below)
    start: Invariants = {}
    for r in relations:
        sources = [program.input(i) for i in (r.base, r.initial) if i is not None]
        for p, column in enumerate(_written(r)):
            if is_numeric(column.type):
                start[r.name, column.name] = frozenset().union(*(_of_input(i, p, program, below) for i in sources))
    found |= start
    rules = [unhoisted(r, program) for r in program.rules if r.head in names]
    while True:
        new = dict(found)
        for rule, view in rules:
            head, facts = program.relation(rule.head), facts_of(rule, view, found)
            for column, expr in zip(_written(head), rule.exprs, strict=True):
                if (head.name, column.name) in start:
                    new[head.name, column.name] |= signs(expr, facts)
        how = {(r.name, d.column.name): d.aggregator for r in relations for d in r.dependents}
        new |= {c: _aggregated(how[c], new[c]) for c in start if c in how}
        if new == found:
            return found
        found = new


def _written(relation: Relation) -> tuple[Column, ...]:
    """The columns that base rows and rules give, after ``track_witnesses``."""
    return (*relation.keys, *(d.column for d in relation.dependents if d.view is None))


def _aggregated(aggregator: str, values: Signs) -> Signs:
    match aggregator:
        case "sum":
            return values | sum_of(values, values)
        case "count":
            return values | frozenset((1,)) | sum_of(values | {1}, values | {1})
        case "mcount" | "msum":
            return NOT_NEGATIVE
        case "bit_or" | "bit_and":
            return NOT_NEGATIVE if values <= NOT_NEGATIVE else ANY
        case _:
            return values if aggregator in _KEEPS else ANY


def _of_input(source: Input, position: int, program: Program, below: Invariants) -> Signs:
    """The signs of a column of base or initial rows. Assumptions count where the rows are guarded like a rule's."""
    facts = {c.name: ANY for c in source.columns}
    read = {program.input(a.input).source for r in program.rules for a in r.body if a.input is not None}
    is_guarded = source.relation is None and source.source in read
    for name, allowed in filter(None, map(fact, (*source.filters, *(program.assume if is_guarded else ())))):
        if name in facts:
            facts[name] &= allowed
    if source.relation is not None:
        facts = {n: s & below.get((source.relation, n), ANY) for n, s in facts.items()}
    return signs(source.exprs[position], facts)


def unhoisted(rule: Rule, program: Program) -> tuple[Rule, Program]:
    """The rule with what its inputs compute at load written out again, over columns of the user's."""
    values: dict[str, Expr] = {}
    body = list(rule.body)
    taken = {v for a in rule.body for v in a.variables if v is not None}
    for n, atom in enumerate(rule.body):
        if atom.input is None or all(isinstance(e, Col) for e in program.input(atom.input).exprs):
            continue
        source = program.input(atom.input)
        bound = {
            e.name: v for v, e in zip(atom.variables, source.exprs, strict=True) if isinstance(e, Col) and v is not None
        }
        plain = {e.name: e for x in source.exprs for e in walk(x) if isinstance(e, Col)}
        for name in plain:
            if name not in bound:
                fresh, k = name, 2
                while fresh in taken:
                    fresh, k = f"{name}_{k}", k + 1
                taken.add(fresh)
                bound[name] = fresh
        for v, e in zip(atom.variables, source.exprs, strict=True):
            if v is not None and not isinstance(e, Col):
                values[v] = substitute(e, lambda c, b=bound: replace(c, name=b[c.name]))  # type: ignore[misc]
        program, wanted = with_input(program, replace(source, exprs=tuple(plain.values())))
        body[n] = replace(atom, input=wanted, variables=tuple(bound[c] for c in plain))
    if not values:
        return rule, program
    return replace(
        rule,
        exprs=tuple(inlined(e, values) for e in rule.exprs),
        conditions=tuple(inlined(c, values) for c in rule.conditions),
        body=tuple(body),
    ), program


def premises_of(rule: Rule, program: Program) -> tuple[Expr, ...]:
    """Assumptions and filters about the inputs of ``rule``, over its variables."""
    out: list[Expr] = []
    for atom in rule.body:
        if atom.input is None or atom.kind != "join":
            continue
        source = program.input(atom.input)
        known: dict[str, Col] = {}
        for v, e in zip(atom.variables, source.exprs, strict=True):
            if v is not None and isinstance(e, Col):
                known.setdefault(e.name, Col(v, e.type, e.nullable))
        given = [*source.filters, *(program.assume if source.relation is None else ())]
        out += [c for g in given if (c := _over(g, known)) is not None]
    return tuple(dict.fromkeys(out))


def assumable_in(rule: Rule, program: Program) -> dict[str, Col]:
    """The numbers from the user's own rows among the variables of ``rule``, as what the user calls them."""
    out: dict[str, Col] = {}
    for name, v in variables(rule, program).items():
        source = rule.body[v.atom].input
        if source is not None and program.input(source).relation is None and is_numeric(v.column.type):
            out[name] = Col(v.column.name, v.column.type, v.column.nullable)
    return out


def _over(condition: Expr, known: Mapping[str, Col]) -> Expr | None:
    if not columns(condition) <= set(known):
        return None
    return substitute(condition, lambda c: known[c.name])
