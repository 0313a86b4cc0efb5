"""Casts between numbers, truths and decimals in generated code, and constants. Texts are cast by ``texts``."""

from __future__ import annotations

from datetime import date, datetime, timezone
from decimal import Decimal
from typing import TYPE_CHECKING

from mpi_backend.codegen.arithmetic import WORD, fit, rescaled, within
from mpi_backend.codegen.values import Value
from mpi_backend.state.types import type_of
from pyspark_paralagg.errors import UnsupportedError

if TYPE_CHECKING:
    from mpi_backend.codegen.writer import Writer
    from mpi_backend.state.types import Type

_TIMES = ("date", "timestamp", "timestamp_ntz")


def cast(to: Writer, value: Value, of: Type) -> Value:  # noqa: PLR0911 - a return for each pair of kinds
    """``value``, which is not null, as ``of``."""
    source = value.type
    if source == of:
        return value
    if source.name in _TIMES or of.name in _TIMES:
        raise UnsupportedError(
            "PARALAGG_EXPRESSION_UNPORTABLE",
            f"the MPI engine does not cast {source.name} to {of.name}",
            value=f"{source.name} to {of.name}",
            hint="cast it before the recursion",
        )
    if of.kind == "truth":
        return Value(of, f"({value.code} != 0)")
    if source.kind == "truth":
        one = 10**of.scale
        return Value(
            of,
            f"({float(one)} if {value.code} else 0.0)" if of.kind == "fraction" else f"({one} if {value.code} else 0)",
        )
    if of.kind == "fraction":
        return _to_fraction(value, of)
    if source.kind == "fraction":
        return _from_fraction(to, value, of)
    if source.is_decimal or of.is_decimal:
        return _decimal(to, value, of)
    if to.ansi and of.bits < source.bits:
        low, high = -(1 << of.bits - 1), (1 << of.bits - 1) - 1
        to.fail(
            f"{value.code} < {low} or {value.code} > {high}",
            "CAST_OVERFLOW",
            f"a {source.name} is too large for {of.name}",
        )
        return Value(of, value.code)
    return fit(to, of, value.code)


def literal(of: Type, value: bool | float | str) -> str:  # noqa: PLR0911 - one for each kind
    """A constant of generated code; ``value`` is what a Plan's JSON has."""
    if of.kind == "truth":
        return str(bool(value))
    if of.kind == "fraction":
        number = float(value)
        if number != number or number in (float("inf"), float("-inf")):
            return {"nan": "np.nan", "inf": "np.inf", "-inf": "-np.inf"}[str(number)]
        return repr(number + 0.0)
    if of.is_decimal:
        unscaled = Decimal(str(value)).scaleb(of.scale).to_integral_value()
        return f"np.int64({int(unscaled)})"
    if of.name == "date" and isinstance(value, str):
        return f"np.int64({(date.fromisoformat(value) - date(1970, 1, 1)).days})"
    if of.name in _TIMES and isinstance(value, str):
        return f"np.int64({_microseconds(value)})"
    return f"np.int64({int(value)})"


def _microseconds(text: str) -> int:
    if text.lstrip("-").isdigit():
        return int(text)
    when = datetime.fromisoformat(text.replace("Z", "+00:00"))
    when = when if when.tzinfo else when.replace(tzinfo=timezone.utc)
    delta = when - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (delta.days * 86400 + delta.seconds) * 1_000_000 + delta.microseconds


def _to_fraction(value: Value, of: Type) -> Value:
    code = value.code
    if value.type.kind == "whole":
        code = f"np.float64({code})" + (f" / {float(10**value.type.scale)}" if value.type.scale else "")
    return Value(of, f"({code})" if of.bits == WORD else f"np.float64(np.float32({code}))")


def _from_fraction(to: Writer, value: Value, of: Type) -> Value:
    if of.is_decimal:
        raise UnsupportedError(
            "PARALAGG_EXPRESSION_UNPORTABLE", f"the MPI engine does not cast fractions to {of.name}", value=of.name
        )
    low, high = -float(1 << of.bits - 1), float(1 << of.bits - 1)
    if to.ansi:
        cut = to.code.keep("x", f"np.trunc({value.code})")
        to.fail(
            f"not ({cut} >= {low} and {cut} < {high})",
            "CAST_OVERFLOW",
            f"a {value.type.name} is too large for {of.name}",
        )
        return Value(of, f"np.int64({cut})")
    wide = to.code.keep("x", f"saturated({value.code})")
    if of.bits == WORD:
        return Value(of, wide)
    # By way of a saturated int, as Java does it.
    clamped = to.code.keep("x", f"max(min({wide}, {(1 << 31) - 1}), {-(1 << 31)})")
    return fit(to, of, clamped)


def _decimal(to: Writer, value: Value, of: Type) -> Value:
    if not of.is_decimal:
        whole = to.code.keep("x", f"truncated_quotient({value.code}, {10**value.type.scale})")
        return cast(to, Value(type_of("bigint"), whole), of)
    by = of.scale - value.type.scale
    if by > 0:
        # Asked before it is scaled up, so that 64 bits are enough.
        near = within(to, of, value.code, 10**of.precision // 10**by)
        scaled = rescaled(to, value, of.scale)
        return Value(of, scaled, near.null)
    return fit(to, of, rescaled(to, value, of.scale))
