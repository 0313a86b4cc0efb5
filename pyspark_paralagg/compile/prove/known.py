"""What is known of a rule's variables before anything is proved: ranges and conditions.

From outside come the user's assumptions (guarded at load), an input's filters, and what an input computes. The
recursion's own columns have invariants: where no base row is negative and no rule makes a negative value, none ever is.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.facts import NOT_NEGATIVE, Known, input_facts
from pyspark_paralagg.compile.prove.monotone import Monotone
from pyspark_paralagg.compile.prove.rule_facts import facts_of
from pyspark_paralagg.compile.rewrite.scope import inlined, variables
from pyspark_paralagg.compile.rewrite.simplify import with_input
from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.expr import Call, Col, Expr, columns, substitute, walk
from pyspark_paralagg.program.functions.value_range import Range, is_float, type_range

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.compile.prove.behaviour import Behaviour
    from pyspark_paralagg.compile.prove.facts import Column
    from pyspark_paralagg.program.program import Column as ProgramColumn
    from pyspark_paralagg.program.program import Input, Program, Relation, Rule

_KEEPS = ("min", "max", "min_by", "max_by")


def invariants(program: Program, names: tuple[str, ...], below: Known) -> Known:
    """Return ``below``, what is known of lower strata, and what holds of the columns of the stratum ``names``."""
    relations = [program.relation(n) for n in names]
    starts: dict[Column, list[Behaviour]] = {}
    for r in relations:
        for source in [program.input(i) for i in (r.base, r.initial) if i is not None]:
            for p, column in enumerate(_written(r)):
                starts.setdefault((r.name, column.name), []).append(_of_input(source, p, program, below))
    ranges: dict[Column, Range] = {}
    for key, values in starts.items():
        of = [b.range for b in values if b.range is not None]
        if len(of) == len(values):
            ranges[key] = functools.reduce(Range.union, of)
    # All that base rows have is present until a rule may give null.
    present = frozenset(key for key, values in starts.items() if not any(b.is_nullable for b in values))
    known = Known({**below.ranges, **ranges}, below.present | present)
    rules = [unhoisted(r, program) for r in program.rules if r.head in names]
    while (new := _after_a_round(known, relations, rules, frozenset(ranges))) != known:
        known = new
    return known


def _after_a_round(
    known: Known, relations: list[Relation], rules: list[tuple[Rule, Program]], bounded: frozenset[Column]
) -> Known:
    """Return what still holds after each rule has been applied once to rows of which ``known`` holds."""
    found = dict(known.ranges)
    lost: set[Column] = set()
    of_name = {r.name: r for r in relations}
    for rule, program in rules:
        facts = facts_of(rule, program, known)
        for column, expr in zip(_written(of_name[rule.head]), rule.exprs, strict=True):
            key, made = (rule.head, column.name), Monotone({}, facts).behaviour(expr)
            lost |= {key} if made.is_nullable else set()
            if key in bounded and made.range is not None:
                found[key] = found[key].union(made.range)
    types = {(r.name, c.name): c.type for r in relations for c in _written(r)}
    how = {(r.name, d.column.name): d for r in relations for d in r.dependents}
    is_exact = all(program.setting.ansi for _, program in rules)
    for key in bounded:
        if key in how:
            found[key] = _aggregated(how[key].aggregator, found[key], types[key], is_exact=is_exact)
        found[key] = found[key].widened(known.ranges[key], type_range(types[key]) or found[key])
    # What is carried beside a null is not carried.
    lost |= {k for k, d in how.items() if d.order is not None and (k[0], d.order) not in known.present - lost}
    return Known(found, known.present - lost)


def _written(relation: Relation) -> tuple[ProgramColumn, ...]:
    """The columns that base rows and rules give, after ``track_witnesses``."""
    return (*relation.keys, *(d.column for d in relation.dependents if d.view is None))


def _aggregated(aggregator: str, values: Range, type_: str, *, is_exact: bool) -> Range:
    """Return what an aggregator makes of ``values``; ``is_exact``: sums of integers fail rather than wrap."""
    of_type = type_range(type_)
    if aggregator in _KEEPS or of_type is None:
        return values
    if aggregator == "gcd":
        return of_type
    if aggregator in ("sum", "count") and is_integral(type_) and not is_exact:
        return of_type
    if aggregator in ("mcount", "msum"):
        return of_type.intersect(NOT_NEGATIVE)
    low = values.low if values.low >= 0 else of_type.low
    high = values.high if values.high <= 0 and aggregator == "sum" else of_type.high
    if aggregator == "count" and values.low >= 0:
        low = 0
    has_nan = values.has_nan or (is_float(type_) and values.low < 0 < values.high)
    return values.union(type(values)(low, high, has_nan))


def _of_input(source: Input, position: int, program: Program, below: Known) -> Behaviour:
    """Return the values of a column of base or initial rows.

    Assumptions count where the rows are guarded: where a rule reads them, or ``drive_static`` made a relation of what a
    rule reads.
    """
    read = {program.input(a.input).source for r in program.rules for a in r.body if a.input is not None}
    heads = {r.head for r in program.rules}
    read |= {program.input(r.base).source for r in program.relations if r.name not in heads}
    is_guarded = source.relation is None and source.source in read
    facts = input_facts(source, program, below, assumes=is_guarded)
    return Monotone({}, facts).behaviour(source.exprs[position])


def unhoisted(rule: Rule, program: Program) -> tuple[Rule, Program]:  # noqa: C901 - one input after the other
    """The rule with what its inputs compute at load written out again, over columns of the user's."""
    values: dict[str, Expr] = {}
    body = list(rule.body)
    taken = _kept_variables(rule, program)
    for n, atom in enumerate(rule.body):
        if atom.input is None or all(isinstance(e, Col) for e in program.input(atom.input).exprs):
            continue
        source = program.input(atom.input)
        bound = {
            e.name: v for v, e in zip(atom.variables, source.exprs, strict=True) if isinstance(e, Col) and v is not None
        }
        # A column that is only guarded keeps the rule's name for it.
        for v, e in zip(atom.variables, source.exprs, strict=True):
            if v is not None and isinstance(e, Call) and isinstance(column := without_guards(e), Col):
                bound.setdefault(column.name, v)
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


def without_guards(expr: Expr) -> Expr:
    """Return what a guard lets through."""
    while isinstance(expr, Call) and expr.fn in ("Between", "Present"):
        expr = expr.args[0]
    return expr


def _kept_variables(rule: Rule, program: Program) -> set[str]:
    """Return the variables of a rule but those whose values are written out."""
    out: set[str] = set()
    for atom in rule.body:
        exprs = atom.variables if atom.input is None else program.input(atom.input).exprs
        out |= {v for v, e in zip(atom.variables, exprs, strict=True) if v is not None and isinstance(e, Col | str)}
    return out


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
