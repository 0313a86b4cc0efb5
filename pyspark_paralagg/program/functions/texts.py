"""Define functions of strings, which Spark compares by their bytes; ``compile.prove.texts`` has those that join parts.

The bytes of UTF-8 order as the code points do. A string with another collation has another type, and is opaque.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.program import fields
from pyspark_paralagg.program.expr import Lit
from pyspark_paralagg.program.functions.function import Args, Function, Setting, Shape, unmoved
from pyspark_paralagg.program.functions.value_range import Range, type_range

if TYPE_CHECKING:
    from pyspark_paralagg.program.expr import Call

FIRST = (0, 1)
"""The positions of the first character, for Spark."""


def _substring(text: Any, start: Any, length: Any) -> Any:  # noqa: ANN401 - values of any type
    if start < 0 or length < 0:
        raise ValueError(start)  # Spark would count from the end
    first = max(start - 1, 0)
    return text[first : first + length]


def _prefix(call: Call, _: Args, __: Setting) -> Shape | None:
    """Return the shape of ``substring``: the first characters of a string, or more of them, keep the order."""
    start = call.args[1]
    if call.args[0].type != "string" or not isinstance(start, Lit) or start.value not in FIRST:
        return None
    return Shape(("up", "unknown", "up"), None, ("never",) * 3, ("no",) * 3)


def left_padded(text: str, length: int, pad: str) -> str:
    """Return Spark's ``lpad``, which cuts a longer text.

    >>> left_padded("ab", 5, "xy"), left_padded("abc", 2, "x")
    ('xyxab', 'ab')
    """
    return _padding(text, length, pad) + text[: max(length, 0)]


def right_padded(text: str, length: int, pad: str) -> str:
    """Return Spark's ``rpad``, which cuts a longer text."""
    return text[: max(length, 0)] + _padding(text, length, pad)


def _padding(text: str, length: int, pad: str) -> str:
    missing = max(length - len(text), 0)
    return (pad * missing)[:missing]


def _concatenated(*parts: str) -> str:
    return "".join(parts)


def _length(call: Call, _: Args, __: Setting) -> Shape | None:
    allowed = type_range("int")
    if allowed is None:
        return None
    return unmoved(call, Range(0, allowed.high))


FUNCTIONS = (
    Function("Concat", _concatenated),
    Function("Contains", operator.contains),
    Function("Length", len, _length),
    Function("BitLength", None, _length),
    Function("OctetLength", None, _length),
    Function("Substring", _substring, _prefix),
    Function("StringLPad", left_padded),
    Function("StringRPad", right_padded),
    Function(fields.PACK, fields.pack),
    Function(fields.FIELD, fields.field),
)
