"""Write casts between numbers, truths and decimals, and constants. ``state.texts`` casts texts."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING

from mpi_backend.codegen import calendar
from mpi_backend.codegen.arithmetic import WORD, check_decimal, fit, rescale
from mpi_backend.codegen.values import Value
from mpi_backend.state.types import type_of
from pyspark_paralagg.errors import UnsupportedError

if TYPE_CHECKING:
    from mpi_backend.codegen.writer import Writer
    from mpi_backend.state.types import Type

_TIMES = ("date", "timestamp", "timestamp_ntz")


def cast(writer: Writer, value: Value, target: Type) -> Value:  # noqa: PLR0911 - a return for each pair of kinds
    """Cast ``value``, which is not null, to ``target``."""
    source = value.type
    if source == target:
        return value
    if calendar.is_time(source) or calendar.is_time(target):
        return calendar.cast_time(writer, value, target)
    if target.kind == "truth":
        return Value(target, f"({value.code} != 0)")
    if source.kind == "truth":
        unit = 10**target.scale
        if target.kind == "fraction":
            return Value(target, f"({float(unit)} if {value.code} else 0.0)")
        return Value(target, f"({unit} if {value.code} else 0)")
    if target.kind == "fraction":
        return _to_fraction(value, target)
    if source.kind == "fraction":
        return _from_fraction(writer, value, target)
    if source.is_decimal or target.is_decimal:
        return _decimal(writer, value, target)
    if writer.ansi and target.bits < source.bits:
        low, high = -(1 << target.bits - 1), (1 << target.bits - 1) - 1
        writer.fail(
            f"{value.code} < {low} or {value.code} > {high}",
            "CAST_OVERFLOW",
            f"a {source.name} is too large for {target.name}",
        )
        return Value(target, value.code)
    return fit(writer, target, value.code)


def literal(target: Type, value: bool | float | str) -> str:  # noqa: PLR0911 - one for each kind
    """Return the source of a constant; ``value`` is as in the Plan's JSON."""
    if target.kind == "truth":
        return str(bool(value))
    if target.kind == "fraction":
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            return {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}[str(number)]
        return repr(number + 0.0)
    if target.is_decimal:
        unscaled = Decimal(str(value)).scaleb(target.scale).to_integral_value()
        return f"np.int64({int(unscaled)})"
    if target.name == "date" and isinstance(value, str):
        return f"np.int64({(date.fromisoformat(value) - date(1970, 1, 1)).days})"
    if target.name in _TIMES and isinstance(value, str):
        return f"np.int64({_microseconds(value)})"
    return f"np.int64({int(value)})"


def _microseconds(text: str) -> int:
    if text.lstrip("-").isdigit():
        return int(text)
    time = datetime.fromisoformat(text.replace("Z", "+00:00"))
    time = time if time.tzinfo else time.replace(tzinfo=timezone.utc)
    delta = time - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds


def _to_fraction(value: Value, target: Type) -> Value:
    code = value.code
    if value.type.kind == "whole":
        code = f"np.float64({code})" + (f" / {float(10**value.type.scale)}" if value.type.scale else "")
    return Value(target, f"({code})" if target.bits == WORD else f"np.float64(np.float32({code}))")


def _from_fraction(writer: Writer, value: Value, target: Type) -> Value:
    if target.is_decimal:
        message = f"the MPI engine does not cast fractions to {target.name}"
        raise UnsupportedError("PARALAGG_EXPRESSION_UNPORTABLE", message, value=target.name)
    low, high = -float(1 << target.bits - 1), float(1 << target.bits - 1)
    if writer.ansi:
        cut = writer.code.keep("x", f"np.trunc({value.code})")
        writer.fail(
            f"not ({cut} >= {low} and {cut} < {high})",
            "CAST_OVERFLOW",
            f"a {value.type.name} is too large for {target.name}",
        )
        return Value(target, f"np.int64({cut})")
    wide = writer.code.keep("x", f"saturated({value.code})")
    if target.bits == WORD:
        return Value(target, wide)
    # Saturated to 32 bits first, as in Java.
    clamped = writer.code.keep("x", f"max(min({wide}, {(1 << 31) - 1}), {-(1 << 31)})")
    return fit(writer, target, clamped)


def _decimal(writer: Writer, value: Value, target: Type) -> Value:
    if not target.is_decimal:
        whole = writer.code.keep("x", f"truncated_quotient({value.code}, {10**value.type.scale})")
        return cast(writer, Value(type_of("bigint"), whole), target)
    digits = target.scale - value.type.scale
    if digits > 0:
        # Checked before scaling up, so that 64 bits are enough.
        checked = check_decimal(writer, target, value.code, 10**target.precision // 10**digits)
        scaled = rescale(writer, value, target.scale)
        return Value(target, scaled, checked.null)
    return fit(writer, target, rescale(writer, value, target.scale))
