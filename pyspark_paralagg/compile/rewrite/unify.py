"""Carries constants along equalities: static unification of variables with constants (paper 004, section 3).

    reach(y) :- reach(x), edges(a, y), x = a, x = 3
    reach(y) :- reach(x), edges(a, y), x = a, x = 3, a = 3            edges is filtered where it is loaded

Equal variables are one variable for the joins already (``binarize``). A constant goes to inputs alone, whose rows it
keeps from being loaded, and into values that are computed from them. It goes from joins and semi joins into anti joins,
never out of these: what they look for is not there.
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
    """``rule`` with its constants everywhere they hold; None where two of them contradict each other."""
    scope = variables(rule, program)

    def is_fact(name: str) -> bool:
        return rule.body[scope[name].atom].kind != "anti"

    classes = Classes.of(rule.conditions, is_fact)
    known: dict[str, Call] = {}
    for condition in rule.conditions:
        found = constant(condition)
        if found is None or not is_fact(found[0].name):
            continue
        for name in classes.mates(found[0].name):
            if name in known and _contradict(_literal(known[name]), found[1]):
                return None
            known.setdefault(name, _about(condition, name, scope))
    for condition in rule.conditions:
        pair = equality(condition)
        for inside, outside in (pair, pair[::-1]) if pair else ():
            if not is_fact(inside) and outside in known and is_fact(outside):
                known.setdefault(inside, _about(known[outside], inside, scope))
    added = [c for name, c in known.items() if scope[name].role == "static" and not _is_said(name, rule)]
    values = {
        name: _literal(c)
        for name, c in known.items()
        if scope[name].role == "static" and is_fact(name) and _is_copied(_literal(c))
    }
    return replace(rule, exprs=_exprs(rule, program, values), conditions=(*rule.conditions, *added))


def constant(condition: Expr) -> tuple[Col, Lit] | None:
    """The variable and the constant that ``condition`` says are equal; None for any other condition."""
    if isinstance(condition, Call) and condition.fn == "EqualTo":
        for own, other in (condition.args, condition.args[::-1]):
            if isinstance(own, Col) and isinstance(other, Lit) and own.type == other.type and other.value is not None:
                return own, other
    return None


def _about(condition: Expr, name: str, scope: dict[str, Variable]) -> Call:
    """The equality with a constant, said of ``name``: the same call, so an engine evaluates it as the user's own."""
    if not isinstance(condition, Call):
        raise TypeError(condition)
    args = tuple(Col(name, a.type, scope[name].column.nullable) if isinstance(a, Col) else a for a in condition.args)
    return replace(condition, args=args)


def _literal(condition: Call) -> Lit:
    return next(a for a in condition.args if isinstance(a, Lit))


def _contradict(one: Lit, other: Lit) -> bool:
    # A collation may hold different strings for equal, and then the type is not plain.
    return one.value != other.value and (is_word(one.type) or one.type == "string")


def _is_said(name: str, rule: Rule) -> bool:
    found = (constant(c) for c in rule.conditions)
    return any(f is not None and f[0].name == name for f in found)


def _is_copied(literal: Lit) -> bool:
    # 0.0 = -0.0, so a double that equals a constant may be another; a string constant is no word that a row can hold.
    return is_word(literal.type) and not is_float(literal.type)


def _exprs(rule: Rule, program: Program, values: dict[str, Lit]) -> tuple[Expr, ...]:
    # A plain key stays: where it comes from says how an engine finds the head's row.
    keys = len(program.relation(rule.head).keys)
    return tuple(e if n < keys and isinstance(e, Col) else inlined(e, values) for n, e in enumerate(rule.exprs))
