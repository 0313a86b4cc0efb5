"""Define the table of scalar functions, each once for the whole compiler.

``compile.prove.monotone`` reads how a call moves, where it is null, and the bounds of its results. ``evaluate`` reads
its value, and ``to_z3`` its formula. A function that is not in the table is opaque: it returns the same result for the
same arguments, and nothing else is known.

    arithmetic     + - * / div %, on integers, decimals, floats and intervals
    mathematics    logarithms, roots, powers
    rounding       to whole numbers, or to digits
    calendar       dates and months
    clock          timestamps
    intervals      months, or days to seconds
    casts          between numbers, booleans, times and texts
    texts          strings
    others         comparisons, bits, nulls
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.program.functions import (
    arithmetic,
    calendar,
    casts,
    clock,
    intervals,
    mathematics,
    others,
    rounding,
    texts,
)
from pyspark_paralagg.program.functions.function import Function, Setting, Shape, opaque

if TYPE_CHECKING:
    from pyspark_paralagg.program.expr import Call
    from pyspark_paralagg.program.functions.function import Args

FUNCTIONS: dict[str, Function] = {
    f.name: f
    for family in (arithmetic, mathematics, rounding, calendar, clock, intervals, casts, texts, others)
    for f in family.FUNCTIONS
}


def shape_of(call: Call, args: Args, setting: Setting) -> Shape:
    """Return the shape of ``call`` for arguments in the ranges ``args``.

    >>> from pyspark_paralagg.program.expr import Call, Col, Lit
    >>> from pyspark_paralagg.program.functions.value_range import Range
    >>> d, w = Col("d", "int"), Col("w", "int")
    >>> shape_of(Call("Add", (d, w), "int"), (Range(0, 9), Range(1, 2)), Setting()).range
    Range(low=1, high=11, has_nan=False)
    """
    function = FUNCTIONS.get(call.fn)
    shape = function.shape(call, args, setting) if function and function.shape else None
    return opaque(call) if shape is None else shape


__all__ = ["FUNCTIONS", "Function", "Setting", "Shape", "shape_of"]
