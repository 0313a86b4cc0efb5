"""Check that aggregating in every round equals aggregating all derived rows once, at the end.

Used for SQL with ``UNION ALL`` and a ``min`` or ``max`` afterwards, after ``verify`` has proved a lattice. With one
aggregated column it holds: a group's minimum is the value of one of its rows, and a monotone step of that row is as
good as any other row's. With several it may fail: their minima may come from different rows and form a row that no rule
derived.

    path(x, min d + w, min h + 1) :- path(y, d, h), edge(y, x, w), h < 3.    d of a long path passes with h of a short
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.scope import dependents_in, variables
from pyspark_paralagg.errors import VerificationError
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Program


def check_early_aggregation(program: Program) -> None:
    """Raise ``VerificationError`` ``PARALAGG_ROWS_MIXED`` if a rule combines aggregated columns of different rows.

    For programs whose rules read one recursive atom each, and whose relations take ``min`` and ``max``. With several
    aggregated columns no filter may read one, and no value more than one.
    """
    for rule in program.rules:
        if len(program.relation(rule.head).dependents) < 2:  # noqa: PLR2004 - one column cannot be mixed
            continue
        scope = variables(rule, program)
        for condition in rule.conditions:
            if dependents_in(condition, scope):
                raise _mixed("filter", condition, rule.place)
        for value in rule.exprs:
            if len(dependents_in(value, scope)) > 1:
                raise _mixed("value", value, rule.place)


def _mixed(what: str, expr: Expr, place: str) -> VerificationError:
    return VerificationError(
        "PARALAGG_ROWS_MIXED",
        f"the {what} {show(expr)} combines aggregated columns of different rows",
        value=show(expr),
        place=place,
        hint="use only one aggregate, or write the aggregates in the head of the CTE",
    )
