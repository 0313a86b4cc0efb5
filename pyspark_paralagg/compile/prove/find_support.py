"""Find whether a stored value identifies the derivations that support it, so that deletes can compare values.

A maintained lattice deletes the rows that a deleted row supported (``maintenance.over_delete``). A derivation supports
a row if it has the row's keys and the row's value. That finds all supports only if no row got its value from a worse,
earlier value of another row. The counterexample is a step that derives ``least(d, 5)``: 5 was derived from 7, which
later became 5 by a derivation from that same row. Both rows then support each other, and the row with 7 supports none.

Two conditions exclude this, for relations with one value column each:

    strict      each rule derives a value that differs if a value that it read differs: ``d``, ``d + w`` of integers
    worsening   each rule derives a value that is no better than those that it read: ``d + w`` with ``w >= 0`` and
                ``greatest(d, w)`` under ``min``, ``least(d, w)`` under ``max``

Why worsening is enough: take the derivation that gave a row its value first. If a row that it read has become better
since, its value is better than the row's now; else it had its value first. So a chain of such derivations never comes
back to a row. Strict and worsening rules must not be mixed: ``greatest(d, 5)`` may read 4, which later became 2 by
``d - 3`` of that 5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.monotone import Monotone
from pyspark_paralagg.compile.prove.rule_facts import facts_of
from pyspark_paralagg.compile.rewrite.scope import dependents_in, variables
from pyspark_paralagg.program.aggregators import is_integral
from pyspark_paralagg.program.expr import Call, Col, Expr
from pyspark_paralagg.program.functions.casts import is_exact
from pyspark_paralagg.program.functions.value_range import is_float

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.compile.prove.facts import Facts
    from pyspark_paralagg.compile.rewrite.scope import Variable
    from pyspark_paralagg.program.program import Dependent, Program, Relation, Rule

_ORDERS = ("min", "max", "any", "all")
"""Aggregators whose result is one of their values."""


def value_column(relation: Relation) -> Dependent | None:
    """Return the only column that is not carried by another one; None if there are several, or no total order."""
    values = [d for d in relation.dependents if d.order is None]
    if len(values) != 1 or values[0].custom is not None or values[0].aggregator not in _ORDERS:
        return None
    return values[0]


def supports_have_the_value(program: Program, names: Sequence[str]) -> bool:
    """Return whether each support of a row of the relations ``names`` derives the row's value.

    ``program`` has no other relation that they read, and is proved to be a lattice. They recurse together, so all of
    them need a value under the same aggregator.
    """
    values = {name: value for name in names if (value := value_column(program.relation(name))) is not None}
    if len(values) < len(names) or len({v.aggregator for v in values.values()}) > 1:
        return False
    rules = [r for r in program.rules if r.head in values and any(atom.relation is not None for atom in r.body)]
    derived = [(r, expr) for r in rules if (expr := _derived_value(r, program, values)) is not None]
    if len(derived) < len(rules):
        return False
    return all(_Strict(variables(r, program)).holds(expr) for r, expr in derived) or all(
        _Worsening(variables(r, program), facts_of(r, program), values[r.head]).holds(expr) for r, expr in derived
    )


def _derived_value(rule: Rule, program: Program, values: Mapping[str, Dependent]) -> Expr | None:
    """Return the value that a recursive rule derives; None unless it reads the value of each row that it joins."""
    scope = variables(rule, program)
    recursive = [n for n, atom in enumerate(rule.body) if atom.relation is not None]
    if any(rule.body[n].kind != "join" for n in recursive):
        return None
    exprs = dict(zip((c.name for c in program.relation(rule.head).supplied), rule.exprs, strict=True))
    expr = exprs[values[rule.head].column.name]
    read = [scope[v] for v in dependents_in(expr, scope)]
    if any(v.dependent != values.get(v.relation or "") for v in read):
        return None
    return expr if {v.atom for v in read} == set(recursive) else None


class _Strict:
    """Sums of values and static terms, without rounding."""

    def __init__(self, scope: dict[str, Variable]) -> None:
        self._scope = scope

    def holds(self, expr: Expr) -> bool:
        """Return whether ``expr`` reads a value, and differs if one of the values gets better."""
        if isinstance(expr, Col):
            return self._scope[expr.name].role == "dependent"
        if not isinstance(expr, Call):
            return False
        if expr.fn == "Cast":
            return is_exact(expr.args[0].type, expr.type) and self.holds(expr.args[0])
        if expr.fn == "Add" and is_integral(expr.type):
            return all(self.holds(a) or not dependents_in(a, self._scope) for a in expr.args)
        if expr.fn == "Subtract" and is_integral(expr.type):
            return self.holds(expr.args[0]) and not dependents_in(expr.args[1], self._scope)
        return False


class _Worsening:
    """The value itself, the worst of it and others, and sums of floating-point values and terms of a known sign."""

    def __init__(self, scope: dict[str, Variable], facts: Facts, value: Dependent) -> None:
        self._scope = scope
        self._system = Monotone({}, facts)
        self._is_min = value.aggregator == "min"
        self._worst = "Greatest" if value.aggregator in {"min", "all"} else "Least"

    def holds(self, expr: Expr) -> bool:
        """Return whether ``expr`` is no better than each value that it reads."""
        if isinstance(expr, Col):
            return self._scope[expr.name].role == "dependent"
        if isinstance(expr, Call) and expr.fn == self._worst:
            return all(self.holds(a) for a in expr.args if dependents_in(a, self._scope))
        if not isinstance(expr, Call) or expr.fn != "Add" or not is_float(expr.type):
            return False
        left, right = expr.args
        return (self.holds(left) and self._adds_nothing_good(right)) or (
            self.holds(right) and self._adds_nothing_good(left)
        )

    def _adds_nothing_good(self, expr: Expr) -> bool:
        if dependents_in(expr, self._scope):
            return False
        range_ = self._system.behaviour(expr).range
        if range_ is None:
            return False
        return range_.low >= 0 if self._is_min else range_.high <= 0 and not range_.has_nan
