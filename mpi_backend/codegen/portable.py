"""Check whether the engine can run a Plan: write its code without compiling it, and return the first refusal.

This module does not import Numba, which is slow to load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpi_backend.codegen.expressions import Expressions, no_texts
from mpi_backend.codegen.source import Source
from mpi_backend.codegen.values import Value
from mpi_backend.codegen.writer import Sites
from mpi_backend.state.types import type_of
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.plan.plan import Filter
from pyspark_paralagg.program.expr import Col, walk
from pyspark_paralagg.program.sets import is_set_merge
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.plan.plan import Plan, PlannedRule, Stratum
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Input

_AGGREGATOR = "the aggregator"


def check_portable(plan: Plan, *, hint: str, place: str | None = None, inputs: bool = False) -> None:
    """Raise ``UnsupportedError`` ``PARALAGG_NOT_PORTABLE`` if the engine cannot run ``plan``: see ``unportable``."""
    expression = unportable(plan, inputs=inputs)
    if expression is not None:
        message = f"the engine outside of the JVM does not support {expression}"
        raise UnsupportedError("PARALAGG_NOT_PORTABLE", message, value=expression, place=place, hint=hint)


def unportable(plan: Plan, *, inputs: bool = False) -> str | None:
    """Return what the engine cannot compute, where, and why; None if it can run ``plan``.

    With ``inputs``, also check the expressions of inputs, which Spark may compute instead.

    >>> from pyspark_paralagg.plan.plan import Plan
    >>> unportable(Plan("none", (), ())) is None
    True
    """
    reasons = (_refusal(name, place, expr) for name, place, expr in _items(plan, inputs=inputs))
    return next((r for r in reasons if r is not None), None)


def _refusal(name: str, place: str, expr: Expr | str) -> str | None:
    try:
        if isinstance(expr, str):
            type_of(expr)
        else:
            _write(expr, combines=place.startswith(_AGGREGATOR))
    except UnsupportedError as problem:
        return f"{name} in {place}: {problem.message}"
    return None


def _items(plan: Plan, *, inputs: bool) -> Iterator[tuple[str, str, Expr | str]]:
    """Yield the description, the place and the value of each expression and column type."""
    for source in plan.inputs if inputs else ():
        for column in source.columns:
            yield f"the column {column.name}", _place(source), column.type
        for expr in (*source.filters, *source.exprs):
            yield show(expr), _place(source), expr
    for source in plan.inputs:
        for expr in source.exprs:
            yield show(expr), _place(source), expr.type
    for stratum in plan.strata:
        yield from _stratum_items(stratum)


def _place(source: Input) -> str:
    return f"the input {source.name or source.relation or source.id}"


def _stratum_items(stratum: Stratum) -> Iterator[tuple[str, str, Expr | str]]:
    for relation in stratum.relations:
        place = f"the relation {relation.name}"
        for column in (*relation.keys, *(d.column for d in relation.dependents)):
            yield f"the column {column.name}", place, column.type
        for d in relation.dependents:
            if d.custom is not None and d.part == 0:
                improves = () if d.custom.improves is None else (d.custom.improves,)
                for expr in (*d.custom.combine, *improves):
                    yield show(expr), f"{_AGGREGATOR} {d.custom.name} of {place}", expr
    for rule in stratum.rules:
        for expr in _expressions(rule):
            yield show(expr), rule.text, expr


def _expressions(rule: PlannedRule) -> Iterator[Expr]:
    for step in rule.steps:
        yield from (step.condition,) if isinstance(step, Filter) else step.keys
    yield from rule.emit


def _write(expr: Expr, *, combines: bool) -> None:
    """Write the code of ``expr`` with nullable columns, which has all possible branches."""
    variables = {c.name: Value(type_of(c.type), "v", "n") for c in walk(expr) if isinstance(c, Col)}
    leave = no_texts if combines and not is_set_merge(expr) else _leave
    Expressions(Source(), variables, Sites(), ansi=True, makes_strings=True, leave=leave).value(expr)


def _leave() -> None:
    """Do nothing: rules and inputs can be suspended for a text function."""
