"""Render expressions as Spark SQL, for Programs that come from Datalog texts.

It supports only the functions to which Datalog's terms translate. Expressions from Spark have handles and need no text.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.program.expr import ASSERT_UNSIGNED, Call, Col, Expr, Lit
from pyspark_paralagg.program.fields import FIELD, PACK, field_sql, pack_sql
from pyspark_paralagg.program.sets import ELEMENT_SET, MERGED_SETS, limit_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_INFIX = {
    "Add": "+", "Subtract": "-", "Multiply": "*", "Divide": "/", "IntegralDivide": "div", "Remainder": "%",
    "BitwiseAnd": "&", "BitwiseOr": "|", "BitwiseXor": "^", "And": "AND", "Or": "OR",
    "EqualTo": "=", "EqualNullSafe": "<=>", "LessThan": "<", "LessThanOrEqual": "<=", "GreaterThan": ">",
    "GreaterThanOrEqual": ">=", "RLike": "RLIKE",
}  # fmt: skip
_PREFIX = {"Not": "NOT", "UnaryMinus": "-", "BitwiseNot": "~"}
_CALLS = {
    "Least": "least", "Greatest": "greatest", "If": "if", "Concat": "concat", "Length": "length",
    "Contains": "contains", "Substring": "substring", "Pow": "power", "Coalesce": "coalesce", "ShiftLeft": "shiftleft",
    "ShiftRight": "shiftright", "ShiftRightUnsigned": "shiftrightunsigned",
}  # fmt: skip


_MAY_FAIL = ("Add", "Subtract", "Multiply", "Divide", "IntegralDivide", "Remainder", "UnaryMinus", "Cast")


def to_sql(  # noqa: PLR0911 - a return for each kind of expression
    expr: Expr, names: Mapping[str, str] | None = None, place: str | None = None
) -> str:
    """Return the text of ``expr``; ``names`` renames its columns.

    If an expression fails, Spark shows its text. Calls that may fail have ``place`` as a comment.

    >>> from pyspark_paralagg.program.expr import Call
    >>> to_sql(Call("Add", (Col("d", "bigint"), Lit(1, "bigint")), "bigint"))
    '(`d` + 1L)'
    """
    if isinstance(expr, Col):
        return quoted((names or {}).get(expr.name, expr.name))
    if isinstance(expr, Lit):
        return _literal(expr)
    args = [to_sql(a, names, place) for a in expr.args]
    note = f"/* {place.replace('*', '')} */ " if place and expr.fn in _MAY_FAIL and expr.type != "string" else ""
    if expr.fn == "RLike" and not isinstance(expr.args[1], Lit):
        return f"(regexp_instr({args[0]}, {args[1]}) > 0)"  # an invalid pattern has an error class there, in RLIKE none
    if expr.fn in _INFIX:
        return f"({args[0]} {note}{_INFIX[expr.fn]} {args[1]})"
    if expr.fn in _PREFIX:
        return f"({_PREFIX[expr.fn]} {note}{args[0]})"
    if expr.fn == ASSERT_UNSIGNED:
        message = expr.args[1]
        assert isinstance(message, Lit)  # noqa: S101 - its constructor passes a literal
        error = _literal(replace(message, value=f"[PARALAGG_DATALOG_UNSIGNED] {message.value}"))
        return f"if({args[0]} < 0L, cast(raise_error({error}) as {expr.type}), {args[0]})"
    if expr.fn in (PACK, FIELD, ELEMENT_SET, MERGED_SETS):
        return _structure(expr, args)
    if expr.fn == "Cast":
        return f"cast({args[0]} {note}as {expr.type})"
    return f"{_CALLS[expr.fn]}({', '.join(args)})"


def _structure(call: Call, args: list[str]) -> str:
    """Return the text of a function of ``sets``, or of ``fields``, whose layout is constant."""
    if call.fn == ELEMENT_SET:
        return f"CASE WHEN {args[0]} IS NOT NULL THEN array({args[0]}) END"
    if call.fn == MERGED_SETS:
        return f"slice(sort_array(array_union({args[0]}, {args[1]})), 1, {limit_of(call)})"
    values: list[Any] = [a.value if isinstance(a, Lit) else None for a in call.args]
    if call.fn == PACK:
        return pack_sql(args[0], len(values[0]), args[1:])
    _, prefix, count, index, _ = values
    return field_sql(args[0], args[1], len(prefix), count, index, args[4])


def quoted(name: str) -> str:
    """Quote a column's name for Spark's parser."""
    return "`" + name.replace("`", "``") + "`"


def _literal(expr: Lit) -> str:
    value = expr.value
    if value is None:
        return f"cast(null as {expr.type})"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n").replace("\r", "\\r")
        return f"'{escaped}'"
    if expr.type == "bigint":
        # The least number has no literal, because a literal has no sign.
        return f"{value}L" if value > -(1 << 63) else f"({value + 1}L - 1L)"
    return f"cast('{value!r}' as double)" if value in (float("inf"), float("-inf")) or value != value else f"{value!r}D"  # noqa: PLR0124 - NaN
