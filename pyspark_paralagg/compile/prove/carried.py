"""min_by and max_by: when the pair (order, carried) is monotone in its lexicographic order (design section 3).

A parent that is a key, and a source that is copied along strictly longer paths, are fine. A label that is carried along
a widest path is not: a wider path with another label may end equally wide, with a label that should have won.

    min d + w,        parent = x       proved: x is a key
    min d + w,        first = first    proved: d + w is strictly monotone in d
    max least(c, w),  label = label    refuted
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.monotone import MOVE_OF, Monotone, range_of
from pyspark_paralagg.program.expr import Call, Col, Expr, columns
from pyspark_paralagg.program.functions import shape_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.compile.prove.facts import Facts
    from pyspark_paralagg.compile.rewrite.scope import Variable
    from pyspark_paralagg.program.aggregators import Move
    from pyspark_paralagg.program.functions.function import Strictness


@dataclass(frozen=True)
class CarriedMove:
    """How a carried column moves while its order column stays.

    ``is_rounded``: two orders that differ may become equal by rounding, and then the smaller carried value wins.
    """

    is_fine: bool
    is_rounded: bool


def strict_in(expr: Expr, name: str, facts: Facts) -> Strictness:
    """Return whether ``expr`` changes whenever ``name`` does."""
    if isinstance(expr, Col):
        return "exact" if expr.name == name else "no"
    if not isinstance(expr, Call):
        return "no"
    inside = [name in columns(a) for a in expr.args]
    if sum(inside) != 1:
        return "no"
    at = inside.index(True)
    shape = shape_of(expr, tuple(range_of(a, facts) for a in expr.args), facts.setting)
    found = [shape.strict[at], strict_in(expr.args[at], name, facts)]
    return "no" if "no" in found else "rounded" if "rounded" in found else "exact"


def carried_move(carried: Expr, order: Expr, scope: Mapping[str, Variable], facts: Facts) -> CarriedMove:
    """Return how the carried column moves where the order column stays as it is: it has to stay or go down."""
    moves: dict[str, Move] = {}
    loses: set[str] = set()
    is_rounded = False
    for name, v in scope.items():
        if v.dependent is None:
            continue
        decides = order_of(name, scope)
        strict = strict_in(order, name if decides is None else decides, facts)
        if name in columns(carried):
            is_rounded |= strict == "rounded"
        if decides is None:
            moves[name] = MOVE_OF[v.dependent.aggregator] if strict == "no" else "const"
            continue
        # At an equal order the smallest carried value wins, so it only goes down.
        moves[name] = "unknown" if strict == "no" else "down"
        if strict == "no":
            loses.add(name)
    found = Monotone(moves, facts, frozenset(loses)).behaviour(carried)
    return CarriedMove(found.improves_as("down"), is_rounded)


def order_of(name: str, scope: Mapping[str, Variable]) -> str | None:
    """The variable that decides on the carried variable ``name``: same atom, its order column. None if not carried."""
    v = scope[name]
    if v.dependent is None or v.dependent.order is None:
        return None
    return next(
        (
            n
            for n, o in scope.items()
            if o.atom == v.atom and o.dependent and o.dependent.column.name == v.dependent.order
        ),
        "",
    )
