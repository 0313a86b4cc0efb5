"""Drops conditions that say nothing, and moves those about one input into its filters.

    dist(y, min d + w) :- dist(x, d), in1(a, y, w), x = a, 1 = 1, w < 9
    dist(y, min d + w) :- dist(x, d), in2(a, y, w), x = a             in2 := source 0, weight < 9

What is left in a rule's conditions afterwards joins atoms or reads a recursive relation. A rule whose condition is
false is dropped. Spark's analyser evaluates nothing, so constants here are what the user wrote.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.scope import inlined, variables
from pyspark_paralagg.program.aggregators import is_numeric
from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Call, Expr, Lit, columns, conjuncts

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Input, Program, Rule

# Null when an argument is, and otherwise not, or an error.
_STRICT = ("Add", "Subtract", "Multiply", "UnaryMinus", "Cast", "Least", "Greatest")


def simplify(program: Program) -> Program:
    """The program with fewer, and better placed, conditions."""
    rules = []
    for rule in program.rules:
        conditions = [c for e in rule.conditions for c in conjuncts(_expression(e))]
        kept = tuple(dict.fromkeys(c for c in conditions if not _is_true(c)))
        if any(isinstance(c, Lit) for c in kept):
            note = f"{rule.place}: a condition is never true, the branch gives nothing"
            program = replace(program, notes=(*program.notes, note))
            continue
        simpler = replace(rule, exprs=tuple(_expression(e) for e in rule.exprs), conditions=kept)
        program, filtered = _to_inputs(program, simpler)
        rules.append(filtered)
    return replace(program, rules=tuple(rules))


def _expression(expr: Expr) -> Expr:
    """Without casts to the type that is there already, and without alternatives to what is never null."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(_expression(a) for a in expr.args)
    if (expr.fn == "Cast" and args[0].type == expr.type) or (expr.fn == "Coalesce" and not may_be_null(args[0])):
        return args[0]
    nullable = expr.nullable
    if expr.fn in _STRICT and all(_is_number(e) for e in (expr, *args)) and not any(may_be_null(a) for a in args):
        nullable = False
    return replace(expr, args=args, nullable=nullable)


def _is_number(expr: Expr) -> bool:
    # Not decimals: without ANSI their overflow gives null.
    return is_numeric(expr.type) and not expr.type.startswith("decimal")


def _is_true(condition: Expr) -> bool:
    if isinstance(condition, Lit):
        return condition.value is True
    if isinstance(condition, Call) and condition.fn == "IsNotNull":
        return not may_be_null(condition.args[0])
    if isinstance(condition, Call) and condition.fn in ("EqualTo", "EqualNullSafe"):
        left, right = condition.args
        if isinstance(left, Lit) and isinstance(right, Lit):
            return left.value is not None and left.value == right.value and left.type == right.type
        return left == right and (condition.fn == "EqualNullSafe" or not may_be_null(left))
    return False


def _to_inputs(program: Program, rule: Rule) -> tuple[Program, Rule]:
    """Conditions that read the columns of a single input become its filters; the input is a fresh one then."""
    scope = variables(rule, program)
    body, left = list(rule.body), list(rule.conditions)
    for n, atom in enumerate(rule.body):
        mine = [c for c in left if columns(c) and all(scope[v].atom == n for v in columns(c))]
        if atom.input is None or not mine:
            continue
        source = program.input(atom.input)
        inner = {v: source.exprs[p] for p, v in enumerate(atom.variables) if v is not None}
        filters = tuple(inlined(c, inner) for c in mine)
        program, input_id = with_input(program, replace(source, filters=(*source.filters, *filters)))
        body[n] = replace(atom, input=input_id)
        left = [c for c in left if c not in mine]
    return program, replace(rule, body=tuple(body), conditions=tuple(left))


def with_input(program: Program, wanted: Input) -> tuple[Program, int]:
    """The program with an input like ``wanted``, and its id: that of an equal one if there is one."""
    bases = {i for r in program.relations for i in (r.base, r.initial)}
    for known in program.inputs:
        if known.id not in bases and replace(known, id=wanted.id) == wanted:
            return program, known.id
    fresh = replace(wanted, id=max(i.id for i in program.inputs) + 1)
    return replace(program, inputs=(*program.inputs, fresh)), fresh.id
