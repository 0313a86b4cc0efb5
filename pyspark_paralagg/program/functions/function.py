"""What the compiler knows of a scalar function: the entries of the table in ``program.functions``.

``shape`` says how a call behaves for *all* values of its arguments, given their ranges: null, NaN, infinities and
overflow as the session has them. The proof of monotonicity reads shapes, the evaluator ``compute``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyspark_paralagg.program.aggregators import order_key
from pyspark_paralagg.program.functions.value_range import Range, computed_range, hull

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark_paralagg.program.expr import Call
    from pyspark_paralagg.program.functions.value_range import Number

Direction = Literal["up", "down", "none", "unknown"]
"""Where the result goes if one argument grows and the others stay: ``none`` means that it stays, too."""
NullWhen = Literal["never", "low", "some"]
"""For which values of an argument the result is null although no argument is: for the low ones, or for some."""
Strictness = Literal["exact", "rounded", "no"]
"""Whether the result differs wherever the argument does: always, or except where rounding makes two results equal."""
Args = tuple["Range | None", ...]


@dataclass(frozen=True)
class Setting:
    """What the session decides about expressions: ANSI mode, and the time zone (None if it is not known)."""

    ansi: bool = True
    time_zone: str | None = None


DEFAULT_SETTING = Setting()


@dataclass(frozen=True)
class Shape:
    """How one call behaves, an entry for each argument in ``directions``, ``nulls`` and ``strict``.

    ``range`` holds the results that are not null; None if nothing is known. ``wraps``: the result may overflow without
    an error, and everything else holds only where it does not.
    """

    directions: tuple[Direction, ...]
    range: Range | None
    nulls: tuple[NullWhen, ...]
    strict: tuple[Strictness, ...]
    wraps: bool = False


@dataclass(frozen=True)
class Function:
    """One function of Catalyst, by the name of its class.

    ``compute`` gives its value for Python values that are not null, where ANSI rules have one; it raises where they
    raise, and is None for functions that are not evaluated. ``shape`` is None for functions of which nothing is known.
    ``is_algebraic``: ``compute`` consists of + - * and applies to terms of a solver, too.
    """

    name: str
    compute: Callable[..., Any] | None = None
    shape: Callable[[Call, Args, Setting], Shape | None] | None = None
    is_algebraic: bool = False


def opaque(call: Call) -> Shape:
    """Return the shape of a call of which nothing is known but its type."""
    return unmoved(call, computed_range(call.type), "some" if call.nullable else "never")


def unmoved(call: Call, range_: Range | None, nulls: NullWhen = "never", *, first: Direction = "unknown") -> Shape:
    """Return the shape of a call that moves with its ``first`` argument, if at all, and may tie."""
    n = len(call.args)
    directions: list[Direction] = ["unknown"] * n
    directions[:1] = [first] if n else []
    when: list[NullWhen] = [nulls] * n
    ties: list[Strictness] = ["no"] * n
    return Shape(tuple(directions), range_, tuple(when), tuple(ties))


def from_corners(
    compute: Callable[..., Number | None], points: Sequence[Sequence[Number]]
) -> tuple[tuple[Direction, ...], Range | None]:
    """Return directions and results of a function that is monotone between the corners of its arguments.

    ``points`` are the corners of each argument, in Spark's order. A point where ``compute`` gives None or raises is
    left out: there the query fails, or the result is null.
    """
    results: dict[tuple[int, ...], Number] = {}
    for place in itertools.product(*(range(len(p)) for p in points)):
        try:
            value = compute(*(p[i] for p, i in zip(points, place, strict=True)))
        except ArithmeticError:
            continue
        if value is not None:
            results[place] = value
    return tuple(_direction(results, points, n) for n in range(len(points))), hull(results.values())


def _direction(results: dict[tuple[int, ...], Number], points: Sequence[Sequence[Number]], n: int) -> Direction:
    grows = falls = False
    others = [range(len(p)) for i, p in enumerate(points) if i != n]
    for place in itertools.product(*others):
        line = (results.get((*place[:n], i, *place[n:])) for i in range(len(points[n])))
        keys = [order_key(v) for v in line if v is not None]
        for before, after in itertools.pairwise(keys):
            grows |= before < after
            falls |= after < before
    if grows and falls:
        return "unknown"
    return "up" if grows else "down" if falls else "none"
