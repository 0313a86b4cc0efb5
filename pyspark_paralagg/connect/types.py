"""Find the type that Spark gives to values of several types, as its analyser does before it inserts casts."""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import Lit

if TYPE_CHECKING:
    from decimal import Decimal

_WIDTHS = ("tinyint", "smallint", "int", "bigint", "float", "double")
_WHOLE = _WIDTHS[:4]
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
_BITS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")
_MAX_DIGITS = 38
_SHORT_NAMES = {
    "byte": "tinyint", "short": "smallint", "integer": "int", "long": "bigint", "real": "float", "bool": "boolean",
    "text": "string", "timestampntz": "timestamp_ntz", "decimal": "decimal(10,0)", "dec": "decimal(10,0)",
    "numeric": "decimal(10,0)",
}  # fmt: skip


def plain(name: str) -> str:
    """Return Spark's name of a type that SQL or a user may spell otherwise.

    >>> plain("LONG"), plain("decimal(10, 2)")
    ('bigint', 'decimal(10,2)')
    """
    name = name.lower().replace(" ", "")
    return _SHORT_NAMES.get(name, name)


def is_whole(name: str) -> bool:
    """Return whether values are whole numbers in a word."""
    return name in _WHOLE


def is_number(name: str) -> bool:
    """Return whether Spark calculates with values of this type."""
    return name in _WIDTHS or decimal_of(name) is not None


def decimal_of(name: str) -> tuple[int, int] | None:
    """Return precision and scale of a decimal; None for other types."""
    found = _DECIMAL.fullmatch(name)
    return (int(found[1]), int(found[2])) if found else None


def decimal_for(name: str, literal: int | None = None) -> tuple[int, int] | None:
    """Return precision and scale with which a number takes part in a decimal calculation; None for fractions.

    A whole literal has as many digits as are written.
    """
    if name in _WHOLE:
        return (_DIGITS[name] if literal is None else len(str(abs(literal))), 0)
    return decimal_of(name)


def common(left: str, right: str, *, ansi: bool) -> str | None:
    """Return the type that holds the values of both; None if Spark has none, or reads one of them as text.

    >>> common("int", "bigint", ansi=True), common("bigint", "float", ansi=True), common("date", "int", ansi=True)
    ('bigint', 'double', None)
    """
    if right in (left, "void"):
        return left
    if left == "void":
        return right
    if left in _WIDTHS and right in _WIDTHS:
        wider = max(left, right, key=_WIDTHS.index)
        return "double" if ansi and wider == "float" and (is_whole(left) or is_whole(right)) else wider
    if not (is_number(left) and is_number(right)):
        return None
    first, second = decimal_for(left), decimal_for(right)
    if first is None or second is None:
        return "double"
    scale = max(first[1], second[1])
    return bounded(max(first[0] - first[1], second[0] - second[1]) + scale, scale)


def product_type(fn: str, left: tuple[int, int], right: tuple[int, int]) -> str | None:
    """Return the type of a sum, a difference or a product of decimals; None for other functions and too many digits."""
    if fn == "Multiply":
        return bounded(left[0] + right[0] + 1, left[1] + right[1])
    if fn not in ("Add", "Subtract"):
        return None
    scale = max(left[1], right[1])
    return bounded(max(left[0] - left[1], right[0] - right[1]) + scale + 1, scale)


def decimal_type(digits: tuple[int, int]) -> str:
    """Return the type of a decimal with this precision and scale."""
    return f"decimal({digits[0]},{digits[1]})"


def cast_may_be_null(source: str, target: str) -> bool:
    """Return whether Spark declares a cast nullable whatever its argument (``Cast.forceNullable``)."""
    if source in (target, "void") or target == "string":
        return False
    if source == "string" or (source == "date" and target != "timestamp"):
        return True
    if target == "date":
        return source != "timestamp"
    wide = decimal_of(target)
    if wide is not None:
        own = (1, 0) if source == "boolean" else decimal_for(source)
        return own is None or wide[0] - wide[1] < own[0] - own[1] or wide[1] < own[1]
    return not is_whole(source) and is_number(source) and is_whole(target)


def constant_of(value: Decimal, target: str) -> Lit | None:
    """Return a number as a constant of another type; None if it does not fit, or if that is no number in a word.

    >>> from decimal import Decimal
    >>> constant_of(Decimal(5), "tinyint"), constant_of(Decimal(300), "tinyint")
    (Lit(value=5, type='tinyint', handle=None), None)
    """
    if target == "double":
        return Lit(float(value), target)
    if target == "float":
        return Lit(float(struct.unpack("f", struct.pack("f", float(value)))[0]), target)
    bound = 1 << _BITS.get(target, 0) - 1 if target in _BITS else 0
    return Lit(int(value), target) if value == int(value) and -bound <= value < bound else None


def bounded(precision: int, scale: int) -> str | None:
    """Return a decimal type; None where Spark would cut its scale."""
    return decimal_type((precision, scale)) if precision <= _MAX_DIGITS else None
