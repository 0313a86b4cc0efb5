"""Tell which Spark types the loop can hold: a value is a 64-bit word, a string its interned id.

See docs/architecture.md, "Words, ids, ghosts".
"""

from __future__ import annotations

import re

_WORDS = frozenset([
    "tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "date", "timestamp", "timestamp_ntz",
])  # fmt: skip
_MAX_DIGITS = 18


def is_word(type_: str) -> bool:
    """Return whether a value of ``type_`` is a 64-bit word, so that the loop can compute it.

    >>> is_word("decimal(18,2)"), is_word("decimal(38,2)"), is_word("string"), is_word("interval day to second")
    (True, False, False, True)
    """
    decimal = re.fullmatch(r"decimal\((\d+),\d+\)", type_)
    if decimal:
        return int(decimal[1]) <= _MAX_DIGITS
    return type_ in _WORDS or re.fullmatch(r"interval (year|month|day|hour|minute|second)( to \w+)?", type_) is not None


def is_storable(type_: str) -> bool:
    """Return whether a relation or an index can store ``type_``: a word, or a string (compared by bytes)."""
    return is_word(type_) or type_ == "string"


def is_float(type_: str) -> bool:
    """Return whether equal values of ``type_`` may differ in their bits (0.0 and -0.0)."""
    return type_ in ("float", "double")
