"""One rule of a lattice: each value of the head moves with its aggregator, each filter from false to true.

Each claim is asked of the rule system (``monotone``, ``carried``), then of small values (``counterexample``), then of
z3 (``solve``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.carried import carried_move, order_of
from pyspark_paralagg.compile.prove.claim import Claim, Kind, Moving, bounds_of
from pyspark_paralagg.compile.prove.counterexample import Values, against_carried, against_filter, against_monotone
from pyspark_paralagg.compile.prove.custom_order import claim_of_custom
from pyspark_paralagg.compile.prove.decide import ROUNDING, Decision, Means, read_by
from pyspark_paralagg.compile.prove.known import assumable_in, premises_of, unhoisted
from pyspark_paralagg.compile.prove.monotone import Monotone
from pyspark_paralagg.compile.prove.render import Carried, told_carried, told_filter, told_monotone
from pyspark_paralagg.compile.prove.rule_facts import facts_of
from pyspark_paralagg.compile.prove.verdict import Judgement, Proved, Verdict
from pyspark_paralagg.compile.rewrite.scope import Variable, dependents_in, variables
from pyspark_paralagg.program.expr import Col, Expr
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.compile.prove.facts import Facts, Known
    from pyspark_paralagg.program.aggregators import Move
    from pyspark_paralagg.program.custom import Custom
    from pyspark_paralagg.program.program import Dependent, Program, Rule

_CODE = "PARALAGG_NOT_MONOTONE"
_BY_RULES = "the rules of monotone expressions"


def check_lattice(rule: Rule, program: Program, invariants: Known, *, means: Means = "all") -> Iterator[Judgement]:
    """Yield a judgement for each filter and each value of ``rule`` that reads the recursion.

    With less than all ``means`` it looks for proofs only, not for counterexamples nor for assumptions that would help.
    """
    rule, program = unhoisted(rule, program)
    check = _RuleCheck(rule, program, invariants, means)
    for condition in rule.conditions:
        yield from check.filter(condition)
    head = program.relation(rule.head)
    written = [d for d in head.dependents if d.view is None]
    values = dict(zip((d.column.name for d in written), rule.exprs[len(head.keys) :], strict=True))
    for position, d in enumerate(written):
        if d.custom is not None:
            if d.part == 0:
                exprs = rule.exprs[len(head.keys) + position :][: len(d.custom.columns)]
                yield from check.custom(exprs, d, d.custom)
        elif d.order is None:
            yield from check.value(values[d.column.name], d)
        else:
            yield from check.carried(values[d.column.name], values[d.order], d)


class _RuleCheck:
    def __init__(self, rule: Rule, program: Program, invariants: Known, means: Means) -> None:
        self._rule = rule
        self._means = means
        self._scope = variables(rule, program)
        self._facts = facts_of(rule, program, invariants)
        # What the rule's own filters say of the row after a step is for the claims about filters to show, one after
        # the other: each may use those that were proved before it, and those that read nothing of the recursion.
        self._given = facts_of(replace(rule, conditions=()), program, invariants)
        self._stay_true = self._given
        for condition in rule.conditions:
            if not dependents_in(condition, self._scope):
                self._stay_true = self._stay_true.given(condition)
        self._premises = premises_of(rule, program)
        self._assumable = assumable_in(rule, program)
        dependents = {n: v.dependent for n, v in self._scope.items() if v.dependent}
        self._moves = {n: d.definition.moves for n, d in dependents.items()}
        # A better row may carry a null.
        self._loses = frozenset(n for n, d in dependents.items() if d.order is not None or d.custom is not None)
        self._columns = {n: Col(n, d.column.type, self._is_nullable(n)) for n, d in dependents.items()}
        # Nothing can be sampled of the order of a user's own aggregator: its values stay.
        directions = {n: d.definition for n, d in dependents.items() if not d.custom}
        self._orders = {n: o for n in dependents if (o := order_of(n, self._scope))}
        self._values = Values(directions, self._given, (*rule.conditions, *self._premises), self._orders)

    def filter(self, condition: Expr) -> Iterator[Judgement]:
        """``condition`` stays true once it is."""
        found = dependents_in(condition, self._scope)
        if not found:
            return
        v = self._scope[found[0]]
        told = f"the filter {show(condition)} on {v.column.name}, which {_how(v)} aggregates, stays true once it is"
        problem = f"the filter {show(condition)} loses rows while {v.column.name} improves under {_how(v)}"
        claim = self._claim("filter", (condition,), "")
        decision = Decision(
            rules=lambda facts: self._stays_true(condition, facts),
            sampled=lambda: against_filter(condition, self._values),
            claim=claim,
            told=lambda worse, better: told_filter(condition, worse, better),
        )
        judgement = self._judged(decision, (condition,), told, problem, v.column.name, self._stay_true)
        if isinstance(judgement.verdict, Proved):
            self._stay_true = self._stay_true.given(condition)
        yield judgement

    def value(self, expr: Expr, d: Dependent) -> Iterator[Judgement]:
        """``expr`` moves as the aggregator of the head's column ``d`` does."""
        if not dependents_in(expr, self._scope):
            return
        name, wanted = d.column.name, d.definition
        decision = Decision(
            rules=lambda facts: self._proof(expr, wanted.moves, facts),
            sampled=lambda: against_monotone(expr, wanted, self._values),
            claim=self._claim("value", (expr,), d.aggregator),
            told=lambda worse, better: told_monotone(expr, wanted, worse, better),
        )
        told = f"{name} = {show(expr)} never gets worse under {d.aggregator}"
        others = [v for n in dependents_in(expr, self._scope) if _how(v := self._scope[n]) != d.aggregator]
        read = ", ".join(f"{v.relation}.{v.column.name} under {_how(v)}" for v in others)
        problem = f"{name} = {show(expr)}{f', made of {read},' if read else ''} is not monotone under {d.aggregator}"
        yield self._judged(decision, (expr,), told, problem, name)

    def carried(self, expr: Expr, order: Expr, d: Dependent) -> Iterator[Judgement]:
        """The pair (``order``, ``expr``) is monotone in its lexicographic order."""
        read = dependents_in(expr, self._scope)
        if not read:
            return
        name, pair = d.column.name, Carried(order, expr, d.column.name)
        deciding = tuple(self._columns[o] for o in dict.fromkeys(self._orders[n] for n in read if n in self._orders))
        decision = Decision(
            rules=lambda facts: self._carries(expr, order, facts),
            sampled=lambda: against_carried(pair, deciding, self._values),
            claim=self._claim("carried", (order, expr), d.aggregator),
            told=lambda worse, better: told_carried(pair, frozenset(self._orders), worse, better),
        )
        told = f"{name} = {show(expr)} follows {d.order} = {show(order)} without getting worse"
        problem = f"{name} = {show(expr)} feeds itself, and {d.order} = {show(order)} may tie where it should improve"
        yield self._judged(decision, (order,), told, problem, name)

    def custom(self, exprs: tuple[Expr, ...], d: Dependent, custom: Custom) -> Iterator[Judgement]:
        """``exprs``, the columns of one use of a user's aggregator, keep the order of ``combine``."""
        if not any(dependents_in(e, self._scope) for e in exprs):
            return
        is_plain = is_copy(exprs, custom, self._scope)
        conditions = (*self._rule.conditions, *self._premises)
        asked = None if is_plain else claim_of_custom(exprs, custom, self._scope, self._given, conditions)
        decision = Decision(
            rules=lambda _: Proved("copying") if is_plain else None,
            claim=asked.claim if asked else None,
            told=asked.told if asked else None,
        )
        written = ", ".join(show(e) for e in exprs)
        told = f"{written} never gets worse under {custom.name}"
        yield self._judged(decision, exprs, told, f"{written} is not monotone under {custom.name}", d.column.name)

    def _judged(  # noqa: PLR0913, PLR0917 - the parts of a judgement
        self,
        decision: Decision,
        exprs: tuple[Expr, ...],
        claim: str,
        problem: str,
        column: str,
        facts: Facts | None = None,
    ) -> Judgement:
        assumable = read_by(exprs, self._assumable)
        verdict = decision.verdict(facts or self._facts, assumable, self._means)
        return Judgement(claim, verdict, _CODE, problem, column, self._rule.place)

    def _claim(self, kind: Kind, exprs: tuple[Expr, ...], aggregator: str) -> Claim:
        moving = []
        for name, column in self._columns.items():
            order = self._orders.get(name)
            how = self._scope[name].dependent
            moving.append(Moving(column, how.aggregator if how else "", self._columns[order] if order else None))
        # A filter is shown to stay true for rows that passed all of them; after that values may count on them.
        before = self._rule.conditions
        premises = self._premises if kind == "filter" else (*self._premises, *before)
        bounds, setting = bounds_of(self._given), self._given.setting
        return Claim(kind, exprs, aggregator, tuple(moving), premises, before, bounds, setting)

    def _stays_true(self, condition: Expr, facts: Facts) -> Verdict | None:
        system = Monotone(self._moves, facts, self._loses)
        is_proved = system.behaviour(condition).keeps_true
        return _by_rules(system) if is_proved else None

    def _proof(self, expr: Expr, wanted: Move, facts: Facts) -> Verdict | None:
        system = Monotone(self._moves, facts, self._loses)
        is_proved = system.behaviour(expr).improves_as(wanted)
        return _by_rules(system) if is_proved else None

    def _carries(self, expr: Expr, order: Expr, facts: Facts) -> Verdict | None:
        found = carried_move(expr, order, self._scope, facts)
        if not found.is_fine:
            return None
        rests_on = (ROUNDING,) if found.is_rounded else ()
        return Proved("the rules of carried columns", rests_on, is_rounded=found.is_rounded)

    def _is_nullable(self, name: str) -> bool:
        v = self._scope[name]
        return v.column.nullable and name not in self._given.present


def _by_rules(system: Monotone) -> Proved:
    rests_on = ("overflow is an error here, although ANSI mode is off",) if system.overflows else ()
    return Proved(_BY_RULES, rests_on, checks_overflow=system.overflows)


def is_copy(exprs: tuple[Expr, ...], custom: Custom, scope: dict[str, Variable]) -> bool:
    """Whether ``exprs`` are the columns of one use of ``custom`` in one atom, as they are."""
    found = [scope[e.name] for e in exprs if isinstance(e, Col)]
    return (
        len(found) == len(exprs)
        and len({v.atom for v in found}) == 1
        and all(
            v.dependent is not None and v.dependent.custom == custom and v.dependent.part == part
            for part, v in enumerate(found)
        )
    )


def _how(v: Variable) -> str:
    return v.dependent.aggregator if v.dependent else ""
