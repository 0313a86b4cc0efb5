"""Turn a filter on the result of a groupBy (HAVING) into one on its rows, where the relation keeps the same result.

    r.groupBy("k").agg(F.max("v").alias("v")).filter("v > 5")          r.filter("v > 5")

A group passes if its greatest value does, which is then the greatest of the rows that pass. This holds under ``max``
for a lower bound, under ``min`` for an upper bound, and only if no other column of the relation reads the other rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import Call, Expr, Lit
from pyspark_paralagg.program.no_rows import over_no_rows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark_paralagg.program.program import Relation

_LESS, _GREATER = ("LessThan", "LessThanOrEqual"), ("GreaterThan", "GreaterThanOrEqual")


def row_condition(condition: Expr, head: Relation, is_fixed: Callable[[Expr], bool]) -> Expr | None:
    """Return the condition of a row for the ``condition`` of a group; None if no filter on rows means the same.

    ``is_fixed`` returns whether an expression has one value in a group.
    """
    if len(head.dependents) != 1 or head.traces or not isinstance(condition, Call):
        return None
    definition = head.dependents[0].definition
    if definition.moves not in ("up", "down") or definition.parameters or condition.fn not in (*_LESS, *_GREATER):
        return None
    left, right = condition.args
    is_left = _is_absorbed(left, definition.absorbs)
    aggregate, bound = (left, right) if is_left else (right, left)
    is_lower = is_left == (condition.fn in _GREATER)
    if not isinstance(aggregate, Call) or not _is_absorbed(aggregate, definition.absorbs) or not is_fixed(bound):
        return None
    if is_lower != (definition.moves == "up"):
        return None
    value = aggregate.args[0]
    args = (value, bound) if is_left else (bound, value)
    return replace(condition, args=args)


def condition_of_no_rows(condition: Expr) -> Expr:
    """Return ``condition`` with the values that its aggregates have over no rows."""
    if isinstance(condition, Call) and condition.fn.startswith("agg:"):
        return over_no_rows(condition) or Lit(None, condition.type)
    if not isinstance(condition, Call):
        return condition
    return replace(condition, args=tuple(map(condition_of_no_rows, condition.args)))


def _is_absorbed(expr: Expr, names: tuple[str, ...]) -> bool:
    return isinstance(expr, Call) and expr.fn.startswith("agg:") and expr.fn.removeprefix("agg:") in names
