"""Which signs an expression can have: what the rule system of ``monotone`` and ``bounded`` needs to know of factors.

Signs come from literals, from what the user assumes (``assume="w >= 0"``), from filters, and from functions such as
``abs``. A sign set is one of the subsets of {-1, 0, 1}; nulls have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.scope import variables
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.program.program import Program, Rule

Signs = frozenset[int]
ANY: Signs = frozenset((-1, 0, 1))
NOT_NEGATIVE: Signs = frozenset((0, 1))
NOT_POSITIVE: Signs = frozenset((-1, 0))
NEVER_NEGATIVE = ("Abs", "Sqrt", "Length", "BitLength", "OctetLength", "Exp")
_MIRROR = {
    "LessThan": "GreaterThan",
    "GreaterThan": "LessThan",
    "LessThanOrEqual": "GreaterThanOrEqual",
    "GreaterThanOrEqual": "LessThanOrEqual",
    "EqualTo": "EqualTo",
}


def signs(expr: Expr, facts: Mapping[str, Signs]) -> Signs:  # noqa: C901, PLR0911, PLR0912 - one function a line
    """The signs that ``expr`` can have where its variables have those in ``facts``.

    >>> sorted(signs(Call("Multiply", (Col("x", "int"), Col("x", "int")), "int"), {}))
    [0, 1]
    """
    if isinstance(expr, Col):
        return facts.get(expr.name, ANY)
    if isinstance(expr, Lit):
        return _of_number(expr.value)
    if expr.fn in NEVER_NEGATIVE:
        return NOT_NEGATIVE
    if expr.fn == "Multiply" and expr.args[0] == expr.args[1]:
        return frozenset(s * s for s in signs(expr.args[0], facts))
    parts = [signs(a, facts) for a in expr.args]
    match expr.fn:
        case "Add":
            return sum_of(*parts)
        case "Subtract":
            return sum_of(parts[0], _negative(parts[1]))
        case "Multiply" | "Divide" | "IntegralDivide":
            found = frozenset(a * b for a in parts[0] for b in parts[1])
            return found | {0} if expr.fn == "IntegralDivide" else found
        case "UnaryMinus":
            return _negative(parts[0])
        case "Least":
            top = min((max(p) for p, a in zip(parts, expr.args, strict=True) if isinstance(a, Lit)), default=1)
            return frozenset(s for p in parts for s in p if s <= top)
        case "Greatest":
            bottom = max((min(p) for p, a in zip(parts, expr.args, strict=True) if isinstance(a, Lit)), default=-1)
            return frozenset(s for p in parts for s in p if s >= bottom)
        case "Cast" | "Coalesce":
            return frozenset().union(*parts)
        case "If":
            return parts[1] | parts[2]
        case "CaseWhen":
            return frozenset().union(*parts[1::2], *(parts[-1:] if len(parts) % 2 else ()))
        case _:
            return ANY


def _of_number(value: object) -> Signs:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ANY
    return frozenset(((value > 0) - (value < 0),))


def _negative(of: Signs) -> Signs:
    return frozenset(-s for s in of)


def sum_of(a: Signs, b: Signs) -> Signs:
    """The signs of a sum."""
    out: set[int] = set()
    for x in a:
        for y in b:
            out |= {x or y} if x == y or not x or not y else {-1, 0, 1}
    return frozenset(out)


def fact(condition: Expr) -> tuple[str, Signs] | None:
    """What ``column >= number`` says of the column's sign; None for conditions of another form."""
    if not isinstance(condition, Call) or condition.fn not in _MIRROR:
        return None
    fn, (left, right) = condition.fn, condition.args
    if isinstance(_uncast(right), Col):
        fn, left, right = _MIRROR[fn], right, left
    column, number = _uncast(left), _uncast(right)
    if not isinstance(column, Col) or not isinstance(number, Lit) or not isinstance(number.value, int | float):
        return None
    limit, out = number.value, set()
    for sign in (-1, 0, 1):
        # Whether a number of that sign can lie on the right side of the limit.
        reaches = sign == (limit > 0) - (limit < 0) if fn == "EqualTo" else _reaches(sign, fn, limit)
        out |= {sign} if reaches else set()
    return column.name, frozenset(out)


def _reaches(sign: int, fn: str, limit: float) -> bool:
    if sign == 0:
        return {"GreaterThan": limit < 0, "GreaterThanOrEqual": limit <= 0, "LessThan": limit > 0}.get(fn, limit >= 0)
    return sign > 0 or limit < 0 if fn.startswith("Greater") else sign < 0 or limit > 0


def _uncast(expr: Expr) -> Expr:
    return expr.args[0] if isinstance(expr, Call) and expr.fn == "Cast" else expr


def facts_of(
    rule: Rule, program: Program, invariants: Mapping[tuple[str, str], Signs] | None = None
) -> dict[str, Signs]:
    """What is known of the signs of a rule's variables: from assumptions, by the user's names, and from filters.

    An assumption holds for columns of the user's DataFrames, where it is guarded at load; ``invariants``, by relation
    and column, for the recursion's own.
    """
    own = invariants or {}
    by_name: dict[str, Signs] = {}
    for column, allowed in filter(None, map(fact, program.assume)):
        by_name[column] = by_name.get(column, ANY) & allowed
    out: dict[str, Signs] = {}
    for name, v in variables(rule, program).items():
        out[name] = own.get((str(v.relation), v.column.name), ANY)
        if v.dependent is not None and v.dependent.definition.is_counted:
            out[name] = NOT_NEGATIVE
        source = rule.body[v.atom].input
        if source is None or not isinstance(program.input(source).exprs[v.position], Col):
            continue
        if program.input(source).relation is None:
            out[name] &= by_name.get(v.column.name, ANY)
        else:
            out[name] &= own.get((str(program.input(source).relation), v.column.name), ANY)
        for f in map(fact, program.input(source).filters):
            out[name] &= f[1] if f is not None and f[0] == v.column.name else ANY
    for f in map(fact, rule.conditions):
        if f is not None:
            out[f[0]] &= f[1]
    return out
