"""Derive invariants of recursive columns, and the premises that a claim may use: ranges and conditions.

Inputs contribute the user's assumptions (guarded at load), filters, and computed columns. Recursive columns have
invariants: if no base row is negative and no rule derives a negative value, no value is ever negative.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.facts import NOT_NEGATIVE, Invariants, input_facts
from pyspark_paralagg.compile.prove.monotone import Monotone
from pyspark_paralagg.compile.prove.rule_facts import facts_of
from pyspark_paralagg.compile.rewrite.scope import inlined, variables
from pyspark_paralagg.compile.rewrite.simplify import with_input
from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.assumption import assumptions_about
from pyspark_paralagg.program.expr import Call, Col, Expr, columns, substitute, walk
from pyspark_paralagg.program.functions.value_range import Range, is_float, type_range

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.compile.prove.behaviour import Behaviour
    from pyspark_paralagg.compile.prove.facts import Column
    from pyspark_paralagg.program.aggregators import Aggregator
    from pyspark_paralagg.program.program import Column as ProgramColumn
    from pyspark_paralagg.program.program import Input, Program, Relation, Rule


def find_invariants(program: Program, names: tuple[str, ...], below: Invariants) -> Invariants:
    """Return the invariants of the stratum ``names``, joined to those of lower strata (``below``)."""
    relations = [program.relation(n) for n in names]
    starts: dict[Column, list[Behaviour]] = {}
    for r in relations:
        for source in [program.input(i) for i in (r.base, r.initial) if i is not None]:
            for p, column in enumerate(_stored_columns(r)):
                starts.setdefault((r.name, column.name), []).append(_start_behaviour(source, p, program, below))
    ranges: dict[Column, Range] = {}
    for key, values in starts.items():
        value_ranges = [b.range for b in values if b.range is not None]
        if len(value_ranges) == len(values):
            ranges[key] = functools.reduce(Range.union, value_ranges)
    # A column without nulls in base rows stays present until a rule may derive null.
    present = frozenset(key for key, values in starts.items() if not any(b.is_nullable for b in values))
    current = Invariants({**below.ranges, **ranges}, below.present | present)
    rules = [unhoisted(r, program) for r in program.rules if r.head in names]
    while (following := _after_a_round(current, relations, rules, frozenset(ranges))) != current:
        current = following
    return current


def _after_a_round(
    invariants: Invariants, relations: list[Relation], rules: list[tuple[Rule, Program]], bounded: frozenset[Column]
) -> Invariants:
    """Return the invariants that still hold after each rule is applied once to rows that satisfy ``invariants``."""
    ranges = dict(invariants.ranges)
    lost: set[Column] = set()
    relation_of = {r.name: r for r in relations}
    for rule, program in rules:
        facts = facts_of(rule, program, invariants)
        for column, expr in zip(_stored_columns(relation_of[rule.head]), rule.exprs, strict=True):
            key, value = (rule.head, column.name), Monotone({}, facts).behaviour(expr)
            lost |= {key} if value.is_nullable else set()
            if key in bounded and value.range is not None:
                ranges[key] = ranges[key].union(value.range)
    types = {(r.name, c.name): c.type for r in relations for c in _stored_columns(r)}
    dependents = {(r.name, d.column.name): d for r in relations for d in r.dependents}
    is_exact = all(program.setting.ansi for _, program in rules)
    for key in bounded:
        if key in dependents:
            ranges[key] = _aggregated(dependents[key].definition, ranges[key], types[key], is_exact=is_exact)
        ranges[key] = ranges[key].widened(invariants.ranges[key], type_range(types[key]) or ranges[key])
    # A carried value is null if its order is null.
    present = invariants.present - lost
    lost |= {k for k, d in dependents.items() if d.order is not None and (k[0], d.order) not in present}
    return Invariants(ranges, present - lost)


def _stored_columns(relation: Relation) -> tuple[ProgramColumn, ...]:
    """Return the columns that base rows and rules provide, after ``track_witnesses``."""
    return (*relation.keys, *(d.column for d in relation.dependents if d.view is None))


def _aggregated(aggregator: Aggregator, values: Range, type_: str, *, is_exact: bool) -> Range:
    """Return the range of an aggregate of ``values``; ``is_exact``: integer sums fail rather than wrap."""
    of_type = type_range(type_)
    if aggregator.keeps_inputs or of_type is None:
        return values
    if aggregator.moves == "divides":
        return of_type
    if aggregator.is_sum and is_integral(type_) and not is_exact:
        return of_type
    if aggregator.is_counted:
        return of_type.intersect(NOT_NEGATIVE)
    low = values.low if values.low >= 0 else of_type.low
    high = values.high if values.high <= 0 and aggregator.is_sum and not aggregator.counts_rows else of_type.high
    if aggregator.counts_rows and values.low >= 0:
        low = 0
    has_nan = values.has_nan or (is_float(type_) and values.low < 0 < values.high)
    return values.union(type(values)(low, high, has_nan))


def _start_behaviour(source: Input, position: int, program: Program, below: Invariants) -> Behaviour:
    """Return the behaviour of a column of base or initial rows.

    Assumptions count only if the rows are guarded: a rule reads them, or ``drive_static`` made them a relation.
    """
    read = {program.input(a.input).source for r in program.rules for a in r.body if a.input is not None}
    heads = {r.head for r in program.rules}
    read |= {program.input(r.base).source for r in program.relations if r.name not in heads}
    is_guarded = source.relation is None and source.source in read
    facts = input_facts(source, program, below, assumes=is_guarded)
    return Monotone({}, facts).behaviour(source.exprs[position])


def unhoisted(rule: Rule, program: Program) -> tuple[Rule, Program]:  # noqa: C901 - one input after the other
    """Return the rule with expressions that its inputs compute at load inlined again, over the user's columns."""
    values: dict[str, Expr] = {}
    body = list(rule.body)
    names = _kept_variables(rule, program)
    for n, atom in enumerate(rule.body):
        if atom.input is None or all(isinstance(e, Col) for e in program.input(atom.input).exprs):
            continue
        source = program.input(atom.input)
        bound = {
            e.name: v for v, e in zip(atom.variables, source.exprs, strict=True) if isinstance(e, Col) and v is not None
        }
        # A guarded column keeps the rule's variable name.
        for v, e in zip(atom.variables, source.exprs, strict=True):
            if v is not None and isinstance(e, Call) and isinstance(column := without_guards(e), Col):
                bound.setdefault(column.name, v)
        plain = {e.name: e for x in source.exprs for e in walk(x) if isinstance(e, Col)}
        for name in plain:
            if name not in bound:
                new_name, k = name, 2
                while new_name in names:
                    new_name, k = f"{name}_{k}", k + 1
                names.add(new_name)
                bound[name] = new_name
        for v, e in zip(atom.variables, source.exprs, strict=True):
            if v is not None and not isinstance(e, Col):
                values[v] = substitute(e, lambda c, b=bound: replace(c, name=b[c.name]))  # type: ignore[misc]
        program, input_id = with_input(program, replace(source, exprs=tuple(plain.values())))
        body[n] = replace(atom, input=input_id, variables=tuple(bound[c] for c in plain))
    if not values:
        return rule, program
    return replace(
        rule,
        exprs=tuple(inlined(e, values) for e in rule.exprs),
        conditions=tuple(inlined(c, values) for c in rule.conditions),
        body=tuple(body),
    ), program


def without_guards(expr: Expr) -> Expr:
    """Return the expression inside guards."""
    while isinstance(expr, Call) and expr.fn in ("Between", "Present"):
        expr = expr.args[0]
    return expr


def _kept_variables(rule: Rule, program: Program) -> set[str]:
    """Return the variables of a rule whose values are not inlined."""
    kept: set[str] = set()
    for atom in rule.body:
        exprs = atom.variables if atom.input is None else program.input(atom.input).exprs
        kept |= {v for v, e in zip(atom.variables, exprs, strict=True) if v is not None and isinstance(e, Col | str)}
    return kept


def premises_of(rule: Rule, program: Program) -> tuple[Expr, ...]:
    """Return assumptions and filters about the inputs of ``rule``, over its variables."""
    premises: list[Expr] = []
    for atom in rule.body:
        if atom.input is None or atom.kind != "join":
            continue
        source = program.input(atom.input)
        variable_of: dict[str, Col] = {}
        for v, e in zip(atom.variables, source.exprs, strict=True):
            if v is not None and isinstance(e, Col):
                variable_of.setdefault(e.name, Col(v, e.type, e.nullable))
        assumed = () if source.relation else assumptions_about(source.name, variable_of, program.assume)
        conditions = [*source.filters, *assumed]
        premises += [c for g in conditions if (c := _with_variables(g, variable_of)) is not None]
    return tuple(dict.fromkeys(premises))


def assumable_in(rule: Rule, program: Program) -> dict[str, Col]:
    """Return the numeric variables of ``rule`` that come from the user's rows, as ``assume`` names their columns.

    A column that other sources have too is named with its source, if that has a name.
    """
    assumable: dict[str, Col] = {}
    owners: dict[str, set[int]] = {}
    for i in program.inputs:
        for c in i.columns if i.relation is None else ():
            owners.setdefault(c.name, set()).add(i.source)
    for name, v in variables(rule, program).items():
        read = rule.body[v.atom].input
        source = None if read is None else program.input(read)
        if source is not None and source.relation is None and is_numeric(v.column.type):
            is_shared = len(owners.get(v.column.name, ())) > 1
            shown = f"{source.name}.{v.column.name}" if is_shared and source.name else v.column.name
            assumable[name] = Col(shown, v.column.type, v.column.nullable)
    return assumable


def _with_variables(condition: Expr, variable_of: Mapping[str, Col]) -> Expr | None:
    if not columns(condition) <= set(variable_of):
        return None
    return substitute(condition, lambda c: variable_of[c.name])
