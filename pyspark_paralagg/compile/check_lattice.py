"""One rule of a lattice: each value of the head moves with its aggregator, each filter from false to true."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.carried import carried_move, order_of
from pyspark_paralagg.compile.counterexample import Values, against_filter, against_monotone
from pyspark_paralagg.compile.evaluate import NotEvaluableError, evaluate
from pyspark_paralagg.compile.monotone import MOVE_OF, Monotone
from pyspark_paralagg.compile.refusal import Refuser, dependents_in
from pyspark_paralagg.compile.scope import Variable, variables
from pyspark_paralagg.compile.signs import Signs, facts_of
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Dependent, Program, Rule


def check_lattice(rule: Rule, program: Program, refuser: Refuser) -> None:
    """Nothing if ``rule`` is monotone; otherwise raises through ``refuser``."""
    check = _RuleCheck(rule, program, refuser)
    for condition in rule.conditions:
        check.filter(condition)
    head = program.relation(rule.head)
    values = dict(zip((d.column.name for d in head.dependents), rule.exprs[len(head.keys) :], strict=True))
    for d in head.dependents:
        if d.order is None:
            check.value(values[d.column.name], d)
        else:
            check.carried(values[d.column.name], values[d.order], d)


class _RuleCheck:
    def __init__(self, rule: Rule, program: Program, refuser: Refuser) -> None:
        self._rule = rule
        self._refuser = refuser
        self._scope = variables(rule, program)
        self._facts = facts_of(rule, program)
        self._moves = {n: MOVE_OF.get(v.dependent.aggregator, "unknown") for n, v in self._scope.items() if v.dependent}
        # With min_by, values to try are those of the order column; what is carried may become anything.
        directions = {n: v.dependent.aggregator for n, v in self._scope.items() if v.dependent}
        self._values = Values(directions, self._facts, rule.conditions)

    def filter(self, condition: Expr) -> None:
        """``condition`` stays true once it is."""
        found = dependents_in(condition, self._scope)
        if not found or self._proves(condition, "up", self._facts):
            return
        v = self._scope[found[0]]
        what = f"the filter {show(condition)} on {v.column.name}, which {_how(v)} aggregates, stays true once it is"
        help_ = self._refuser.assumption_for(self._rule, (condition,), lambda f: self._proves(condition, "up", f))
        example = None if help_ else against_filter(condition, self._values)
        if example:
            what = f"the filter {show(condition)} loses rows while {v.column.name} improves under {_how(v)}"
            self._refuser.refuted("PARALAGG_NOT_MONOTONE", what, v.column.name, self._rule, example)
        self._refuser.unknown(what, v.column.name, self._rule, help_)

    def value(self, expr: Expr, d: Dependent) -> None:
        """``expr`` moves as the aggregator of the head's column ``d`` does."""
        wanted = MOVE_OF[d.aggregator]
        if self._proves(expr, wanted, self._facts):
            return
        name = d.column.name
        what = f"that {name} = {show(expr)} never gets worse under {d.aggregator}"
        help_ = self._refuser.assumption_for(self._rule, (expr,), lambda f: self._proves(expr, wanted, f))
        example = None if help_ else against_monotone(expr, d.aggregator, self._values)
        if example:
            what = f"{name} = {show(expr)} is not monotone under {d.aggregator}"
            self._refuser.refuted("PARALAGG_NOT_MONOTONE", what, name, self._rule, example)
        self._refuser.unknown(what, name, self._rule, help_)

    def carried(self, expr: Expr, order: Expr, d: Dependent) -> None:
        """The pair (``order``, ``expr``) is monotone in its lexicographic order."""
        if self._carries(expr, order, self._facts):
            return
        name = d.column.name
        what = f"that {name} = {show(expr)} follows {d.order} = {show(order)} without getting worse"
        help_ = self._refuser.assumption_for(self._rule, (order,), lambda f: self._carries(expr, order, f))
        example = None if help_ else self._tie(expr, order, d)
        if example:
            what = f"{name} = {show(expr)} feeds itself, and {d.order} = {show(order)} may tie where it should improve"
            self._refuser.refuted("PARALAGG_NOT_MONOTONE", what, name, self._rule, example)
        self._refuser.unknown(what, name, self._rule, help_)

    def _carries(self, expr: Expr, order: Expr, facts: dict[str, Signs]) -> bool:
        return carried_move(expr, order, self._scope, facts) in ("const", "down")

    def _proves(self, expr: Expr, wanted: str, facts: dict[str, Signs]) -> bool:
        system = Monotone(self._moves, facts)
        if system.move(expr) not in ("const", wanted):
            return False
        self._refuser.notes += [f"{self._rule.place}: {n}" for n in dict.fromkeys(system.notes)]
        return True

    def _tie(self, expr: Expr, order: Expr, d: Dependent) -> str | None:
        """Two values of the order variable that give one order: the worse one's smaller label should have won."""
        for name in dependents_in(expr, self._scope):
            decides = order_of(name, self._scope)
            if not decides:
                continue
            for worse, better in self._values.pairs((order,)):
                if worse.get(decides) == better.get(decides) or None in (*worse.values(), *better.values()):
                    continue
                before, after = (_value(order, v) for v in (worse, better))
                if before is not None and before == after:
                    rest = ", ".join(f"{n}={v}" for n, v in worse.items() if v == better[n])
                    given = f"with {rest}: " if rest else ""
                    return (
                        f"{given}{decides}={better[decides]} improves {decides}={worse[decides]} and replaces {name}, "
                        f"but {show(order)} stays {after}, where the smaller {d.column.name} should win"
                    )
        return None


def _value(expr: Expr, values: dict[str, object]) -> object:
    try:
        return evaluate(expr, values)
    except NotEvaluableError:
        return None


def _how(v: Variable) -> str:
    return v.dependent.aggregator if v.dependent else ""
