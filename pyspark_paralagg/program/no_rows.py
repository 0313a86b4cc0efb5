"""Evaluate an aggregate without groups over no rows: Spark returns one row, which no rule derives from other rows.

    r.filter("k > 5").agg(F.max("v").alias("v")).select(F.lit(7).alias("k"), "v")

``step`` makes two branches of it: one derives a row from each row that the aggregate reads, the other one the row that
Spark returns without rows. The latter is derived in every case, so the relation's own aggregate must ignore its values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import Call, Expr, Lit

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Dependent


def over_no_rows(expr: Expr) -> Lit | None:
    """Return the value of ``expr``, in which aggregates are ``agg:`` calls, over no rows; None if it is not known.

    >>> over_no_rows(Call("Coalesce", (Call("agg:sum", (), "bigint"), Lit(0, "bigint")), "bigint"))
    Lit(value=0, type='bigint', handle=None)
    """
    if isinstance(expr, Lit):
        return expr
    if not isinstance(expr, Call):
        return None
    if expr.fn.startswith("agg:"):
        return Lit(0 if expr.fn.startswith("agg:count") else None, expr.type)
    args = [over_no_rows(a) for a in expr.args]
    if expr.fn == "Coalesce":
        return next((a for a in args if a is None or a.value is not None), Lit(None, expr.type))
    is_null = any(a is not None and a.value is None for a in args)
    if is_null and expr.fn in ("Cast", "Multiply", "Divide"):
        return Lit(None, expr.type)
    is_zero = expr.fn == "Cast" and args[0] is not None and args[0].value == 0
    return Lit(0, expr.type) if is_zero else None


def changes_nothing(value: Lit, d: Dependent) -> bool:
    """Return whether a row with ``value`` leaves the aggregate of all other rows as it is."""
    if value.value is None:
        # Without a value a row counts 1. Witnesses with a total count 0 if the total is null.
        return not d.definition.counts_rows and d.definition.shares < 2  # noqa: PLR2004 - a value and a total
    return value.value == 0 and d.definition.is_sum
