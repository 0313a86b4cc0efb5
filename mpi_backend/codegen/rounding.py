"""Write functions that round whole numbers and decimals. Arguments are not null.

Spark rounds a double by the shortest decimal that reads as the double. The engine does not write that, so it refuses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.arithmetic import fit, unsupported
from mpi_backend.codegen.values import Value, wrap
from pyspark_paralagg.program.expr import Lit

if TYPE_CHECKING:
    from collections.abc import Callable

    from mpi_backend.codegen.writer import Writer
    from mpi_backend.state.types import Type
    from pyspark_paralagg.program.expr import Call

    WriteCall = Callable[[Writer, Call, list[Value], Type], Value]

_MAX_DROPPED = 18
"""The most digits that a power of ten in a word can drop."""
_WAYS = {"Floor": 0, "RoundFloor": 0, "Ceil": 1, "RoundCeil": 1, "Round": 2, "BRound": 3}
"""The numbers of ways to round in ``kernels.calendar``."""


def _whole(formula: str) -> WriteCall:
    """Return a writer of ``floor`` or ``ceil``."""

    def write(writer: Writer, expr: Call, args: list[Value], target: Type) -> Value:
        [a] = args
        if a.type.kind == "fraction":
            return Value(target, f"saturated({formula.format(a.code)})")
        return _to_digits(writer, a, 0, _WAYS[expr.fn], target) if a.type.is_decimal else a

    return write


def _digits(writer: Writer, expr: Call, args: list[Value], target: Type) -> Value:
    """Write a function that rounds to a constant number of digits."""
    digits = expr.args[1]
    if not isinstance(digits, Lit) or not isinstance(digits.value, int):
        raise unsupported("rounding to digits that are no constant")
    if args[0].type.kind == "fraction":
        raise unsupported("rounding a fraction to digits")
    return _to_digits(writer, args[0], digits.value, _WAYS[expr.fn], target)


def _to_digits(writer: Writer, a: Value, digits: int, way: int, target: Type) -> Value:
    dropped = a.type.scale - digits
    if dropped > _MAX_DROPPED:
        raise unsupported(f"rounding that drops {dropped} digits")
    unit = 10 ** max(dropped, 0)
    multiple = writer.code.keep("x", f"rounded({a.code}, {unit}, {way})") if unit > 1 else a.code
    shift = target.scale - min(digits, a.type.scale)
    if shift <= 0:
        return fit(writer, target, multiple) if target.is_decimal else Value(target, multiple)
    z = writer.code.keep("x", wrap(multiple, "*", str(10**shift)))
    return fit(writer, target, z, f"product_overflows({multiple}, {10**shift})")


FUNCTIONS: dict[str, WriteCall] = {
    "Floor": _whole("np.floor({})"),
    "Ceil": _whole("np.ceil({})"),
    **dict.fromkeys(("Round", "BRound", "RoundFloor", "RoundCeil"), _digits),
}
