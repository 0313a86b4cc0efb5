"""Write functions of dates, timestamps and intervals. Arguments are not null.

Dates are numbers of days, intervals of months or of microseconds, timestamps microseconds in UTC. The engine does not
know the time zone of the session, so it refuses what reads the wall clock of a ``timestamp``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.arithmetic import fit, unsupported
from mpi_backend.codegen.values import Value, is_interval, wrap
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.expr import Call, Lit
from pyspark_paralagg.program.functions.calendar import CLOCK_LEVELS, level_of
from pyspark_paralagg.program.functions.clock import UNITS
from pyspark_paralagg.program.functions.value_range import MICROSECONDS_PER_DAY

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.codegen.writer import Writer
    from mpi_backend.state.types import Type
    from pyspark_paralagg.program.expr import Expr

    WriteCall = Callable[[Writer, Call, list[Value], Type], Value]

_DAY = MICROSECONDS_PER_DAY
_SECOND = CLOCK_LEVELS["SECOND"]
_OVERFLOW = "DATETIME_OVERFLOW"
_BY_SPARK = "let Spark run it: backend='spark'"
_PERIODS = {"MONTH": 1, "QUARTER": 3, "YEAR": 12}


def _formula(code: str) -> WriteCall:
    def write(writer: Writer, _: Call, args: list[Value], target: Type) -> Value:
        return Value(target, writer.code.keep("x", code.format(*(a.code for a in args))))

    return write


def _times(size: int) -> WriteCall:
    """Return a writer of a number of units as a time, which fails beyond 64 bits in any mode."""

    def write(writer: Writer, _: Call, args: list[Value], target: Type) -> Value:
        [a] = args
        if a.type.kind != "whole" or a.type.is_decimal:
            raise unsupported("a timestamp of a number that is not whole", _BY_SPARK)
        return Value(target, _product(writer, a.code, size))

    return write


def _product(writer: Writer, code: str, size: int) -> str:
    writer.fail(f"product_overflows({code}, {size})", _OVERFLOW, "a time overflows")
    return writer.code.keep("x", wrap(code, "*", str(size)))


def _sum(writer: Writer, a: str, b: str, sign: str = "+") -> str:
    z = writer.code.keep("x", wrap(a, sign, b))
    other = f"({b} ^ {z})" if sign == "+" else f"({a} ^ {b})"
    writer.fail(f"(({a} ^ {z}) & {other}) < 0", _OVERFLOW, "a time overflows")
    return z


def _trunc_date(writer: Writer, expr: Call, args: list[Value], target: Type) -> Value:
    level = level_of(expr.args[1])
    if level == "WEEK":
        return Value(target, writer.code.keep("x", f"{args[0].code} - ({args[0].code} + 3) % 7"))
    if level not in _PERIODS:
        raise unsupported("trunc to a unit that is no constant week, month, quarter or year", _BY_SPARK)
    return Value(target, writer.code.keep("x", f"first_of_period({args[0].code}, {_PERIODS[level]})"))


def _trunc_time(writer: Writer, expr: Call, args: list[Value], target: Type) -> Value:
    size = CLOCK_LEVELS.get(level_of(expr.args[0]) or "", _DAY)
    if size > _SECOND:
        raise _on_the_clock("date_trunc to minutes and coarser")
    return Value(target, writer.code.keep("x", wrap(args[1].code, "-", f"({args[1].code} % {size})")))


def _add_months(writer: Writer, expr: Call, args: list[Value], target: Type) -> Value:
    start, months = args
    if target.name == "date":
        return _fitted_date(writer, target, f"add_months({start.code}, {months.code})")
    return _months_later(writer, start, months.code, target, expr.fn)


def _fitted_date(writer: Writer, target: Type, code: str) -> Value:
    day = writer.code.keep("x", code)
    writer.fail(f"{day} < {-(1 << 31)} or {day} >= {1 << 31}", _OVERFLOW, "a date overflows")
    return Value(target, day)


def _months_later(writer: Writer, start: Value, months: str, target: Type, what: str) -> Value:
    if target.name != "timestamp_ntz":
        raise _on_the_clock(what)
    day = writer.code.keep("x", f"{start.code} // {_DAY}")
    later = writer.code.keep("x", f"add_months({day}, {months})")
    return Value(target, _sum(writer, _product(writer, later, _DAY), f"({start.code} - {day} * {_DAY})"))


def _add_interval(writer: Writer, expr: Call, args: list[Value], target: Type) -> Value:
    amount = constant(expr.args[1])
    if target.name != "timestamp_ntz" and (amount is None or abs(amount) >= _DAY):
        raise _on_the_clock("an interval of a day or more, or that is no constant")
    return Value(target, _sum(writer, args[0].code, args[1].code))


def _add_units(size: int, *, is_months: bool) -> WriteCall:
    """Return a writer of ``timestampadd`` in a unit."""

    def write(writer: Writer, expr: Call, args: list[Value], target: Type) -> Value:
        quantity, start = args
        amount = constant(expr.args[0])
        if is_months:
            months = writer.code.keep("x", f"{quantity.code} * {size}")
            writer.fail(f"{months} < {-(1 << 31)} or {months} >= {1 << 31}", _OVERFLOW, "a time overflows")
            return _months_later(writer, start, months, target, "timestampadd of months")
        if target.name != "timestamp_ntz" and (amount is None or abs(amount * size) >= _DAY):
            raise _on_the_clock("timestampadd of a day or more, or of a number that is no constant")
        return Value(target, _sum(writer, start.code, _product(writer, quantity.code, size)))

    return write


def constant(expr: Expr) -> int | None:
    """Return the whole number that an expression is for all rows; None if it is no such constant."""
    if isinstance(expr, Call) and expr.fn in ("UnaryMinus", "Cast"):
        inner = constant(expr.args[0])
        return inner if inner is None or expr.fn == "Cast" else -inner
    return expr.value if isinstance(expr, Lit) and type(expr.value) is int else None


def _between(writer: Writer, expr: Call, args: list[Value], target: Type) -> Value:
    """Write a difference of dates, or of timestamps without a zone, as an interval."""
    if args[0].type.name == "timestamp":
        raise _on_the_clock("a difference of timestamps")
    if not is_interval(target):
        raise unsupported("intervals of the calendar", _BY_SPARK)
    size = _DAY if expr.fn == "SubtractDates" else 1
    return Value(target, _product(writer, _sum(writer, args[0].code, args[1].code, "-"), size))


def _scaled(writer: Writer, _: Call, args: list[Value], target: Type) -> Value:
    """Write an interval times a whole number."""
    interval, number = args
    if number.type.kind != "whole" or number.type.is_decimal:
        raise unsupported("an interval times a number that is not whole", _BY_SPARK)
    z = writer.code.keep("x", wrap(interval.code, "*", number.code))
    overflow = f"product_overflows({interval.code}, {number.code})"
    writer.fail(overflow, "ARITHMETIC_OVERFLOW", "an interval overflows")
    return fit(writer, target, z)


def _made(sizes: tuple[int, ...]) -> WriteCall:
    """Return a writer of an interval made of numbers of units; the last one counts in the interval's own unit."""

    def write(writer: Writer, _: Call, args: list[Value], target: Type) -> Value:
        total = args[-1].code
        for a, size in zip(args[:-1], sizes, strict=True):
            part = fit(writer, target, _product(writer, a.code, size))
            total = _sum(writer, total, part.code)
        return fit(writer, target, total)

    return write


def is_time(value_type: Type) -> bool:
    """Return whether a type is one of dates, timestamps or intervals."""
    return is_interval(value_type) or value_type.name in ("date", "timestamp", "timestamp_ntz")


def cast_time(writer: Writer, value: Value, target: Type) -> Value:
    """Cast from or to dates, timestamps and intervals; another last unit of an interval cuts smaller ones."""
    source, code = value.type, value.code
    if is_interval(source) and is_interval(target) and source.bits == target.bits:
        size = _LAST_UNITS[target.name.rsplit(maxsplit=1)[-1]]
        return Value(target, writer.code.keep("x", f"truncated_quotient({code}, {size}) * {size}"))
    match source.name, target.name:
        case "date", "timestamp_ntz":
            return Value(target, _product(writer, code, _DAY))
        case "timestamp_ntz", "date":
            return Value(target, writer.code.keep("x", f"{code} // {_DAY}"))
        case "timestamp", "bigint":
            return Value(target, writer.code.keep("x", f"{code} // {_SECOND}"))
    what = f"{source.name} to {target.name}"
    raise UnsupportedError(
        "PARALAGG_EXPRESSION_UNPORTABLE",
        f"the MPI engine does not cast {what}",
        value=what,
        hint="cast it before the recursion",
    )


def _on_the_clock(what: str) -> UnsupportedError:
    return UnsupportedError(
        "PARALAGG_EXPRESSION_UNPORTABLE",
        f"the MPI engine does not know the session's time zone, on whose clock it would compute {what}",
        value=what,
        hint="use timestamp_ntz, or let Spark run it: backend='spark'",
    )


_LAST_UNITS = {
    "second": 1, "minute": CLOCK_LEVELS["MINUTE"], "hour": CLOCK_LEVELS["HOUR"], "day": _DAY, "month": 1, "year": 12,
}  # fmt: skip
FUNCTIONS: dict[str, WriteCall] = {
    "Year": _formula("year_and_month({}) // 12"),
    "Quarter": _formula("year_and_month({}) % 12 // 3 + 1"),
    "Month": _formula("year_and_month({}) % 12 + 1"),
    "DayOfMonth": _formula("{0} - first_of_period({0}, 1) + 1"),
    "DayOfYear": _formula("{0} - first_of_period({0}, 12) + 1"),
    "LastDay": _formula("add_months(first_of_period({}, 1), 1) - 1"),
    "TruncDate": _trunc_date,
    "UnixDate": _formula("{}"),
    "DateFromUnixDate": _formula("{}"),
    **dict.fromkeys(("AddMonths", "DateAddYMInterval", "TimestampAddYMInterval"), _add_months),
    **dict.fromkeys(("TimestampAddInterval", "TimeAdd"), _add_interval),
    **{f"TimestampAdd{unit}": _add_units(size, is_months=is_months) for unit, (size, is_months) in UNITS.items()},
    "TruncTimestamp": _trunc_time,
    "SubtractTimestamps": _between,
    "SubtractDates": _between,
    "ExtractANSIIntervalDays": _formula(f"truncated_quotient({{}}, {_DAY})"),
    "UnixMicros": _formula("{}"),
    "UnixMillis": _formula(f"{{}} // {CLOCK_LEVELS['MILLISECOND']}"),
    "UnixSeconds": _formula(f"{{}} // {_SECOND}"),
    "MicrosToTimestamp": _times(1),
    "MillisToTimestamp": _times(CLOCK_LEVELS["MILLISECOND"]),
    "SecondsToTimestamp": _times(_SECOND),
    **dict.fromkeys(("MultiplyDTInterval", "MultiplyYMInterval"), _scaled),
    "MakeYMInterval": _made((12,)),
    "MakeDTInterval": _made((_DAY, CLOCK_LEVELS["HOUR"], CLOCK_LEVELS["MINUTE"])),
}
