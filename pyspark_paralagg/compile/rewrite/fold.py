"""Fold constant expressions where the result is exact and cannot raise; leave all others to Spark.

    cast(3 as bigint) + 1          4
    2147483647 + 1  (int)          stays: it overflows, and Spark decides the result
    7 / 0                          stays: it raises, but only if a row reaches it
    if(1 < 2, x, y)                x

Decimal and time constants are stored as Spark prints them, which is not exact, so they are never folded.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from pyspark_paralagg.compile.rewrite.evaluate import NotEvaluableError, evaluate
from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.expr import Call, Expr, Lit

_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_EXACT_IN_DOUBLE = 1 << 53

_ON_INTEGERS = frozenset([
    "Add", "Subtract", "Multiply", "UnaryMinus", "Abs", "IntegralDivide", "Remainder", "Least", "Greatest", "Cast",
    "Coalesce", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "BitwiseNot",
])  # fmt: skip
_ON_DOUBLES = frozenset(["Add", "Subtract", "Multiply", "Divide", "UnaryMinus"])
_BOOLEANS = frozenset([
    "EqualTo", "LessThan", "LessThanOrEqual", "GreaterThan", "GreaterThanOrEqual", "And", "Or", "Not", "IsNull",
    "IsNotNull", "Coalesce",
])  # fmt: skip


def fold(expr: Expr) -> Expr:
    """Return ``expr`` with constant subexpressions replaced by their values.

    >>> fold(Call("Add", (Call("Cast", (Lit(3, "int"),), "bigint"), Lit(1, "bigint")), "bigint"))
    Lit(value=4, type='bigint', handle=None)
    >>> fold(Call("Add", (Lit(127, "tinyint"), Lit(1, "tinyint")), "tinyint")).fn
    'Add'
    """
    if not isinstance(expr, Call) or not expr.deterministic:
        return expr
    args = tuple(fold(a) for a in expr.args)
    folded = expr if args == expr.args else replace(expr, args=args)
    if expr.fn == "If" and isinstance(args[0], Lit):
        return args[1] if args[0].value is True else args[2]
    if args and all(isinstance(a, Lit) and _is_exact(a.value, a.type) for a in args) and _is_foldable(folded):
        try:
            value = evaluate(folded, {})
        except NotEvaluableError:
            return folded
        if _is_exact(value, expr.type):
            return Lit(value, expr.type)
    return folded


def _is_foldable(call: Call) -> bool:
    sources = {a.type for a in call.args}
    if call.fn == "Cast":
        # To another integer type if it holds the value; to double if it is exact.
        return is_integral(call.args[0].type) and (is_integral(call.type) or call.type == "double")
    if call.type == "boolean":
        return call.fn in _BOOLEANS
    if len(sources) == 1 and sources == {call.type}:
        return call.fn in (_ON_INTEGERS if is_integral(call.type) else _ON_DOUBLES)
    return False


def _is_exact(value: Any, type_: str) -> bool:  # noqa: ANN401 - the value of any constant
    """Return whether Python's ``value`` is a constant of that type that all engines represent without loss."""
    if value is None:
        return True
    if type_ == "boolean":
        return isinstance(value, bool)
    if type_ == "string":
        return isinstance(value, str)
    if type_ == "double":
        if isinstance(value, int) and not isinstance(value, bool):
            return abs(value) <= _EXACT_IN_DOUBLE
        return isinstance(value, float) and math.isfinite(value)
    bits = _BITS.get(type_)
    return bits is not None and type(value) is int and -(1 << bits - 1) <= value < 1 << bits - 1
