"""Sets of bounded size as values: arrays in ascending order, which ``ra.collect_set`` and ``$COLLECT_SET`` merge.

Two functions of a Program make them. Engines store a set as a text (``compile.rewrite.pack``). This module has the
layout of ``plan/Packer.scala``, for the engine on ranks, which has no arrays: bytes that compare as the value, of which
a character has six bits. A set is a 2 before each element, and a 0.
"""

from __future__ import annotations

import base64
import math
import struct
from typing import Any

from pyspark_paralagg.program.expr import Call, Col, Expr, Lit

COLLECT_SET = "collect_set"
MERGED_SETS, ELEMENT_SET = "MergedSets", "ElementSet"
"""The least elements of two sets: ``(a, b, limit, type)``. The set of one value, null of a null: ``(x, type)``."""

_ARRAY = "array<"
_END, _ELEMENT, _ESCAPE = 0, 2, 1
_SIGN = 1 << 63
_WORD_BYTES, _WIDE_BYTES = 8, 16
_STANDARD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_CHARACTERS = bytes(range(ord("0"), ord("0") + 64))
_TO_TEXT, _TO_BASE64 = bytes.maketrans(_STANDARD, _CHARACTERS), bytes.maketrans(_CHARACTERS, _STANDARD)
_WORDS = ("tinyint", "smallint", "int", "bigint", "date", "timestamp", "timestamp_ntz")


def set_type(element: str) -> str:
    """Return the type of sets of ``element``."""
    return f"{_ARRAY}{element}>"


def element_type(type_: str) -> str | None:
    """Return the type of the elements of an array type; None for any other type.

    >>> element_type("array<bigint>"), element_type("bigint")
    ('bigint', None)
    """
    return type_[len(_ARRAY) : -1] if type_.startswith(_ARRAY) else None


def merged_sets(type_: str, limit: int) -> Call:
    """Return the combination of ``old.value`` and ``new.value``, as an aggregator has it."""
    return _merge(Col("old.value", type_, nullable=False), Col("new.value", type_, nullable=False), limit)


def least_elements(value: Expr, limit: int) -> Call:
    """Return the set ``value`` with at most ``limit`` elements."""
    return _merge(value, value, limit)


def _merge(a: Expr, b: Expr, limit: int) -> Call:
    nullable = not all(isinstance(side, Col) and not side.nullable for side in (a, b))
    return Call(MERGED_SETS, (a, b, Lit(limit, "int"), Lit(a.type, "string")), a.type, nullable)


def element_set(value: Expr, type_: str) -> Call:
    """Return the set of one ``value``."""
    return Call(ELEMENT_SET, (value, Lit(type_, "string")), type_)


def limit_of(merge: Expr) -> int:
    """Return the limit of ``merged_sets``."""
    limit = merge.args[2] if isinstance(merge, Call) else None
    assert isinstance(limit, Lit)  # noqa: S101 - `merged_sets` passes one
    return int(str(limit.value))


def is_set_merge(expr: Expr) -> bool:
    """Return whether ``expr`` merges two sets."""
    return isinstance(expr, Call) and expr.fn == MERGED_SETS


def is_word_or_text(element: str) -> bool:
    """Return whether the engine on ranks has sets of this type."""
    return element in (*_WORDS, "float", "double", "boolean", "string") or element.startswith("decimal(")


def element_text(value: Any, element: str) -> str:  # noqa: ANN401 - a word of any type, or a text
    """Return the text of the set of one value. Dates and decimals are their number.

    >>> unpacked(element_text("ann", "string"), "string")
    ['ann']
    """
    return _packed([_item(value, element)])


def merged_text(a: str, b: str, limit: int, element: str) -> str:
    """Return the text of the ``limit`` least elements of two sets.

    >>> a, b = element_text(7, "bigint"), element_text(-1, "bigint")
    >>> unpacked(merged_text(merged_text(a, b, 2, "bigint"), a, 2, "bigint"), "bigint")
    [-1, 7]
    """
    return _packed(sorted({*_items(a, element), *_items(b, element)})[:limit])


def unpacked(text: str, element: str) -> list[Any]:
    """Return the elements of a set, as ``element_text`` takes them."""
    return [_value(item, element) for item in _items(text, element)]


def _packed(items: list[bytes]) -> str:
    data = b"".join(bytes([_ELEMENT]) + item for item in items) + bytes([_END])
    return base64.b64encode(data).rstrip(b"=").translate(_TO_TEXT).decode()


def _items(text: str, element: str) -> list[bytes]:
    encoded = text.encode().translate(_TO_BASE64)
    data = base64.b64decode(encoded + b"=" * (-len(encoded) % 4))
    if element == "string":  # no byte of an element is 0
        return [part[1:] + bytes([_END]) for part in data[:-1].split(bytes([_END]))[:-1]]
    size = 1 if element == "boolean" else _WIDE_BYTES if element.startswith("decimal(") else _WORD_BYTES
    return [data[at + 1 : at + 1 + size] for at in range(0, len(data) - 1, size + 1)]


def _item(value: Any, element: str) -> bytes:  # noqa: ANN401 - a word of any type, or a text
    if element == "string":
        return value.encode().replace(b"\1", b"\1\2").replace(b"\0", b"\1\1") + bytes([_END])  # type: ignore[no-any-return]
    if element == "boolean":
        return bytes([value])
    if element.startswith("decimal("):
        return (int(value) + (1 << 8 * _WIDE_BYTES - 1)).to_bytes(_WIDE_BYTES, "big")
    if element in ("float", "double"):
        bits = struct.unpack(">Q", struct.pack(">d", math.nan if value != value else value + 0.0))[0]  # noqa: PLR0124 - NaN
        return (bits ^ (2 * _SIGN - 1) if bits & _SIGN else bits ^ _SIGN).to_bytes(_WORD_BYTES, "big")  # type: ignore[no-any-return]
    return (int(value) + _SIGN).to_bytes(_WORD_BYTES, "big")


def _value(item: bytes, element: str) -> Any:  # noqa: ANN401 - as `_item`
    if element == "string":
        return item[:-1].replace(b"\1\1", b"\0").replace(b"\1\2", b"\1").decode()
    bits = int.from_bytes(item, "big")
    if element == "boolean":
        return bits != 0
    if element.startswith("decimal("):
        return bits - (1 << 8 * _WIDE_BYTES - 1)
    if element in ("float", "double"):
        return struct.unpack(">d", (bits ^ _SIGN if bits & _SIGN else bits ^ (2 * _SIGN - 1)).to_bytes(8, "big"))[0]
    return bits - _SIGN
