"""Convert the text of one value of a fact: a number, a float, a boolean or a string.

The careful reader of ``lines`` uses these converters, which define the format.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

TRUE, FALSE = ("true", "True", "TRUE", "1"), ("false", "False", "FALSE", "0")

NULLARY = "()"
"""The type, and the only value, of a relation without columns."""

_BLANKS = " \t"
_MIN, _MAX = -(1 << 63), (1 << 63) - 1
_BITS = 64
_DECIMAL = re.compile(r"[+-]?[0-9]+")
_OTHER_BASES = re.compile(r"0[xX](?P<hex>[0-9a-fA-F]{1,16})|0[bB](?P<binary>[01]{1,64})")


def converter(spark_type: str, is_unsigned: bool) -> Callable[[str], Any]:  # noqa: FBT001 - a property of the type
    """Return the function that converts a text to ``spark_type``; it raises ``ValueError`` with the reason."""
    if spark_type == "bigint":
        return _unsigned if is_unsigned else _integer
    others: dict[str, Callable[[str], Any]] = {"double": _float, "boolean": _boolean, "string": str, NULLARY: _holds}
    return others[spark_type]


def _integer(text: str) -> int:
    text = text.strip(_BLANKS)
    other_base = _OTHER_BASES.fullmatch(text)
    if other_base:  # the digits are the 64 bits of a signed number
        number = int(other_base["hex"], 16) if other_base["hex"] else int(other_base["binary"], 2)
        return number - (1 << _BITS) if number > _MAX else number
    if not _DECIMAL.fullmatch(text):
        message = "is not a number"
        raise ValueError(message)
    number = int(text) if len(text) < _BITS else _MIN - 1
    if not _MIN <= number <= _MAX:
        message = "does not fit into 64 bits"
        raise ValueError(message)
    return number


def _unsigned(text: str) -> int:
    number = _integer(text)
    if number < 0:
        is_signed = text.strip(_BLANKS).startswith("-")
        message = "is negative" if is_signed else "does not fit into the 63 bits of Spark's bigint"
        raise ValueError(message)
    return number


def _float(text: str) -> float:
    try:
        if "_" not in text and text.isascii():
            return float(text.strip(_BLANKS))
    except ValueError:
        pass
    message = "is not a number"
    raise ValueError(message)


def _boolean(text: str) -> bool:
    text = text.strip(_BLANKS)
    if text not in (*TRUE, *FALSE):
        message = "is neither true nor false"
        raise ValueError(message)
    return text in TRUE


def _holds(text: str) -> bool:
    if text.strip(_BLANKS) not in ("", NULLARY):
        message = f"is not {NULLARY}, the one fact of a relation without columns"
        raise ValueError(message)
    return True
