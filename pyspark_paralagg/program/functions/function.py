"""Define the entries of the table in ``program.functions``: the compiler's knowledge of a scalar function.

``shape`` describes a call for *all* values of its arguments in given ranges, with the session's rules for null, NaN,
infinities and overflow. The proof of monotonicity reads shapes, the evaluator reads ``compute``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pyspark_paralagg.program.aggregators import order_key
from pyspark_paralagg.program.functions.value_range import Range, computed_range, hull

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from pyspark_paralagg.program.expr import Call
    from pyspark_paralagg.program.functions.value_range import Number

Direction = Literal["up", "down", "none", "unknown"]
"""The direction of the result if one argument grows and the others stay; ``none``: the result stays, too."""
NullWhen = Literal["never", "low", "some"]
"""The values of an argument for which the result is null although no argument is: the low ones, or some."""
Strictness = Literal["exact", "rounded", "no"]
"""The result differs if the argument differs: always (``exact``), unless rounding makes two equal, or not always."""
Args = tuple["Range | None", ...]


@dataclass(frozen=True)
class Setting:
    """The session's settings for expressions: ANSI mode, and the time zone (None if unknown)."""

    ansi: bool = True
    time_zone: str | None = None


DEFAULT_SETTING = Setting()


@dataclass(frozen=True)
class Shape:
    """The behaviour of one call; ``directions``, ``nulls`` and ``strict`` have an entry for each argument.

    ``range`` contains all results that are not null; None if unknown. ``wraps``: the result may overflow without an
    error, and all other fields hold only without overflow.
    """

    directions: tuple[Direction, ...]
    range: Range | None
    nulls: tuple[NullWhen, ...]
    strict: tuple[Strictness, ...]
    wraps: bool = False


@dataclass(frozen=True)
class Function:
    """One function of Catalyst, by the name of its class.

    ``compute`` returns its value under ANSI rules for Python values that are not null, and raises if they raise. It is
    None for functions that are not evaluated. ``shape`` is None for opaque functions. ``is_algebraic``: ``compute``
    consists of + - *, so it also applies to a solver's terms.
    """

    name: str
    compute: Callable[..., Any] | None = None
    shape: Callable[[Call, Args, Setting], Shape | None] | None = None
    is_algebraic: bool = False


def opaque(call: Call) -> Shape:
    """Return the shape of a call of which only the type is known."""
    return unmoved(call, computed_range(call.type), "some" if call.nullable else "never")


def unmoved(call: Call, range_: Range | None, nulls: NullWhen = "never", *, first: Direction = "unknown") -> Shape:
    """Return the shape of a call whose only known direction is that of its ``first`` argument; results may tie."""
    n = len(call.args)
    directions: list[Direction] = ["unknown"] * n
    directions[:1] = [first] if n else []
    null_whens: list[NullWhen] = [nulls] * n
    ties: list[Strictness] = ["no"] * n
    return Shape(tuple(directions), range_, tuple(null_whens), tuple(ties))


def total(directions: Iterable[Direction], range_: Range | None, strict: Iterable[Strictness]) -> Shape | None:
    """Return the shape of a call that is null only if an argument is; None if its ``range_`` is unknown."""
    moves = tuple(directions)
    nulls: list[NullWhen] = ["never"] * len(moves)
    return None if range_ is None else Shape(moves, range_, tuple(nulls), tuple(strict))


def from_corners(
    compute: Callable[..., Number | None], points: Sequence[Sequence[Number]]
) -> tuple[tuple[Direction, ...], Range | None]:
    """Return directions and results of a function that is monotone between the corners of its arguments.

    ``points`` are the corners of each argument, in Spark's order. A point at which ``compute`` returns None or raises
    is skipped: the result is null there, or the query fails.
    """
    results: dict[tuple[int, ...], Number] = {}
    for position in itertools.product(*(range(len(p)) for p in points)):
        try:
            value = compute(*(p[i] for p, i in zip(points, position, strict=True)))
        except ArithmeticError:
            continue
        if value is not None:
            results[position] = value
    return tuple(_direction(results, points, n) for n in range(len(points))), hull(results.values())


def _direction(results: dict[tuple[int, ...], Number], points: Sequence[Sequence[Number]], n: int) -> Direction:
    grows = falls = False
    others = [range(len(p)) for i, p in enumerate(points) if i != n]
    for position in itertools.product(*others):
        line = (results.get((*position[:n], i, *position[n:])) for i in range(len(points[n])))
        keys = [order_key(v) for v in line if v is not None]
        for before, after in itertools.pairwise(keys):
            grows |= before < after
            falls |= after < before
    if grows and falls:
        return "unknown"
    return "up" if grows else "down" if falls else "none"
