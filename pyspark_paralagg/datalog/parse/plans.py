"""Check the join orders of a rule, ``.plan 0:(2, 1)``, against the atoms of its body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_plan(plan: syntax.Plan | None, body: syntax.Body) -> None:
    """Raise ``Problem`` unless each order has each positive atom of ``body`` once; of ``a, (b; c)`` those are two."""
    if plan is None:
        return
    for version, order in plan.orders:
        for atoms in sorted(_atoms(body)):
            _check_order(version, order, atoms, plan.span)


def _check_order(version: int, order: tuple[int, ...], atoms: int, span: syntax.Span) -> None:
    every = range(1, atoms + 1)
    hint = f"give each of `{_list(every)}` once, in the order of the joins; negated atoms have no number"
    if sorted(order) != list(every):
        message = f"`{version}:{_list(order)}` is no order of the body's positive atoms (there are {atoms})"
        raise Problem(message, span, hint if atoms else "leave `.plan` out")
    if version >= max(atoms, 1):
        message = f"this rule has no version {version}: each recursive atom has one, from 0 on"
        raise Problem(message, span, "write version 0; its order holds for all versions")


def _list(numbers: Iterable[int]) -> str:
    return f"({', '.join(map(str, numbers))})"


def _atoms(body: syntax.Body) -> set[int]:
    """Return how many positive atoms the alternatives of ``body`` have."""
    match body:
        case syntax.Disjunction():
            return {n for part in body.parts for n in _atoms(part)}
        case syntax.Conjunction():
            counts = {0}
            for part in body.parts:
                counts = {n + more for n in counts for more in _atoms(part)}
            return counts
        case _:
            return {int(isinstance(body, syntax.Atom))}
