"""Functions of texts, computed in Python once for each combination of arguments that occurs (Spark's meaning)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import ParalaggError, UnsupportedError
from pyspark_paralagg.program import patterns

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.state.types import Type

Scalar = Any


@dataclass(frozen=True)
class TextCall:
    """A function of texts in generated code: looked up by the words of its arguments, computed by Python once."""

    fn: str
    args: tuple[Type, ...]
    result: Type


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
_MOST_SCALE = 6
"""Of a decimal that Spark never writes with an exponent."""


class TextError(ParalaggError, ArithmeticError):
    """A text that has no value of the type that it is cast to, or that is no pattern."""


def _substring(text: str, position: int, length: int) -> str:
    """From 1 on; 0 is 1, too; negative positions count from the end, and what lies before the text is cut off."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = max(start, start + length)
    return text[max(start, 0) : max(end, 0)]


def _matches(text: str, pattern: str) -> bool:
    written = patterns.inner(pattern)
    check_portable(written)
    fault = patterns.fault(written)
    if fault is not None:
        raise TextError(patterns.CODE, fault, value=written, hint=patterns.HINT)
    return re.search(pattern, text, re.ASCII) is not None


def check_pattern(pattern: str) -> None:
    """Raises ``UnsupportedError`` for what Java means otherwise than Python, and for what neither reads."""
    written = patterns.inner(pattern)
    check_portable(written)
    fault = patterns.fault(written)
    if fault is not None:
        raise UnsupportedError("PARALAGG_EXPRESSION_UNPORTABLE", fault, value=written, hint=patterns.HINT)


def check_portable(pattern: str) -> None:
    """Raises ``UnsupportedError`` for what Java means otherwise than Python."""
    if not patterns.is_portable(pattern):
        raise UnsupportedError(
            "PARALAGG_EXPRESSION_UNPORTABLE", f"the pattern {pattern!r} means something else in Java", value=pattern
        )


TEXT_FUNCTIONS: dict[str, Callable[..., Scalar]] = {
    "Concat": lambda *parts: "".join(parts),
    "Length": len,
    "Substring": _substring,
    "Contains": lambda text, part: part in text,
    "StartsWith": lambda text, part: text.startswith(part),
    "EndsWith": lambda text, part: text.endswith(part),
    "RLike": _matches,
}


def compute(fn: str, args: tuple[Scalar, ...], types: tuple[Type, ...], result: Type, *, ansi: bool) -> Scalar:
    """The value of a function of texts; None is null. Raises ``TextError`` where ANSI rules have it so."""
    if not fn.startswith("Cast "):
        return TEXT_FUNCTIONS[fn](*args)
    if result.kind == "text":
        return _shown(args[0], types[0])
    found = _parsed(str(args[0]).strip(), result)
    if found is None and ansi:
        raise TextError("CAST_INVALID_INPUT", f"{args[0]!r} is no {result.name}", value=args[0])
    return found


def check_cast(source: Type, to: Type) -> None:
    """Raises ``UnsupportedError`` for a cast from or to texts that is not made here."""
    if not _can_cast(source, to):
        raise UnsupportedError(
            "PARALAGG_EXPRESSION_UNPORTABLE",
            f"the MPI engine does not cast {source.name} to {to.name}",
            value=f"{source.name} to {to.name}",
            hint="cast it before the recursion",
        )


def _can_cast(source: Type, to: Type) -> bool:
    if to.kind == "text":
        return source.kind in ("truth", "text") or (
            source.kind == "whole" and source.scale <= _MOST_SCALE and not source.name.startswith("timestamp")
        )
    return to.kind in ("truth", "fraction") or (
        to.kind == "whole" and to.name in ("tinyint", "smallint", "int", "bigint")
    )


def _shown(value: Scalar, of: Type) -> str:
    if of.kind == "truth":
        return "true" if value else "false"
    if of.is_decimal:
        return format(Decimal(value).scaleb(-of.scale), "f")
    if of.name == "date":
        return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
    return str(value)


def _parsed(text: str, of: Type) -> Scalar:
    if of.kind == "truth":
        return True if text.lower() in _TRUE else False if text.lower() in _FALSE else None
    if of.kind == "fraction":
        if text.lower() in _SPECIAL:
            return float(_SPECIAL[text.lower()])
        return float(text.rstrip("dDfF")) if _FRACTION.fullmatch(text) else None
    value = int(text) if _WHOLE.fullmatch(text) else None
    return value if value is not None and -(1 << of.bits - 1) <= value < 1 << of.bits - 1 else None
