"""Decide whether an expression is homogeneous linear in the sums: the rule system for the class *accumulating*.

(Wang et al., PowerLog, theorem 1, for sum and count.) If a rule reads one recursive atom and its value is a sum of that
atom's values times factors, applying it to a difference gives the difference. ``rank * 0.85 / degree`` is linear;
``n + 1``, ``n * n`` and ``1`` are not: for them the step of a sum is not the sum of the steps.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, branches, columns

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

Degree = Literal["zero", "const", "linear", "no"]
_INTEGRALS = ("tinyint", "smallint", "int", "bigint")


def degree(expr: Expr, accumulating: AbstractSet[str], nullable: AbstractSet[str] = frozenset()) -> Degree:
    """Return ``linear`` if ``expr`` is a sum of multiples of variables in ``accumulating``, ``const`` if it reads none.

    ``nullable`` are those of ``accumulating`` that may be null. One of them takes another term of a sum with it: if n
    arrives with a null m, ``m + n`` adds nothing, although both may have values in the end.

    >>> degree(Call("Multiply", (Col("n", "bigint"), Col("k", "bigint")), "bigint"), {"n"})
    'linear'
    """
    if isinstance(expr, Lit):
        return "zero" if expr.value is None or expr.value == 0 else "const"
    if isinstance(expr, Col):
        return "linear" if expr.name in accumulating else "const"
    if not columns(expr) & accumulating:
        return "zero" if expr.fn == "Cast" and degree(expr.args[0], accumulating) == "zero" else "const"
    return _call(expr, accumulating, nullable)


def _call(expr: Call, accumulating: AbstractSet[str], nullable: AbstractSet[str]) -> Degree:  # noqa: PLR0911 - one rule of the system a line
    if expr.fn in ("If", "CaseWhen"):
        conditions, values = branches(expr)
        if any(columns(c) & accumulating for c in conditions):
            return "no"
        return _all([degree(v, accumulating, nullable) for v in values])
    parts = [degree(a, accumulating, nullable) for a in expr.args]
    match expr.fn:
        case "Add" | "Subtract":
            nulls = [_nulls(a, nullable) for a, part in zip(expr.args, parts, strict=True) if part == "linear"]
            return _all(parts) if all(n == nulls[0] for n in nulls) else "no"
        case "Multiply":
            return "linear" if sorted(parts) in (["const", "linear"], ["linear", "zero"]) else "no"
        case "Divide" if not expr.type.startswith("decimal"):
            return "linear" if parts == ["linear", "const"] else "no"
        case "UnaryMinus" | "UnaryPositive":
            return parts[0]
        case "Cast":
            return parts[0] if _is_exact(expr.args[0].type, expr.type) else "no"
        case "Coalesce":
            # Null adds nothing, as zero does.
            return "linear" if parts[0] == "linear" and set(parts[1:]) <= {"zero"} else "no"
        case _:
            return "no"


def _nulls(expr: Expr, nullable: AbstractSet[str]) -> frozenset[str]:
    """Return the variables that make the linear ``expr`` null."""
    if isinstance(expr, Call):
        return (
            frozenset[str]()
            if expr.fn == "Coalesce"
            else frozenset[str]().union(*(_nulls(a, nullable) for a in expr.args))
        )
    return frozenset({expr.name} & nullable) if isinstance(expr, Col) else frozenset()


def _all(parts: list[Degree]) -> Degree:
    return "linear" if set(parts) <= {"linear", "zero"} else "no"


def _is_exact(source: str, target: str) -> bool:
    """Return whether a cast does not round; an integer as a double counts as exact."""
    if is_integral(source):
        if is_integral(target):
            return _INTEGRALS.index(source) <= _INTEGRALS.index(target)
        return target in ("double", "float") or target.startswith("decimal")
    old, new = (re.fullmatch(r"decimal\((\d+),(\d+)\)", t) for t in (source, target))
    if old and new:
        whole = int(new[1]) - int(new[2]) >= int(old[1]) - int(old[2])
        return whole and int(new[2]) >= int(old[2])
    return source == target or (source == "float" and target == "double")
