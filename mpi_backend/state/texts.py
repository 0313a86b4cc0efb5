"""Compute functions of texts in Python, once for each combination of arguments, with Spark's semantics."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import ParalaggError, UnsupportedError
from pyspark_paralagg.program import fields, patterns, sets
from pyspark_paralagg.program.functions import texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.state.types import Type

Scalar = Any


@dataclass(frozen=True)
class TextCall:
    """A call of a function of texts in generated code, which looks the result up by the words of the arguments.

    ``constants`` are further arguments, the same for all rows.
    """

    fn: str
    args: tuple[Type, ...]
    result: Type
    constants: tuple[Scalar, ...] = ()


_WHOLE = re.compile(r"[+-]?[0-9]+")
_FRACTION = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_SPECIAL = {
    "inf": "inf",
    "+inf": "inf",
    "infinity": "inf",
    "+infinity": "inf",
    "-inf": "-inf",
    "-infinity": "-inf",
    "nan": "nan",
}
_TRUE, _FALSE = ("t", "true", "y", "yes", "1"), ("f", "false", "n", "no", "0")
_MAX_PLAIN_SCALE = 6
"""The largest scale of decimals that Spark always writes without an exponent."""


class TextError(ParalaggError, ArithmeticError):
    """The error of a text that cannot be cast, or that is an invalid pattern."""


def _substring(text: str, position: int, length: int) -> str:
    """Return a substring. Positions begin at 1, and 0 means 1. Negative ones count from the end.

    Characters before the start of the text count towards ``length``.
    """
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = max(start, start + length)
    return text[max(start, 0) : max(end, 0)]


def _matches(text: str, pattern: str) -> bool:
    return _search(text, pattern) is not None


def _position(text: str, pattern: str, _group: int = 0) -> int:
    """Return where the first match begins, from 1 in UTF-16 units as in Java; 0 if there is none."""
    first = _search(text, pattern)
    return 0 if first is None else len(text[: first.start()].encode("utf-16-le")) // 2 + 1


def _search(text: str, pattern: str) -> re.Match[str] | None:
    inner = patterns.inner(pattern)
    check_portable(inner)
    fault = patterns.fault(inner)
    if fault is not None:
        raise TextError(patterns.CODE, fault, value=inner, hint=patterns.HINT)
    return re.search(pattern, text, re.ASCII)


def check_pattern(pattern: str) -> None:
    """Raise ``UnsupportedError`` for a pattern that is invalid or has another meaning in Java than in Python."""
    inner = patterns.inner(pattern)
    check_portable(inner)
    fault = patterns.fault(inner)
    if fault is not None:
        raise UnsupportedError("PARALAGG_EXPRESSION_UNPORTABLE", fault, value=inner, hint=patterns.HINT)


def check_portable(pattern: str) -> None:
    """Raise ``UnsupportedError`` for a pattern that has another meaning in Java than in Python."""
    if not patterns.is_portable(pattern):
        raise UnsupportedError(
            "PARALAGG_EXPRESSION_UNPORTABLE", f"the pattern {pattern!r} means something else in Java", value=pattern
        )


TEXT_FUNCTIONS: dict[str, Callable[..., Scalar]] = {
    "Concat": lambda *parts: "".join(parts),
    "Length": len,
    "Substring": _substring,
    "StringLPad": texts.left_padded,
    "StringRPad": texts.right_padded,
    "Contains": lambda text, part: part in text,
    "StartsWith": lambda text, part: text.startswith(part),
    "EndsWith": lambda text, part: text.endswith(part),
    "RLike": _matches,
    "RegExpInStr": _position,
    fields.PACK: fields.pack,
    fields.FIELD: fields.field,
    sets.ELEMENT_SET: sets.element_text,
    sets.MERGED_SETS: sets.merged_text,
}


def compute(fn: str, args: tuple[Scalar, ...], types: tuple[Type, ...], result: Type, *, ansi: bool) -> Scalar:
    """Return the value of a function of texts; None is null. Raise ``TextError`` if ANSI rules demand it."""
    if not fn.startswith("Cast "):
        return TEXT_FUNCTIONS[fn](*args)
    if result.kind == "text":
        return _format(args[0], types[0])
    value = _parse(str(args[0]).strip(), result)
    if value is None and ansi:
        raise TextError("CAST_INVALID_INPUT", f"{args[0]!r} is no {result.name}", value=args[0])
    return value


def check_cast(source: Type, target: Type) -> None:
    """Raise ``UnsupportedError`` for a cast from or to text that the engine lacks."""
    if not _can_cast(source, target):
        raise UnsupportedError(
            "PARALAGG_EXPRESSION_UNPORTABLE",
            f"the MPI engine does not cast {source.name} to {target.name}",
            value=f"{source.name} to {target.name}",
            hint="cast it before the recursion",
        )


def _can_cast(source: Type, target: Type) -> bool:
    if target.kind == "text":
        return source.kind in ("truth", "text") or (
            source.kind == "whole" and source.scale <= _MAX_PLAIN_SCALE and not source.name.startswith("timestamp")
        )
    return target.kind in ("truth", "fraction") or (
        target.kind == "whole" and target.name in ("tinyint", "smallint", "int", "bigint")
    )


def _format(value: Scalar, source: Type) -> str:
    if source.kind == "truth":
        return "true" if value else "false"
    if source.is_decimal:
        return format(Decimal(value).scaleb(-source.scale), "f")
    if source.name == "date":
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    return str(value)


def _parse(text: str, target: Type) -> Scalar:
    if target.kind == "truth":
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None
    if target.kind == "fraction":
        if text.lower() in _SPECIAL:
            return float(_SPECIAL[text.lower()])
        return float(text.rstrip("dDfF")) if _FRACTION.fullmatch(text) else None
    value = int(text) if _WHOLE.fullmatch(text) else None
    return value if value is not None and -(1 << target.bits - 1) <= value < 1 << target.bits - 1 else None
