"""Values of the smallest parts of a text: names, numbers, strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.problems import Problem, place

if TYPE_CHECKING:
    from lark import Token

_LARGEST = 2**64
_ESCAPES = {
    '"': '"', "'": "'", "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip


def leaf(token: Token) -> syntax.Term:
    """The term that ``token`` is alone."""
    span = place(token)
    if token.type == "NAME":
        return syntax.Variable(str(token), span)
    if token.type == "WILDCARD":
        return syntax.Wildcard(span)
    if token.type == "NUMBER":
        return number(token)
    if token.type == "STRING":
        return syntax.String(string(token), span)
    raise Problem(f"this is a condition, where a value is expected: `{token}`", span, f'write a number, or "{token}"')


def number(token: Token) -> syntax.Number:
    """The number that ``token`` writes."""
    text, span = str(token).lower(), place(token)
    is_based = text[:2] in ("0x", "0b")
    is_unsigned = text.endswith("u")
    digits = text.removesuffix("u")
    value: int | float
    if not is_based and ("." in digits or "e" in digits):
        value = float(digits)
        is_large = value == float("inf")
    else:
        is_large = len(digits) > 70  # noqa: PLR2004 - more than 64 binary digits: int() need not read them
        value = 0 if is_large else int(digits, {"0x": 16, "0b": 2}.get(text[:2], 10))
        is_large = is_large or value >= _LARGEST
    if is_large:
        raise Problem("this number is too large", span, "a number has 64 bits, a float is below 1.8e308")
    return syntax.Number(value, is_unsigned, span)


def string(token: Token) -> str:
    """The text of a string, its escapes resolved."""
    inner = str(token)[1:-1]
    if "\\" not in inner:
        return inner
    parts = []
    position = 0
    while position < len(inner):
        sign = inner[position]
        if sign == "\\":
            position += 1
            sign = inner[position]
            if sign not in _ESCAPES:
                at = place(token)
                column = at.column + position
                span = syntax.Span(at.line, column, at.line, column + 2)
                raise Problem(f"unknown escape `\\{sign}` in a string", span, "a backslash itself is written `\\\\`")
            sign = _ESCAPES[sign]
        parts.append(sign)
        position += 1
    return "".join(parts)
