"""A tiny evaluator of the portable expressions, on Python values: for counterexamples and for constants (``fold``).

What it does not know raises ``NotEvaluable``; then the check says ``unknown`` instead of ``refuted``.
"""

from __future__ import annotations

import math
import operator
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.monotone import branches
from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Value = Any


class NotEvaluableError(Exception):
    """An expression, or a value for it, that this evaluator has no meaning for (1 / 0, an unknown function)."""


def _divide(a: Value, b: Value) -> Value:
    return a / b


def _truncated(a: Value, b: Value) -> Value:
    if isinstance(a, float) or isinstance(b, float):
        return math.trunc(a / b)
    return a // b if (a < 0) == (b < 0) else -(-a // b)


def _remainder(a: Value, b: Value) -> Value:
    return math.fmod(a, b) if isinstance(a, float) or isinstance(b, float) else a - b * _truncated(a, b)


def _substring(text: Value, start: Value, length: Value) -> Value:
    if start < 1 or length < 0:
        raise ValueError(start)  # Spark counts from the end then
    return text[start - 1 : start - 1 + length]


_STRICT: dict[str, Callable[..., Value]] = {
    "Add": operator.add,
    "Subtract": operator.sub,
    "Multiply": operator.mul,
    "Divide": _divide,
    "IntegralDivide": _truncated,
    "Remainder": _remainder,
    "Pmod": operator.mod,
    "UnaryMinus": operator.neg,
    "UnaryPositive": operator.pos,
    "Abs": abs,
    "Sqrt": math.sqrt,
    "Pow": math.pow,
    "Exp": math.exp,
    "Log": math.log,
    "Floor": math.floor,
    "Ceil": math.ceil,
    "EqualTo": operator.eq,
    "LessThan": operator.lt,
    "LessThanOrEqual": operator.le,
    "GreaterThan": operator.gt,
    "GreaterThanOrEqual": operator.ge,
    "Not": operator.not_,
    "BitwiseOr": operator.or_,
    "BitwiseAnd": operator.and_,
    "BitwiseXor": operator.xor,
    "BitwiseNot": operator.invert,
    "Concat": lambda *parts: "".join(parts),
    "Contains": operator.contains,
    "Length": len,
    "Substring": _substring,
}


def evaluate(expr: Expr, values: Mapping[str, Value]) -> Value:
    """The value of ``expr``; None is null.

    >>> evaluate(Call("Least", (Col("a", "int"), Lit(None, "int"), Lit(3, "int")), "int"), {"a": 5})
    3
    """
    if isinstance(expr, Col):
        return values[expr.name]
    if isinstance(expr, Lit):
        return expr.value
    try:
        return _call(expr, values)
    except (ArithmeticError, ValueError, TypeError) as failure:
        raise NotEvaluableError(expr.fn) from failure


def _call(expr: Call, values: Mapping[str, Value]) -> Value:  # noqa: PLR0911 - one function a case
    if expr.fn in ("If", "CaseWhen"):
        return _choose(expr, values)
    if expr.fn in ("And", "Or", "Coalesce"):
        return _until(expr, values)
    args = [evaluate(a, values) for a in expr.args]
    present = [a for a in args if a is not None]
    match expr.fn:
        case "IsNull":
            return args[0] is None
        case "IsNotNull":
            return args[0] is not None
        case "Least" | "Greatest":
            return (min if expr.fn == "Least" else max)(present) if present else None
        case "Cast":
            return None if args[0] is None else _cast(args[0], expr.args[0].type, expr.type)
        case fn if fn in _STRICT:
            return None if None in args else _STRICT[fn](*args)
        case _:
            raise NotEvaluableError(expr.fn)


def _until(expr: Call, values: Mapping[str, Value]) -> Value:
    """And, Or and Coalesce end with the first argument that decides; what comes after it is not evaluated."""
    found: list[Value] = []
    for arg in expr.args:
        found.append(evaluate(arg, values))
        decides = found[-1] is not None if expr.fn == "Coalesce" else found[-1] is (expr.fn == "Or")
        if decides:
            return found[-1]
    return None if None in found else expr.fn == "And"


def _choose(expr: Call, values: Mapping[str, Value]) -> Value:
    conditions, results = branches(expr)
    for condition, result in zip(conditions, results, strict=False):
        if evaluate(condition, values) is True:
            return evaluate(result, values)
    return evaluate(results[-1], values) if len(results) > len(conditions) else None


def _cast(value: Value, source: str, target: str) -> Value:
    if source == target:
        return value
    if isinstance(value, bool | int | float) and source != "boolean":
        if is_integral(target):
            return math.trunc(value)
        if target in ("double", "float"):
            return float(value)
        if target.startswith("decimal"):
            return value
    raise NotEvaluableError(target)
