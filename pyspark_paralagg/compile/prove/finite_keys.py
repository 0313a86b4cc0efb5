"""Find keys that stay finite although they are computed from the recursion's own keys: for ``limit_growth``.

score = least(5, greatest(1, s + d))             its range is known, and has few values
n = m + 1, m + 1 = c.n with an input c           n only grows, and is one of the input's values: the rule ends
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.monotone import range_of
from pyspark_paralagg.compile.prove.rule_facts import facts_of
from pyspark_paralagg.compile.rewrite.scope import Variable, variables
from pyspark_paralagg.program.branch import strip_handles
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit
from pyspark_paralagg.program.functions.casts import is_exact
from pyspark_paralagg.program.functions.value_range import is_float, type_range, unit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from pyspark_paralagg.program.functions.value_range import Range
    from pyspark_paralagg.program.program import Program, Rule

_MANY = 1 << 30
"""More values than this are no bound: a number of a narrow type, cast to a wider one, grows to an overflow."""
_SIGNS = {"Add": 1, "DateAdd": 1, "Subtract": -1, "DateSub": -1}


def has_few_values(exprs: tuple[Expr, ...], rule: Rule, program: Program) -> bool:
    """Return whether one of ``exprs`` has a known range with few values. Fractions are too many in any range."""
    facts = facts_of(rule, program)
    return any(_is_small(range_of(e, facts), e.type) for e in exprs if not is_float(e.type))


def _is_small(range_: Range | None, type_: str) -> bool:
    """Return whether a range has few values. One that ends with its type does not: growth ends there by an overflow."""
    of_type = type_range(type_)
    if range_ is None or of_type is None or range_.is_empty:
        return False
    is_inside = of_type.low < range_.low and range_.high < of_type.high
    return is_inside and (range_.high - range_.low) / unit(type_) < _MANY


def is_finite_by_input(relation: str, names: Collection[str], program: Program) -> bool:
    """Return whether each recursive rule of ``relation`` moves one key on, the same way, along values of inputs.

    Then a row is derived in fewer steps than an input has values, so no key of the relation grows without end.
    """
    if set(names) != {relation}:
        return False
    recursive = [r for r in program.rules if r.head == relation and any(a.relation == relation for a in r.body)]
    keys = range(len(program.relation(relation).keys))
    ways = [{_direction(r, p, program) for r in recursive} for p in keys]
    return {1} in ways or {-1} in ways


def _direction(rule: Rule, position: int, program: Program) -> int:
    """Return 1 if the key at ``position`` grows from each atom of the recursion to a value of an input, -1 if it falls.

    Return 0 if neither is known.
    """
    scope = variables(rule, program)
    head = rule.exprs[position]
    equal = [_uncast(head)]
    conditions = [c for c in rule.conditions if isinstance(c, Call) and c.fn == "EqualTo"]
    for condition in conditions:
        sides = [_uncast(a) for a in condition.args]
        if equal[0] in sides:
            equal += sides
    if not any(_is_static(e, scope) for e in equal):
        return 0
    own = [a.variables[position] for a in rule.body if a.relation == rule.head]
    steps = {max((_step(e, name) for e in equal), key=abs) for name in own}
    return steps.pop() if len(steps) == 1 else 0


def _is_static(expr: Expr, scope: Mapping[str, Variable]) -> bool:
    return isinstance(expr, Col) and scope[expr.name].role == "static"


def _step(expr: Expr, name: str | None) -> int:
    """Return the sign of what ``expr`` adds to the variable ``name``; 0 if it is something else."""
    if not isinstance(expr, Call) or expr.fn not in _SIGNS or is_float(expr.type):  # 1e17 + 1 is 1e17
        return 0
    left, right = (_uncast(a) for a in expr.args)
    if isinstance(left, Lit) and expr.fn == "Add":
        left, right = right, left
    if not isinstance(left, Col) or left.name != name or not isinstance(right, Lit) or not isinstance(right.value, int):
        return 0
    return _SIGNS[expr.fn] * ((right.value > 0) - (right.value < 0))


def _uncast(expr: Expr) -> Expr:
    while isinstance(expr, Call) and expr.fn == "Cast" and is_exact(expr.args[0].type, expr.type):
        expr = expr.args[0]
    return strip_handles(expr)
