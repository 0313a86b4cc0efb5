"""Decide for min_by and max_by whether the pair (order, carried) is monotone in its lexicographic order.

A parent that is a key, and a source copied along strictly longer paths, are monotone. A label carried along a widest
path is not: a wider path with another label may end equally wide and carry the label that loses the tie.
See docs/semantics.md, "What is proved, and what is not".

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
    """The movement of a carried column while its order column stays the same.

    ``is_rounded``: two different orders may become equal by rounding; then the smaller carried value wins.
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
    position = inside.index(True)
    shape = shape_of(expr, tuple(range_of(a, facts) for a in expr.args), facts.setting)
    strictness = [shape.strict[position], strict_in(expr.args[position], name, facts)]
    return "no" if "no" in strictness else "rounded" if "rounded" in strictness else "exact"


def carried_move(carried: Expr, order: Expr, scope: Mapping[str, Variable], facts: Facts) -> CarriedMove:
    """Return how the carried column moves while the order column is unchanged: it must stay or go down."""
    moves: dict[str, Move] = {}
    loses: set[str] = set()
    is_rounded = False
    for name, v in scope.items():
        if v.dependent is None:
            continue
        order_variable = order_of(name, scope)
        strict = strict_in(order, name if order_variable is None else order_variable, facts)
        if name in columns(carried):
            is_rounded |= strict == "rounded"
        if order_variable is None:
            moves[name] = MOVE_OF[v.dependent.aggregator] if strict == "no" else "const"
            continue
        # On a tie the smallest carried value wins, so it only goes down.
        moves[name] = "unknown" if strict == "no" else "down"
        if strict == "no":
            loses.add(name)
    behaviour = Monotone(moves, facts, frozenset(loses)).behaviour(carried)
    return CarriedMove(behaviour.improves_as("down"), is_rounded)


def order_of(name: str, scope: Mapping[str, Variable]) -> str | None:
    """Return the variable of the same atom that orders the carried variable ``name``; None if it is not carried."""
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
