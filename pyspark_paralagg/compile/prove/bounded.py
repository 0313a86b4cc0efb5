"""Decide whether a lattice can climb without end: min over a negative cycle, max over a positive one.

It cannot if every rule gives a value no better than the one that it reads (``d + w`` under min with w >= 0,
``least(c, w)`` under max), or clamped by a constant, or out of few. Then no run needs to be traced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.finite_keys import has_few_values
from pyspark_paralagg.compile.prove.monotone import range_of
from pyspark_paralagg.compile.prove.rule_facts import facts_of
from pyspark_paralagg.compile.rewrite.scope import Variable, variables
from pyspark_paralagg.program.aggregators import is_integral, is_numeric
from pyspark_paralagg.program.expr import Call, Col, Expr, branches, columns
from pyspark_paralagg.program.functions.casts import is_exact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.compile.prove.facts import Facts
    from pyspark_paralagg.program.program import Program, Rule


def climbs(program: Program, rules: tuple[Rule, ...]) -> bool:
    """Return whether some value may improve without end."""
    return any(not _is_bounded(program, rule) for rule in rules)


def translates(program: Program, rules: tuple[Rule, ...], relation_class: str) -> bool:
    """Return whether rules only copy values of the recursion or shift them by amounts independent of them.

    Then a value that improves around a cycle improves by the same amount each time, without end. If values shrink
    (``d / 3``) or a condition reads them, they may converge after any number of iterations.
    """
    if relation_class == "accumulating":
        return True
    for rule in rules:
        head = program.relation(rule.head)
        scope, facts = variables(rule, program), facts_of(rule, program)
        system = _Translation(scope, facts)
        for d, expr in zip(head.dependents, rule.exprs[len(head.keys) :], strict=True):
            if d.custom is not None or (d.order is None and not system.translates(expr)):
                return False
    return True


class _Translation:
    """The test whether an expression is a value of the recursion, or the best of several, shifted by a fixed amount."""

    def __init__(self, scope: Mapping[str, Variable], facts: Facts) -> None:
        self._scope = scope
        self._facts = facts

    def translates(self, expr: Expr) -> bool:
        """Return whether ``expr`` is fixed, or shifts a value that it reads by a fixed amount."""
        if self._is_fixed(expr) or isinstance(expr, Col):
            return True
        return isinstance(expr, Call) and self._call(expr)

    def _is_fixed(self, expr: Expr) -> bool:
        return not any(self._scope[c].role == "dependent" for c in columns(expr))

    def _call(self, expr: Call) -> bool:  # noqa: PLR0911 - a function a line
        args = expr.args
        match expr.fn:
            case "Add" | "DateAdd" | "TimestampAddInterval":
                return all(self.translates(a) for a in args)
            case "Subtract" | "DateSub":
                return self.translates(args[0]) and self._is_fixed(args[1])
            case "Multiply":
                # An integer times a factor of at least one grows by at least as much.
                return is_integral(expr.type) and any(
                    self.translates(a) and self._is_fixed(b) and self._is_at_least_one(b) for a, b in (args, args[::-1])
                )
            case "Least" | "Greatest":
                return all(self.translates(a) for a in args)
            case "Cast":
                return is_exact(args[0].type, expr.type) and self.translates(args[0])
            case "Between" | "Present":
                return self.translates(args[0])
            case "If" | "CaseWhen":
                conditions, values = branches(expr)
                return all(map(self._is_fixed, conditions)) and all(map(self.translates, values))
            case _:
                return False

    def _is_at_least_one(self, expr: Expr) -> bool:
        range_ = range_of(expr, self._facts)
        return range_ is not None and range_.low >= 1


def _is_bounded(program: Program, rule: Rule) -> bool:
    head = program.relation(rule.head)
    scope, facts = variables(rule, program), facts_of(rule, program)
    for d, expr in zip(head.dependents, rule.exprs[len(head.keys) :], strict=True):
        if d.definition.ends or d.column.type == "boolean" or has_few_values((expr,), rule, program):
            continue
        if d.custom is not None:
            # Its order is user-defined: only a copy, or an expression over no recursive value, is one of finitely many.
            if not isinstance(expr, Col) and any(scope[c].role == "dependent" for c in columns(expr)):
                return False
            continue
        if d.order is not None:
            # A copied column is one of finitely many values.
            if not isinstance(expr, Col) and any(scope[c].role == "dependent" for c in columns(expr)):
                return False
        elif not _Bound(d.aggregator, scope, facts).is_no_better(expr):
            return False
    return True


class _Bound:
    """The test whether an expression is no better than a value that it reads, under min or max."""

    def __init__(self, aggregator: str, scope: Mapping[str, Variable], facts: Facts) -> None:
        self._aggregator = aggregator
        self._scope = scope
        self._facts = facts

    def is_no_better(self, expr: Expr) -> bool:
        """Return whether ``expr`` is constant or no better than a value of the recursion that it reads."""
        if not any(self._scope[c].role == "dependent" for c in columns(expr)):
            return True
        if isinstance(expr, Col):
            d = self._scope[expr.name].dependent
            return d is not None and d.aggregator == self._aggregator
        return isinstance(expr, Call) and self._call(expr)

    def _call(self, expr: Call) -> bool:  # noqa: PLR0911 - a function a line
        args = expr.args
        match expr.fn:
            case "Add":
                return any(self._is_shift_no_better(args[n], args[1 - n], adds=True) for n in (0, 1))
            case "Subtract":
                return self._is_shift_no_better(args[0], args[1], adds=False)
            case "Least" | "Greatest":
                # If the function picks the worse value, one bounded argument is enough, even a constant: the climb
                # may be long, but it ends. `all` accepts constants, too.
                picks_worse = (expr.fn == "Greatest") == (self._aggregator == "min")
                return (any if picks_worse else all)(self.is_no_better(a) for a in args)
            case "Cast":
                return is_numeric(args[0].type) and is_numeric(expr.type) and self.is_no_better(args[0])
            case "Between" | "Present":
                return self.is_no_better(args[0])
            case "If" | "CaseWhen":
                return all(self.is_no_better(v) for v in branches(expr)[1])
            case _:
                return False

    def _is_shift_no_better(self, value: Expr, other: Expr, *, adds: bool) -> bool:
        """Return whether adding (or subtracting) ``other`` to a bounded ``value`` makes it no better."""
        reads_recursion = any(self._scope[c].role == "dependent" for c in columns(value))
        shift = range_of(other, self._facts)
        if not reads_recursion or shift is None or not self.is_no_better(value):
            return False
        # NaN is the largest value: worst for min, best for max.
        is_min = self._aggregator == "min"
        return (shift.low >= 0 if adds == is_min else shift.high <= 0) and (is_min or not shift.has_nan)
