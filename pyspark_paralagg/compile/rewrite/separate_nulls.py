"""Split joins on ``a <=> b`` into cases of equalities, which a join looks up in an index.

    reach(y) :- reach(x), edges(a, y), x <=> a

    reach(y) :- reach(x), edges(a, y), x = a
    reach(y) :- reach(x), edges(a, y), x IS NULL = a IS NULL, x IS NULL, a IS NULL

A row belongs to one case at most, so a sum counts it once. An anti join becomes one anti join for each case, in the
same rule. Conditions of ordinary joins are split where no equality joins their atoms. Otherwise they stay filters.
``a = b OR (a IS NULL AND b IS NULL)`` means the same as ``a <=> b``. Spark's ``a NOT IN (SELECT b ...)`` is an anti
join on ``a = b OR (a = b) IS NULL``: no row with an equal ``b``, none with a null ``b``, and none at all if ``a`` is
null.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.added import is_equal
from pyspark_paralagg.compile.rewrite.scope import dependents_in, inlined, variables
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.branch import may_be_null, strip_handles
from pyspark_paralagg.program.expr import Call, Col, columns, conjuncts
from pyspark_paralagg.program.names import fresh_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.compile.rewrite.scope import Variable
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Program, Rule

_MAX_CASES = 16
"""Of the semi joins of a rule, and of one anti join."""
_MAX_SPLIT_OF_JOINS = 2
"""Further ones stay filters: a lookup of two columns finds few rows."""


def separate_nulls(program: Program) -> Program:
    """Return the program whose joins on null-safe equalities are cases of equalities.

    Raises ``UnsupportedError`` (``PARALAGG_STEP_UNSUPPORTED``) if semi or anti joins have more than 16 cases.
    """
    return replace(program, rules=tuple(case for rule in program.rules for case in _cases(program, rule)))


def _cases(program: Program, rule: Rule) -> list[Rule]:
    conditions = tuple(c for condition in rule.conditions for c in conjuncts(condition))
    if not any(_sides(c) or _not_in(c) for c in conditions):
        return [rule]
    rule = replace(rule, conditions=tuple(map(_simpler, conditions)))
    for atom in [n for n, a in enumerate(rule.body) if a.kind == "anti"]:
        rule = _without(rule, atom, variables(rule, program))
    scope = variables(rule, program)
    pairs = {c: atoms for c in rule.conditions if (atoms := _joined(c, scope)) is not None}
    of_semi = [c for c, atoms in pairs.items() if any(rule.body[n].kind == "semi" for n in atoms)]
    _check(rule, len(of_semi), 2 ** len(of_semi), "semi")
    split = [*of_semi, *_unindexed(rule, {c: a for c, a in pairs.items() if c not in of_semi}, scope)]
    kept = tuple(c for c in rule.conditions if c not in split)
    return [replace(rule, conditions=(*kept, *case)) for case in _combined([_both_cases(c) for c in split])]


def _simpler(condition: Expr) -> Expr:
    """Return a condition of a rule with ``=`` for ``<=>`` if a side is never null."""
    sides = _sides(condition)
    return condition if sides is None or all(map(may_be_null, sides)) else is_equal(*sides)


def _sides(condition: Expr) -> tuple[Expr, Expr] | None:
    """Return ``a`` and ``b`` of ``a <=> b``, also if written as ``a = b OR (a IS NULL AND b IS NULL)``."""
    if not isinstance(condition, Call) or len(condition.args) != 2:  # noqa: PLR2004
        return None
    left, right = condition.args
    if condition.fn == "EqualNullSafe":
        return left, right
    if condition.fn != "Or" or not (isinstance(left, Call) and left.fn == "EqualTo"):
        return None
    tested = [strip_handles(n.args[0]) for n in conjuncts(right) if isinstance(n, Call) and n.fn == "IsNull"]
    sides = [strip_handles(a) for a in left.args]
    is_spelled = len(conjuncts(right)) == len(tested) and tested in (sides, sides[::-1])
    return (left.args[0], left.args[1]) if is_spelled else None


def _joined(condition: Expr, scope: Mapping[str, Variable]) -> frozenset[int] | None:
    """Return the atoms that a null-safe equality joins; None for other conditions."""
    sides = _sides(condition)
    if sides is None:
        return None
    left, right = (frozenset(scope[v].atom for v in columns(s)) for s in sides)
    return left | right if left and right and not left & right else None


def _unindexed(rule: Rule, pairs: Mapping[Expr, frozenset[int]], scope: Mapping[str, Variable]) -> list[Expr]:
    """Return those of ``pairs`` that are all that joins their atoms; values of a recursion have no index."""
    equal = [c for c in rule.conditions if isinstance(c, Call) and c.fn == "EqualTo"]
    indexed = {frozenset(scope[v].atom for v in columns(c)) for c in equal}
    found = [c for c, atoms in pairs.items() if atoms not in indexed and not dependents_in(c, scope)]
    return found[:_MAX_SPLIT_OF_JOINS]


def _without(rule: Rule, atom: int, scope: Mapping[str, Variable]) -> Rule:
    """Return ``rule`` with one anti join for each case instead of the anti join ``atom``."""
    own = [c for c in rule.conditions if _is_of(c, atom, scope)]
    ways = {c: found for c in own if (found := _cases_of_anti(c, atom, scope))}
    cases = _combined(list(ways.values()))
    _check(rule, len(ways), len(cases), "anti")
    body, conditions = list(rule.body), [c for c in rule.conditions if c not in own]
    taken = set(scope)
    for n, case in enumerate(cases):
        names = {v: fresh_name(v, taken) if n else v for v in sorted(rule.body[atom].bound)}
        taken.update(names.values())
        copied = replace(rule.body[atom], variables=tuple(v and names[v] for v in rule.body[atom].variables))
        if n:
            body.append(copied)
        renamed = {v: Col(name, scope[v].column.type, scope[v].column.nullable) for v, name in names.items()}
        conditions += [inlined(c, renamed) for c in (*(c for c in own if c not in ways), *case)]
    return replace(rule, body=tuple(body), conditions=tuple(conditions))


def _cases_of_anti(condition: Expr, atom: int, scope: Mapping[str, Variable]) -> list[list[Expr]]:
    """Return the cases of a condition of the anti join ``atom``; none if it is a condition like any other.

    Of a case of nulls it has only what reads the atom: that a row of the other side is null ends no rule.
    """
    if _joined(condition, scope) is not None:
        equalities, nulls = _both_cases(condition)
        return [equalities, [c for c in nulls if _is_of(c, atom, scope)]]
    equal = _not_in(condition)
    if not isinstance(equal, Call):
        return []
    b, a = sorted(equal.args, key=lambda side: not _is_of(side, atom, scope))
    cases: list[list[Expr]] = [[equal]]
    if may_be_null(b):
        cases.append([_is("IsNull", b)])
    if may_be_null(a):
        known = _is("IsNotNull", b)
        cases.append([Call("EqualTo", (_is("IsNull", a), known), "boolean", nullable=False), known])
    return cases


def _not_in(condition: Expr) -> Expr | None:
    """Return ``a = b`` of ``a = b OR (a = b) IS NULL``; None for other conditions."""
    if not (isinstance(condition, Call) and condition.fn == "Or" and len(condition.args) == 2):  # noqa: PLR2004
        return None
    equal, unknown = map(strip_handles, condition.args)
    is_of_equality = isinstance(unknown, Call) and unknown.fn == "IsNull" and unknown.args[0] == equal
    return condition.args[0] if isinstance(equal, Call) and equal.fn == "EqualTo" and is_of_equality else None


def _is_of(condition: Expr, atom: int, scope: Mapping[str, Variable]) -> bool:
    """Return whether ``condition`` reads ``atom``."""
    return any(scope[v].atom == atom for v in columns(condition))


def _is(test: str, side: Expr) -> Call:
    return Call(test, (side,), "boolean", nullable=False)


def _combined(ways: Sequence[Sequence[list[Expr]]]) -> list[tuple[Expr, ...]]:
    return [tuple(e for way in case for e in way) for case in product(*ways)]


def _both_cases(condition: Expr) -> tuple[list[Expr], list[Expr]]:
    """Return the cases of a null-safe equality. That both tests for null are equal is what a join looks up."""
    sides = _sides(condition)
    assert sides is not None  # noqa: S101 - the caller has found it to be one
    nulls = [_is("IsNull", side) for side in sides]
    return [is_equal(*sides)], [Call("EqualTo", tuple(nulls), "boolean", nullable=False), *nulls]


def _check(rule: Rule, number: int, cases: int, kind: str) -> None:
    if cases > _MAX_CASES:
        raise UnsupportedError(
            "PARALAGG_STEP_UNSUPPORTED",
            f"a null-safe {kind} join on {number} nullable columns cannot run inside the loop",
            value=number,
            place=rule.place,
            hint="give them a value instead of null on both sides, by coalesce",
        )
