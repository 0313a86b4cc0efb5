"""Evaluate portable expressions on Python values: for counterexamples and for constants (``fold``).

An unsupported expression raises ``NotEvaluableError``; the proof then reports ``unknown`` instead of ``refuted``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, branches
from pyspark_paralagg.program.functions import FUNCTIONS
from pyspark_paralagg.program.functions.arithmetic import to_number
from pyspark_paralagg.program.functions.casts import convert
from pyspark_paralagg.program.functions.value_range import decimal_digits, type_range

if TYPE_CHECKING:
    from collections.abc import Mapping

Value = Any


class NotEvaluableError(Exception):
    """An expression that this evaluator does not support, or that fails for these values (1 / 0)."""


def evaluate(expr: Expr, values: Mapping[str, Value]) -> Value:
    """Return the value of ``expr``; None is null.

    >>> evaluate(Call("Least", (Col("a", "int"), Lit(None, "int"), Lit(3, "int")), "int"), {"a": 5})
    3
    """
    if isinstance(expr, Col):
        return values[expr.name]
    if isinstance(expr, Lit):
        return to_number(expr.value, expr.type) if expr.value is not None and decimal_digits(expr.type) else expr.value
    try:
        value = _call(expr, values)
    except (ArithmeticError, ValueError, TypeError) as failure:
        raise NotEvaluableError(expr.fn) from failure
    allowed = type_range(expr.type) if is_integral(expr.type) else None
    if value is not None and allowed is not None and value not in allowed:
        raise NotEvaluableError(expr.fn)  # it overflows
    return value


def _call(expr: Call, values: Mapping[str, Value]) -> Value:  # noqa: PLR0911 - one function a case
    if expr.fn in ("If", "CaseWhen"):
        return _choose(expr, values)
    if expr.fn in ("And", "Or", "Coalesce"):
        return _short_circuit(expr, values)
    if expr.fn in ("Between", "Present"):  # guards, which change no value
        return evaluate(expr.args[0], values)
    args = [evaluate(a, values) for a in expr.args]
    present = [a for a in args if a is not None]
    match expr.fn:
        case "IsNull":
            return args[0] is None
        case "IsNotNull":
            return args[0] is not None
        case "Least" | "Greatest":
            return (min if expr.fn == "Least" else max)(present) if present else None
        case "ConcatWs":  # skips nulls
            return None if args[0] is None else args[0].join(a for a in args[1:] if a is not None)
        case "Cast":
            return None if args[0] is None else convert(args[0], expr.args[0].type, expr.type)
    function = FUNCTIONS.get(expr.fn)
    if function is None or function.compute is None:
        raise NotEvaluableError(expr.fn)
    return None if None in args else function.compute(*args)


def _short_circuit(expr: Call, values: Mapping[str, Value]) -> Value:
    """Evaluate And, Or and Coalesce up to the first argument that decides; later arguments are not evaluated."""
    values_so_far: list[Value] = []
    for arg in expr.args:
        values_so_far.append(evaluate(arg, values))
        decides = values_so_far[-1] is not None if expr.fn == "Coalesce" else values_so_far[-1] is (expr.fn == "Or")
        if decides:
            return values_so_far[-1]
    return None if None in values_so_far else expr.fn == "And"


def _choose(expr: Call, values: Mapping[str, Value]) -> Value:
    conditions, results = branches(expr)
    for condition, result in zip(conditions, results, strict=False):
        if evaluate(condition, values) is True:
            return evaluate(result, values)
    return evaluate(results[-1], values) if len(results) > len(conditions) else None
