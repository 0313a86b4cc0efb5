"""Drops conditions that say nothing, and moves those about one input into its filters.

    dist(y, min d + w) :- dist(x, d), in1(a, y, w), x = a, 1 = 1, w < 9, x = 1 + 2
    dist(y, min d + w) :- dist(x, d), in2(a, y, w), x = a, x = 3      in2 := source 0, w < 9, a = 3

Constants are computed where that is exact (``fold``) and carried along equalities (``unify``). What is left in a rule's
conditions afterwards joins atoms or reads a recursive relation. A dead rule is dropped: one with a condition that is
never true, or two that contradict each other, or an input that holds nothing. Spark's analyser evaluates nothing, so
constants here are what the user wrote.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.fold import fold
from pyspark_paralagg.compile.rewrite.scope import inlined, variables
from pyspark_paralagg.compile.rewrite.unify import unify
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
        conditions = [c for e in rule.conditions for c in conjuncts(_expression(fold(e)))]
        kept = tuple(dict.fromkeys(c for c in conditions if not _is_true(c)))
        simpler = replace(rule, exprs=tuple(_expression(fold(e)) for e in rule.exprs), conditions=kept)
        unified = unify(simpler, program)
        why = "two conditions contradict each other" if unified is None else _dead(simpler, program)
        if unified is None or why is not None:
            program = replace(program, notes=(*program.notes, f"{rule.place}: {why}, the branch gives nothing"))
            continue
        program, filtered = _to_inputs(program, unified)
        rules.append(filtered)
    return replace(program, rules=tuple(rules))


def _dead(rule: Rule, program: Program) -> str | None:
    """Why the body holds for no row; None where it may."""
    if any(_is_never_true(c) for c in rule.conditions):
        return "a condition is never true"
    for atom in rule.body:
        if (
            atom.input is not None
            and atom.kind != "anti"
            and any(map(_is_never_true, program.input(atom.input).filters))
        ):
            return "it reads an input that holds nothing"
    return None


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


def _is_never_true(condition: Expr) -> bool:
    """False or null whatever the variables are. NaN equals itself in Spark, so nothing differs from itself."""
    if isinstance(condition, Lit):
        return condition.value is not True
    if not isinstance(condition, Call):
        return False
    if condition.fn in ("EqualTo", "LessThan", "GreaterThan"):
        left, right = condition.args
        if any(isinstance(a, Lit) and a.value is None for a in (left, right)):
            return True
        return condition.fn != "EqualTo" and left == right
    if condition.fn == "Not":
        inner = condition.args[0]
        return isinstance(inner, Call) and inner.fn == "EqualTo" and inner.args[0] == inner.args[1]
    return condition.fn == "IsNull" and not may_be_null(condition.args[0])


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
