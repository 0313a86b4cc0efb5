"""Convert single tokens to terms: names, wildcards, numbers and strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.problems import Problem, place

if TYPE_CHECKING:
    from lark import Token

_NUMBER_LIMIT = 2**64
_ADDRESS_DOTS = 3
_BYTE_LIMIT = 256
_ADDRESSES = _BYTE_LIMIT**4
_ESCAPES = {
    '"': '"', "'": "'", "\\": "\\", "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip


def leaf(token: Token) -> syntax.Term:
    """Return the term that ``token`` alone forms."""
    span = place(token)
    if token.type == "NAME":
        return syntax.Variable(str(token), span)
    if token.type == "WILDCARD":
        return syntax.Wildcard(span)
    if token.type == "NIL":
        return syntax.Nil(span)
    if token.type == "NUMBER":
        return number(token)
    if token.type == "STRING":
        return syntax.String(string(token), span)
    raise Problem(f"this is a condition, but a value is expected: `{token}`", span, f'write a number, or "{token}"')


def number(token: Token) -> syntax.Number:
    """Return the number that ``token`` denotes."""
    text, span = str(token).lower(), place(token)
    if text.count(".") == _ADDRESS_DOTS:
        return syntax.Number(_address(text.split("."), span), span=span)
    has_radix_prefix = text[:2] in ("0x", "0b")
    is_unsigned = text.endswith("u")
    digits = text.removesuffix("u")
    value: int | float
    if not has_radix_prefix and ("." in digits or "e" in digits):
        value = float(digits)
        is_too_large = value == float("inf")
    else:
        is_too_large = len(digits) > 70  # noqa: PLR2004 - longer than any 64-bit literal, so int() is not called
        value = 0 if is_too_large else int(digits, {"0x": 16, "0b": 2}.get(text[:2], 10))
        is_too_large = is_too_large or value >= _NUMBER_LIMIT
    if is_too_large:
        raise Problem("this number is too large", span, "use a number of 64 bits, or a float below 1.8e308")
    return syntax.Number(value, is_unsigned, span)


def _address(parts: list[str], span: syntax.Span) -> int:
    """Return the number of an IPv4 address, 32 bits with a sign: ``10.0.0.1`` is 167772161, ``255.255.255.255`` -1."""
    value = 0
    for part in parts:
        if int(part) >= _BYTE_LIMIT:
            raise Problem("this is not an IPv4 address", span, f"`{part}` is above 255")
        value = value * _BYTE_LIMIT + int(part)
    return value - _ADDRESSES if value >= _ADDRESSES // 2 else value


def string(token: Token) -> str:
    """Return the text of a string literal with its escapes resolved."""
    content = str(token)[1:-1]
    if "\\" not in content:
        return content
    parts = []
    position = 0
    while position < len(content):
        char = content[position]
        if char == "\\":
            position += 1
            char = content[position]
            if char not in _ESCAPES:
                start = place(token)
                column = start.column + position
                span = syntax.Span(start.line, column, start.line, column + 2)
                raise Problem(f"unknown escape `\\{char}` in a string", span, "write `\\\\` for a backslash")
            char = _ESCAPES[char]
        parts.append(char)
        position += 1
    return "".join(parts)
