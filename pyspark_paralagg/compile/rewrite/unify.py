"""Propagate constants along equalities: static unification of variables with constants.

(docs/papers.md: Compiling Data-Parallel Datalog, section 3.2.)

    reach(y) :- reach(x), edges(a, y), x = a, x = 3
    reach(y) :- reach(x), edges(a, y), x = a, x = 3, a = 3            edges is filtered where it is loaded

``binarize`` already joins equal variables as one variable. A constant is added to inputs only, where it filters rows at
load, and to values computed from them. It moves from joins and semi joins into anti joins, never out of an anti join:
the row that an anti join looks for does not exist.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.equal import Classes, equality
from pyspark_paralagg.compile.rewrite.scope import Variable, inlined, variables
from pyspark_paralagg.compile.rewrite.types import is_float, is_word
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule


def unify(rule: Rule, program: Program) -> Rule | None:
    """Return ``rule`` with its constants wherever they hold; None if two of them contradict each other."""
    scope = variables(rule, program)

    def is_fact(name: str) -> bool:
        return rule.body[scope[name].atom].kind != "anti"

    classes = Classes.from_conditions(rule.conditions, is_fact)
    constants: dict[str, Call] = {}
    for condition in rule.conditions:
        equated = constant(condition)
        if equated is None or not is_fact(equated[0].name):
            continue
        for name in classes.mates(equated[0].name):
            if name in constants and _contradict(_literal(constants[name]), equated[1]):
                return None
            constants.setdefault(name, _equality_over(condition, name, scope))
    for condition in rule.conditions:
        pair = equality(condition)
        for inside, outside in (pair, pair[::-1]) if pair else ():
            if not is_fact(inside) and outside in constants and is_fact(outside):
                constants.setdefault(inside, _equality_over(constants[outside], inside, scope))
    added = [c for name, c in constants.items() if scope[name].role == "static" and not _has_constant(name, rule)]
    values = {
        name: _literal(c)
        for name, c in constants.items()
        if scope[name].role == "static" and is_fact(name) and _is_copyable(_literal(c))
    }
    return replace(rule, exprs=_exprs(rule, program, values), conditions=(*rule.conditions, *added))


def constant(condition: Expr) -> tuple[Col, Lit] | None:
    """Return the variable and the constant that ``condition`` equates; None for any other condition."""
    if isinstance(condition, Call) and condition.fn == "EqualTo":
        for col, lit in (condition.args, condition.args[::-1]):
            if isinstance(col, Col) and isinstance(lit, Lit) and col.type == lit.type and lit.value is not None:
                return col, lit
    return None


def _equality_over(condition: Expr, name: str, scope: dict[str, Variable]) -> Call:
    """Return the equality ``condition`` over ``name``: the same call, so an engine evaluates it like the user's."""
    if not isinstance(condition, Call):
        raise TypeError(condition)
    args = tuple(Col(name, a.type, scope[name].column.nullable) if isinstance(a, Col) else a for a in condition.args)
    return replace(condition, args=args)


def _literal(condition: Call) -> Lit:
    return next(a for a in condition.args if isinstance(a, Lit))


def _contradict(left: Lit, right: Lit) -> bool:
    # A collation may treat different strings as equal; then the type is not plain ``string``.
    return left.value != right.value and (is_word(left.type) or left.type == "string")


def _has_constant(name: str, rule: Rule) -> bool:
    equated = (constant(c) for c in rule.conditions)
    return any(f is not None and f[0].name == name for f in equated)


def _is_copyable(literal: Lit) -> bool:
    # 0.0 = -0.0, so a double equal to a constant may have other bits; a string constant is not a word.
    return is_word(literal.type) and not is_float(literal.type)


def _exprs(rule: Rule, program: Program, values: dict[str, Lit]) -> tuple[Expr, ...]:
    # A plain key stays: its origin decides how an engine locates the head's row.
    keys = len(program.relation(rule.head).keys)
    return tuple(e if n < keys and isinstance(e, Col) else inlined(e, values) for n, e in enumerate(rule.exprs))
