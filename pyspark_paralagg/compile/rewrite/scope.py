"""Map the variables of a rule to the columns that bind them. Most passes use this."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.program.expr import Col, Expr, columns, substitute
from pyspark_paralagg.program.program import Column, Dependent, Program, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping

Role = Literal["static", "key", "dependent"]


@dataclass(frozen=True)
class Variable:
    """Column ``position`` of body atom ``atom``.

    ``role`` is ``static`` for a column of an input, ``key`` or ``dependent`` for a column of a recursive relation.
    ``column`` is the user's column if the variable stands for one; otherwise it has the variable's name.
    """

    atom: int
    position: int
    column: Column
    role: Role
    relation: str | None = None
    dependent: Dependent | None = None


def variables(rule: Rule, program: Program) -> dict[str, Variable]:
    """Return all variables that the body of ``rule`` binds, by name."""
    bound: dict[str, Variable] = {}
    for a, atom in enumerate(rule.body):
        if atom.relation is not None:
            relation = program.relation(atom.relation)
            for p, name in enumerate(atom.variables):
                if name is not None:
                    d = relation.dependents[p - len(relation.keys)] if p >= len(relation.keys) else None
                    role: Role = "key" if d is None else "dependent"
                    bound[name] = Variable(a, p, relation.columns[p], role, relation.name, d)
        elif atom.input is not None:
            for p, name in enumerate(atom.variables):
                if name is not None:
                    bound[name] = Variable(a, p, _column(name, program.input(atom.input).exprs[p]), "static")
    return bound


def _column(name: str, expr: Expr) -> Column:
    if isinstance(expr, Col):
        return Column(expr.name, expr.type, expr.nullable)
    return Column(name, expr.type)


def dependents_in(expr: Expr, scope: Mapping[str, Variable]) -> list[str]:
    """Return the sorted variables of ``expr`` that are dependent columns of the recursion."""
    return sorted(c for c in columns(expr) if scope[c].role == "dependent")


def recursive_atoms(rule: Rule) -> tuple[int, ...]:
    """Return the positions of atoms that read relations of the rule's own stratum (after ``stratify``)."""
    return tuple(n for n, a in enumerate(rule.body) if a.relation is not None and a.kind == "join")


def inlined(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """Return ``expr`` with every column that ``values`` contains replaced by its value."""
    return substitute(expr, lambda c: values.get(c.name, c))
