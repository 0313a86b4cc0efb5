"""Drop conditions that are always true, and move conditions about one input into its filters.

    dist(y, min d + w) :- dist(x, d), in1(a, y, w), x = a, 1 = 1, w < 9, x = 1 + 2
    dist(y, min d + w) :- dist(x, d), in2(a, y, w), x = a, x = 3      in2 := source 0, w < 9, a = 3

Constants are folded where that is exact (``fold``) and propagated along equalities (``unify``). The remaining
conditions of a rule join atoms or read a recursive relation. A dead rule is dropped: a condition is never true, two
conditions contradict each other, or an input is empty. Spark's analyser evaluates nothing, so constants are as the user
wrote them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.fold import fold
from pyspark_paralagg.compile.rewrite.scope import inlined, variables
from pyspark_paralagg.compile.rewrite.unify import unify
from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.branch import may_be_null
from pyspark_paralagg.program.expr import Call, Expr, Lit, columns, conjuncts

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Input, Program, Rule

# Null only if an argument is null; otherwise a value or an error.
_STRICT = ("Add", "Subtract", "Multiply", "UnaryMinus", "Cast", "Least", "Greatest")


def simplify(program: Program) -> Program:
    """Return the program with fewer conditions, filters on its inputs, and no dead rules."""
    rules = []
    for rule in program.rules:
        conditions = [c for e in rule.conditions for c in conjuncts(_without_no_ops(fold(e)))]
        kept = tuple(dict.fromkeys(c for c in conditions if not _is_true(c)))
        simpler = replace(rule, exprs=tuple(_without_no_ops(fold(e)) for e in rule.exprs), conditions=kept)
        unified = unify(simpler, program)
        dead_reason = "two conditions contradict each other" if unified is None else _dead_reason(simpler, program)
        if unified is None or dead_reason is not None:
            program = replace(
                program, notes=(*program.notes, f"{rule.place}: {dead_reason}, so the branch derives no rows")
            )
            continue
        program, filtered = _push_filters(program, unified)
        rules.append(filtered)
    return replace(program, rules=tuple(rules))


def _dead_reason(rule: Rule, program: Program) -> str | None:
    """Return dead_reason no row satisfies the body; None if some row may."""
    if any(_is_never_true(c) for c in rule.conditions):
        return "a condition is never true"
    for atom in rule.body:
        if (
            atom.input is not None
            and atom.kind != "anti"
            and any(map(_is_never_true, program.input(atom.input).filters))
        ):
            return "it reads an empty input"
    return None


def _without_no_ops(expr: Expr) -> Expr:
    """Drop casts to the same type, casts that Spark drops, and alternatives to expressions that are never null."""
    if not isinstance(expr, Call):
        return expr
    args = tuple(_without_no_ops(a) for a in expr.args)
    if _drops_inner_cast(expr, args):
        args = args[0].args  # type: ignore[union-attr]  # it is a call
    if (expr.fn == "Cast" and args[0].type == expr.type) or (expr.fn == "Coalesce" and not may_be_null(args[0])):
        return args[0]
    nullable = expr.nullable
    if expr.fn in _STRICT and all(_is_number(e) for e in (expr, *args)) and not any(may_be_null(a) for a in args):
        nullable = False
    return replace(expr, args=args, nullable=nullable)


def _drops_inner_cast(expr: Call, args: tuple[Expr, ...]) -> bool:
    """Return whether Spark's ``SimplifyCasts`` drops the inner cast: it takes float for wider than every integer type.

    Of all pairs that it drops, only this one changes a value: ``cast(cast(16777217 AS float) AS double)``.
    """
    if expr.fn != "Cast" or expr.type != "double" or not isinstance(inner := args[0], Call) or inner.fn != "Cast":
        return False
    return inner.type == "float" and is_integral(inner.args[0].type) and not isinstance(inner.args[0], Lit)


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
    """Return whether ``condition`` is false or null for all values. NaN equals itself in Spark: ``x <> x`` is false."""
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


def _push_filters(program: Program, rule: Rule) -> tuple[Program, Rule]:
    """Move conditions that read a single input into the filters of a new input."""
    scope = variables(rule, program)
    body, remaining = list(rule.body), list(rule.conditions)
    for n, atom in enumerate(rule.body):
        own_conditions = [c for c in remaining if columns(c) and all(scope[v].atom == n for v in columns(c))]
        if atom.input is None or not own_conditions:
            continue
        source = program.input(atom.input)
        inner = {v: source.exprs[p] for p, v in enumerate(atom.variables) if v is not None}
        filters = tuple(inlined(c, inner) for c in own_conditions)
        program, input_id = with_input(program, replace(source, filters=(*source.filters, *filters)))
        body[n] = replace(atom, input=input_id)
        remaining = [c for c in remaining if c not in own_conditions]
    return program, replace(rule, body=tuple(body), conditions=tuple(remaining))


def with_input(program: Program, requested: Input) -> tuple[Program, int]:
    """Return the program with an input equal to ``requested`` but for its id, and the id; an equal one is reused."""
    bases = {i for r in program.relations for i in (r.base, r.initial)}
    for existing in program.inputs:
        if existing.id not in bases and replace(existing, id=requested.id) == requested:
            return program, existing.id
    return program.with_new_input(requested)
