"""min_by and max_by: when the pair (order, carried) is monotone in its lexicographic order (design section 3).

A parent that is a key, and a source that is copied along strictly longer paths, are fine. A label that is carried along
a widest path is not: a wider path with another label may end equally wide, with a label that should have won.

    min d + w,        parent = x       proved: x is a key
    min d + w,        first = first    proved: d + w is strictly monotone in d
    max least(c, w),  label = label    refuted
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.monotone import MOVE_OF, Monotone
from pyspark_paralagg.compile.signs import Signs, signs
from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.expr import Call, Col, Expr, columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.compile.scope import Variable
    from pyspark_paralagg.program.aggregators import Move

_INTEGRALS = ("tinyint", "smallint", "int", "bigint")


def strict_in(expr: Expr, name: str, facts: Mapping[str, Signs]) -> bool:  # noqa: PLR0911 - a rule a line
    """Whether ``expr`` changes whenever ``name`` does (sums of doubles are taken for exact)."""
    if isinstance(expr, Col):
        return expr.name == name
    if not isinstance(expr, Call):
        return False
    inside = [name in columns(a) for a in expr.args]
    match expr.fn:
        case "Add" | "Subtract" | "Multiply" | "Divide" if sum(inside) == 1:
            at = inside.index(True)
            is_factor = expr.fn in ("Multiply", "Divide")
            if (is_factor and 0 in signs(expr.args[1 - at], facts)) or (expr.fn == "Divide" and at == 1):
                return False
            return strict_in(expr.args[at], name, facts)
        case "UnaryMinus" | "UnaryPositive":
            return strict_in(expr.args[0], name, facts)
        case "Cast":
            return _is_injective(expr.args[0].type, expr.type) and strict_in(expr.args[0], name, facts)
        case _:
            return False


def carried_move(carried: Expr, order: Expr, scope: Mapping[str, Variable], facts: Mapping[str, Signs]) -> Move:
    """How the carried column moves where the order column stays as it is; ``const`` and ``down`` are monotone."""
    moves: dict[str, Move] = {}
    for name, v in scope.items():
        if v.dependent is None:
            continue
        decides = order_of(name, scope)
        if decides is not None:
            # At an equal order the smallest carried value wins, so it only goes down.
            moves[name] = "down" if strict_in(order, decides, facts) else "unknown"
        else:
            moves[name] = "const" if strict_in(order, name, facts) else MOVE_OF[v.dependent.aggregator]
    return Monotone(moves, facts).move(carried)


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


def _is_injective(source: str, target: str) -> bool:
    if is_integral(source) and is_integral(target):
        return _INTEGRALS.index(source) <= _INTEGRALS.index(target)
    return (
        source == target or (source in _INTEGRALS[:3] and target == "double") or (source, target) == ("float", "double")
    )
