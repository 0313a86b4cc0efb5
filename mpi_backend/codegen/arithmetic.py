"""Functions of numbers in generated code: each writes statements and says what the value is. Arguments are not null.

With ANSI rules what does not fit is an error, named as Spark names it; without them whole numbers wrap, and what has no
value is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.values import Value, wrapped
from pyspark_paralagg.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.codegen.writer import Writer
    from mpi_backend.state.types import Type

    Write = Callable[[Writer, list[Value], Type], Value]

WORD = 64
_OVERFLOW = "ARITHMETIC_OVERFLOW"


def fit(to: Writer, of: Type, code: str, overflow: str | None = None) -> Value:
    """``code``, a whole number of 64 bits, as one of type ``of``; ``overflow``: the condition that 64 were too few."""
    if of.is_decimal:
        return within(to, of, code, 10**of.precision, overflow)
    if of.bits == WORD:
        if to.ansi and overflow is not None:
            to.fail(overflow, _OVERFLOW, f"a value of {of.name} overflows")
        return Value(of, code)
    if to.ansi:
        low, high = -(1 << of.bits - 1), (1 << of.bits - 1) - 1
        to.fail(f"{code} < {low} or {code} > {high}", _OVERFLOW, f"a value of {of.name} overflows")
        return Value(of, code)
    return Value(of, to.code.keep("x", f"({code} << {WORD - of.bits}) >> {WORD - of.bits}"))


def within(to: Writer, of: Type, code: str, most: int, overflow: str | None = None) -> Value:
    """A decimal below ``most``; what has more digits than ``of`` is an error with ANSI rules, else null."""
    outside = f"{code} <= {-most} or {code} >= {most}"
    outside = outside if overflow is None else f"({overflow}) or {outside}"
    if to.ansi:
        to.fail(outside, "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", f"a value has more digits than {of.name}")
        return Value(of, code)
    return Value(of, code, to.code.keep("n", outside))


def rescaled(to: Writer, value: Value, scale: int) -> str:
    """A decimal's unscaled value at another scale; rounded half up where digits go."""
    by = scale - value.type.scale
    if by == 0:
        return value.code
    if by > 0:
        return to.code.keep("x", f"{value.code} * {10**by}")
    ten = 10**-by
    half = to.code.keep("x", f"(abs({value.code}) + {ten // 2}) // {ten}")
    return to.code.keep("x", f"-{half} if {value.code} < 0 else {half}")


def _add(sign: str) -> Write:
    def write(to: Writer, args: list[Value], of: Type) -> Value:
        a, b = args
        if of.kind == "fraction":
            return Value(of, _single(of, f"{a.code} {sign} {b.code}"))
        if of.is_decimal:
            return fit(to, of, to.code.keep("x", f"{rescaled(to, a, of.scale)} {sign} {rescaled(to, b, of.scale)}"))
        z = to.code.keep("x", wrapped(a.code, sign, b.code))
        other = f"({b.code} ^ {z})" if sign == "+" else f"({a.code} ^ {b.code})"
        return fit(to, of, z, f"(({a.code} ^ {z}) & {other}) < 0")

    return write


def _multiply(to: Writer, args: list[Value], of: Type) -> Value:
    a, b = args
    if of.kind == "fraction":
        return Value(of, _single(of, f"{a.code} * {b.code}"))
    if of.is_decimal and of.scale != a.type.scale + b.type.scale:
        raise _refused("a product of decimals that is rounded")
    z = to.code.keep("x", wrapped(a.code, "*", b.code))
    return fit(to, of, z, f"product_overflows({a.code}, {b.code})")


def _divide(to: Writer, args: list[Value], of: Type) -> Value:
    a, b = args
    if of.kind != "fraction":
        raise _refused("a quotient of decimals")
    null = _no_zero(to, b, "DIVIDE_BY_ZERO")
    return _unless(to, of, null, lambda: _single(of, f"{a.code} / {b.code}"))


def _integral_divide(to: Writer, args: list[Value], of: Type) -> Value:
    a, b = args
    if a.type.is_decimal:
        raise _refused("a quotient of decimals")
    null = _no_zero(to, b, "DIVIDE_BY_ZERO")
    if to.ansi:
        to.fail(f"{b.code} == -1 and {a.code} == {-(1 << WORD - 1)}", _OVERFLOW, f"a value of {of.name} overflows")
    return _unless(to, of, null, lambda: f"truncated_quotient({a.code}, {b.code})")


def _remainder(to: Writer, args: list[Value], of: Type) -> Value:
    a, b = args
    _same_scale(a, b)
    null = _no_zero(to, b, "REMAINDER_BY_ZERO")
    code = f"np.fmod({a.code}, {b.code})" if of.kind == "fraction" else f"truncated_remainder({a.code}, {b.code})"
    return _unless(to, of, null, lambda: code)


def _pmod(to: Writer, args: list[Value], of: Type) -> Value:
    a, b = args
    _same_scale(a, b)
    null = _no_zero(to, b, "REMAINDER_BY_ZERO")
    rest = "np.fmod" if of.kind == "fraction" else "truncated_remainder"

    def code() -> str:
        r = to.code.keep("x", f"{rest}({a.code}, {b.code})")
        return f"({rest}({r} + {b.code}, {b.code}) if {r} < 0 else {r})"

    return _unless(to, of, null, code)


def _negate(to: Writer, args: list[Value], of: Type) -> Value:
    [a] = args
    if of.kind == "fraction":
        return Value(of, f"(-{a.code})")
    return fit(to, of, to.code.keep("x", wrapped("0", "-", a.code)), f"{a.code} == {-(1 << WORD - 1)}")


def _abs(to: Writer, args: list[Value], of: Type) -> Value:
    [a] = args
    if of.kind == "fraction":
        return Value(of, f"abs({a.code})")
    positive = to.code.keep("x", f"{a.code} if {a.code} >= 0 else {wrapped('0', '-', a.code)}")
    return fit(to, of, positive, f"{a.code} == {-(1 << WORD - 1)}")


def _of_double(code: str) -> Write:
    def write(_: Writer, args: list[Value], of: Type) -> Value:
        return Value(of, code.format(*(a.code for a in args)))

    return write


def _logarithm(code: str) -> Write:
    """Null where there is none."""

    def write(to: Writer, args: list[Value], of: Type) -> Value:
        null = to.code.keep("n", f"{args[0].code} <= {-1.0 if 'log1p' in code else 0.0}")
        return _unless(to, of, null, lambda: code.format(args[0].code))

    return write


def _rounded(code: str) -> Write:
    def write(_: Writer, args: list[Value], of: Type) -> Value:
        [a] = args
        if a.type.kind == "fraction":
            return Value(of, f"saturated({code.format(a.code)})")
        if a.type.is_decimal:
            raise _refused("rounding a decimal")
        return a

    return write


def _bits(sign: str) -> Write:
    def write(_: Writer, args: list[Value], of: Type) -> Value:
        return Value(of, f"({args[0].code} {sign} {args[1].code})")

    return write


def _shift(fn: str) -> Write:
    def write(_: Writer, args: list[Value], of: Type) -> Value:
        a, b = args
        by = f"({b.code} & {of.bits - 1})"
        if fn == "ShiftRight":
            return Value(of, f"({a.code} >> {by})")
        if fn == "ShiftLeft":
            wide = f"({a.code} << {by})"
            return Value(of, wide if of.bits == WORD else f"(({wide} << {WORD - of.bits}) >> {WORD - of.bits})")
        if of.bits == WORD:
            return Value(of, f"np.int64(np.uint64({a.code}) >> np.uint64({by}))")
        cut = f"((({a.code} & {(1 << of.bits) - 1}) >> {by})"
        return Value(of, f"({cut} << {WORD - of.bits}) >> {WORD - of.bits})")

    return write


def _days(sign: str) -> Write:
    def write(to: Writer, args: list[Value], of: Type) -> Value:
        z = to.code.keep("x", f"{args[0].code} {sign} {args[1].code}")
        return fit(to, of, z)

    return write


def _single(of: Type, code: str) -> str:
    """A float is rounded after each operation."""
    return f"({code})" if of.bits == WORD else f"np.float64(np.float32({code}))"


def _no_zero(to: Writer, b: Value, error: str) -> str | None:
    if to.ansi:
        to.fail(f"{b.code} == 0", error, "division by zero" if error == "DIVIDE_BY_ZERO" else "remainder by zero")
        return None
    return to.code.keep("n", f"{b.code} == 0")


def _unless(to: Writer, of: Type, null: str | None, code: Callable[[], str]) -> Value:
    if null is None:
        return Value(of, code())
    out = to.code.keep("x", "0.0" if of.kind == "fraction" else "np.int64(0)")
    with to.code.block(f"if not {null}:"):
        to.code.line(f"{out} = {code()}")
    return Value(of, out, null)


def _same_scale(a: Value, b: Value) -> None:
    if a.type.scale != b.type.scale:
        raise _refused("a remainder of decimals of different scales")


def _refused(what: str) -> UnsupportedError:
    return UnsupportedError(
        "PARALAGG_EXPRESSION_UNPORTABLE",
        f"the MPI engine does not compute {what}",
        value=what,
        hint="cast it to double",
    )


FUNCTIONS: dict[str, Write] = {
    "Add": _add("+"), "Subtract": _add("-"), "Multiply": _multiply, "Divide": _divide,
    "IntegralDivide": _integral_divide, "Remainder": _remainder, "Pmod": _pmod,
    "UnaryMinus": _negate, "Abs": _abs,
    "Sqrt": _of_double("np.sqrt({})"), "Exp": _of_double("np.exp({})"), "Pow": _of_double("power({}, {})"),
    "Log": _logarithm("np.log({})"), "Log10": _logarithm("np.log10({})"), "Log2": _logarithm("np.log2({})"),
    "Log1p": _logarithm("np.log1p({})"),
    "Floor": _rounded("np.floor({})"), "Ceil": _rounded("np.ceil({})"),
    "BitwiseAnd": _bits("&"), "BitwiseOr": _bits("|"), "BitwiseXor": _bits("^"), "BitwiseNot": _of_double("(~{})"),
    "ShiftLeft": _shift("ShiftLeft"), "ShiftRight": _shift("ShiftRight"), "ShiftRightUnsigned": _shift("Unsigned"),
    "DateAdd": _days("+"), "DateSub": _days("-"), "DateDiff": _days("-"),
    "Not": _of_double("(not {})"),
}  # fmt: skip
