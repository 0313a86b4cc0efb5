"""Write the functions of numbers: each writes statements and returns the value. Arguments are not null.

With ANSI rules, overflow is an error with Spark's name. Without them, whole numbers wrap, and an undefined value is
null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.values import Value, is_interval, wrap
from pyspark_paralagg.errors import UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.codegen.writer import Writer
    from mpi_backend.state.types import Type

    Write = Callable[[Writer, list[Value], Type], Value]

WORD = 64
_OVERFLOW = "ARITHMETIC_OVERFLOW"


def fit(writer: Writer, target: Type, code: str, overflow: str | None = None) -> Value:
    """Convert ``code``, a 64-bit whole number, to ``target``. ``overflow``: the condition that 64 bits overflow."""
    if target.is_decimal:
        return check_decimal(writer, target, code, 10**target.precision, overflow)
    fails = writer.ansi or is_interval(target)
    if target.bits == WORD:
        if fails and overflow is not None:
            writer.fail(overflow, _OVERFLOW, f"a value of {target.name} overflows")
        return Value(target, code)
    if fails:
        low, high = -(1 << target.bits - 1), (1 << target.bits - 1) - 1
        writer.fail(f"{code} < {low} or {code} > {high}", _OVERFLOW, f"a value of {target.name} overflows")
        return Value(target, code)
    return Value(target, writer.code.keep("x", f"({code} << {WORD - target.bits}) >> {WORD - target.bits}"))


def check_decimal(writer: Writer, target: Type, code: str, limit: int, overflow: str | None = None) -> Value:
    """Check that a decimal is below ``limit``. Otherwise it is an error with ANSI rules, and null without them."""
    outside = f"{code} <= {-limit} or {code} >= {limit}"
    outside = outside if overflow is None else f"({overflow}) or {outside}"
    if writer.ansi:
        message = f"a value has more digits than {target.name}"
        writer.fail(outside, "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION", message)
        return Value(target, code)
    return Value(target, code, writer.code.keep("n", outside))


def rescale(writer: Writer, value: Value, scale: int) -> str:
    """Return a decimal's unscaled value at another scale, rounded half up if that drops digits."""
    digits = scale - value.type.scale
    if digits == 0:
        return value.code
    if digits > 0:
        return writer.code.keep("x", f"{value.code} * {10**digits}")
    divisor = 10**-digits
    half = writer.code.keep("x", f"(abs({value.code}) + {divisor // 2}) // {divisor}")
    return writer.code.keep("x", f"-{half} if {value.code} < 0 else {half}")


def _add(sign: str) -> Write:
    def write(writer: Writer, args: list[Value], target: Type) -> Value:
        a, b = args
        if target.kind == "fraction":
            return Value(target, _round_float(target, f"{a.code} {sign} {b.code}"))
        if target.is_decimal:
            left, right = rescale(writer, a, target.scale), rescale(writer, b, target.scale)
            return fit(writer, target, writer.code.keep("x", f"{left} {sign} {right}"))
        z = writer.code.keep("x", wrap(a.code, sign, b.code))
        other = f"({b.code} ^ {z})" if sign == "+" else f"({a.code} ^ {b.code})"
        return fit(writer, target, z, f"(({a.code} ^ {z}) & {other}) < 0")

    return write


def _multiply(writer: Writer, args: list[Value], target: Type) -> Value:
    a, b = args
    if target.kind == "fraction":
        return Value(target, _round_float(target, f"{a.code} * {b.code}"))
    if target.is_decimal and target.scale != a.type.scale + b.type.scale:
        raise unsupported("a product of decimals that is rounded")
    z = writer.code.keep("x", wrap(a.code, "*", b.code))
    return fit(writer, target, z, f"product_overflows({a.code}, {b.code})")


def _divide(writer: Writer, args: list[Value], target: Type) -> Value:
    a, b = args
    if target.kind != "fraction":
        raise unsupported("a quotient of decimals")
    null = _check_zero(writer, b, "DIVIDE_BY_ZERO")
    return _write_unless(writer, target, null, lambda: _round_float(target, f"{a.code} / {b.code}"))


def _integral_divide(writer: Writer, args: list[Value], target: Type) -> Value:
    a, b = args
    if a.type.is_decimal:
        raise unsupported("a quotient of decimals")
    null = _check_zero(writer, b, "DIVIDE_BY_ZERO")
    if writer.ansi:
        condition = f"{b.code} == -1 and {a.code} == {-(1 << WORD - 1)}"
        writer.fail(condition, _OVERFLOW, f"a value of {target.name} overflows")
    return _write_unless(writer, target, null, lambda: f"truncated_quotient({a.code}, {b.code})")


def _remainder(writer: Writer, args: list[Value], target: Type) -> Value:
    a, b = args
    _check_same_scale(a, b)
    null = _check_zero(writer, b, "REMAINDER_BY_ZERO")
    code = f"np.fmod({a.code}, {b.code})" if target.kind == "fraction" else f"truncated_remainder({a.code}, {b.code})"
    return _write_unless(writer, target, null, lambda: code)


def _pmod(writer: Writer, args: list[Value], target: Type) -> Value:
    a, b = args
    _check_same_scale(a, b)
    null = _check_zero(writer, b, "REMAINDER_BY_ZERO")
    rest = "np.fmod" if target.kind == "fraction" else "truncated_remainder"

    def code() -> str:
        r = writer.code.keep("x", f"{rest}({a.code}, {b.code})")
        return f"({rest}({r} + {b.code}, {b.code}) if {r} < 0 else {r})"

    return _write_unless(writer, target, null, code)


def _negate(writer: Writer, args: list[Value], target: Type) -> Value:
    [a] = args
    if target.kind == "fraction":
        return Value(target, f"(-{a.code})")
    return fit(writer, target, writer.code.keep("x", wrap("0", "-", a.code)), f"{a.code} == {-(1 << WORD - 1)}")


def _abs(writer: Writer, args: list[Value], target: Type) -> Value:
    [a] = args
    if target.kind == "fraction":
        return Value(target, f"abs({a.code})")
    positive = writer.code.keep("x", f"{a.code} if {a.code} >= 0 else {wrap('0', '-', a.code)}")
    return fit(writer, target, positive, f"{a.code} == {-(1 << WORD - 1)}")


def _formula(code: str) -> Write:
    def write(_: Writer, args: list[Value], target: Type) -> Value:
        return Value(target, code.format(*(a.code for a in args)))

    return write


def _logarithm(code: str) -> Write:
    """Return a writer of a logarithm, which is null outside its domain."""

    def write(writer: Writer, args: list[Value], target: Type) -> Value:
        null = writer.code.keep("n", f"{args[0].code} <= {-1.0 if 'log1p' in code else 0.0}")
        return _write_unless(writer, target, null, lambda: code.format(args[0].code))

    return write


def _bits(sign: str) -> Write:
    def write(_: Writer, args: list[Value], target: Type) -> Value:
        return Value(target, f"({args[0].code} {sign} {args[1].code})")

    return write


def _shift(fn: str) -> Write:
    def write(_: Writer, args: list[Value], target: Type) -> Value:
        a, b = args
        bits = f"({b.code} & {target.bits - 1})"
        if fn == "ShiftRight":
            return Value(target, f"({a.code} >> {bits})")
        if fn == "ShiftLeft":
            wide, unused = f"({a.code} << {bits})", WORD - target.bits
            return Value(target, f"(({wide} << {unused}) >> {unused})" if unused else wide)
        if target.bits == WORD:
            return Value(target, f"np.int64(np.uint64({a.code}) >> np.uint64({bits}))")
        cut = f"((({a.code} & {(1 << target.bits) - 1}) >> {bits})"
        return Value(target, f"({cut} << {WORD - target.bits}) >> {WORD - target.bits})")

    return write


def _days(sign: str) -> Write:
    def write(writer: Writer, args: list[Value], target: Type) -> Value:
        z = writer.code.keep("x", f"{args[0].code} {sign} {args[1].code}")
        return fit(writer, target, z)

    return write


def _round_float(target: Type, code: str) -> str:
    """Round a 32-bit float, as Spark does after each operation."""
    return f"({code})" if target.bits == WORD else f"np.float64(np.float32({code}))"


def _check_zero(writer: Writer, b: Value, error: str) -> str | None:
    if writer.ansi:
        writer.fail(f"{b.code} == 0", error, "division by zero" if error == "DIVIDE_BY_ZERO" else "remainder by zero")
        return None
    return writer.code.keep("n", f"{b.code} == 0")


def _write_unless(writer: Writer, target: Type, null: str | None, code: Callable[[], str]) -> Value:
    if null is None:
        return Value(target, code())
    out = writer.code.keep("x", "0.0" if target.kind == "fraction" else "np.int64(0)")
    with writer.code.block(f"if not {null}:"):
        writer.code.line(f"{out} = {code()}")
    return Value(target, out, null)


def _check_same_scale(a: Value, b: Value) -> None:
    if a.type.scale != b.type.scale:
        raise unsupported("a remainder of decimals of different scales")


def unsupported(operation: str, hint: str = "cast it to double") -> UnsupportedError:
    """Return the error about an operation that the engine does not compute."""
    message = f"the MPI engine does not compute {operation}"
    return UnsupportedError("PARALAGG_EXPRESSION_UNPORTABLE", message, value=operation, hint=hint)


FUNCTIONS: dict[str, Write] = {
    "Add": _add("+"), "Subtract": _add("-"), "Multiply": _multiply, "Divide": _divide,
    "IntegralDivide": _integral_divide, "Remainder": _remainder, "Pmod": _pmod,
    "UnaryMinus": _negate, "Abs": _abs,
    "Sqrt": _formula("np.sqrt({})"), "Exp": _formula("np.exp({})"), "Pow": _formula("power({}, {})"),
    "Log": _logarithm("np.log({})"), "Log10": _logarithm("np.log10({})"), "Log2": _logarithm("np.log2({})"),
    "Log1p": _logarithm("np.log1p({})"),
    "Rint": _formula("np.rint({})"), "Signum": _formula("np.sign({})"),
    "BitwiseAnd": _bits("&"), "BitwiseOr": _bits("|"), "BitwiseXor": _bits("^"), "BitwiseNot": _formula("(~{})"),
    "ShiftLeft": _shift("ShiftLeft"), "ShiftRight": _shift("ShiftRight"), "ShiftRightUnsigned": _shift("Unsigned"),
    "DateAdd": _days("+"), "DateSub": _days("-"), "DateDiff": _days("-"),
    "Not": _formula("(not {})"),
}  # fmt: skip
