"""Pack fields into one text and read them again: how records and branches of algebraic data types are stored.

    prefix "r", fields "7" and "ab"     r 10000018 10000020 7 ab            (without the blanks)

After the prefix comes a header of 8 digits for each field, then the fields. A header is the position where its field
ends, plus 10,000,000, so that it always has 8 digits. Equal fields give equal texts and unequal ones unequal texts.
"""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

PACK, FIELD = "PackFields", "FieldOf"
"""The names of the functions in a Program."""

WIDTH = 8
BASE = 10**7
_PLAIN_MIN, _PLAIN_MAX = 1e-3, 1e7


def pack(prefix: str, *fields: str) -> str:
    """Return the text of ``fields``, whose length is below 10**7 characters (else ``OverflowError``).

    >>> pack("r", "7", "ab")
    'r10000018100000207ab'
    """
    end = len(prefix) + WIDTH * len(fields)
    headers = []
    for f in fields:
        end += len(f)
        headers.append(str(BASE + end))
    if end >= BASE:
        message = f"a record or branch has {end:,} characters, and at most {BASE:,} are possible"
        raise OverflowError(message)
    return "".join((prefix, *headers, *fields))


def field(text: str, prefix: str, count: int, index: int, default: str) -> str:
    """Return field ``index`` of ``count``; ``default`` if ``text`` has another prefix.

    >>> field("r10000018100000207ab", "r", 2, 1, "")
    'ab'
    """
    if not text.startswith(prefix):
        return default
    start = len(prefix)
    first = start + WIDTH * (index - 1)
    begin = start + WIDTH * count if index == 0 else int(text[first : first + WIDTH]) - BASE
    first += WIDTH
    return text[begin : int(text[first : first + WIDTH]) - BASE]


def pack_sql(prefix: str, prefix_size: int, fields: Sequence[str]) -> str:
    """Return ``pack`` in SQL; ``prefix`` and ``fields`` are SQL."""
    end = str(BASE + prefix_size + WIDTH * len(fields))
    headers = []
    for f in fields:
        end = f"{end} + length({f})"
        headers.append(f"cast({end} as string)")
    return f"concat({', '.join((prefix, *headers, *fields))})"


def field_sql(text: str, prefix: str, prefix_size: int, count: int, index: int, default: str) -> str:  # noqa: PLR0913, PLR0917 - as field
    """Return ``field`` in SQL; ``text``, ``prefix`` and ``default`` are SQL."""

    def end(n: int) -> str:
        if n < 0:
            return str(prefix_size + WIDTH * count)
        return f"(cast(substring({text}, {1 + prefix_size + WIDTH * n}, {WIDTH}) as int) - {BASE})"

    begin = end(index - 1)
    part = f"substring({text}, {begin} + 1, {end(index)} - {begin})"
    return f"if(startswith({text}, {prefix}), {part}, {default})"


def float_text(value: float) -> str:
    """Return the text that Spark casts a double to, so that literals and computed values are equal.

    >>> float_text(1.5), float_text(1e20), float_text(-2.5e-7)
    ('1.5', '1.0E20', '-2.5E-7')
    """
    if value == 0 or _PLAIN_MIN <= abs(value) < _PLAIN_MAX:
        return repr(value)
    digits, _, exponent = f"{value!r}".partition("e")
    if not exponent:  # repr writes more values without an exponent
        _, _, exponent = f"{value:e}".partition("e")
        digits = format(decimal.Decimal(repr(value)).scaleb(-int(exponent)).normalize(), "f")
    return f"{digits if '.' in digits else f'{digits}.0'}E{int(exponent)}"
