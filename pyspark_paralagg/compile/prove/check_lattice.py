"""Check a rule of a lattice: each value of the head moves with its aggregator, each filter from false to true.

Each claim is decided by the rule system (``monotone``, ``carried``), then by small values (``counterexample``), then by
z3 (``solve``).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.prove.carried import carried_move, order_of
from pyspark_paralagg.compile.prove.claim import Claim, Kind, Moving, bounds_of
from pyspark_paralagg.compile.prove.counterexample import Values, against_carried, against_filter, against_monotone
from pyspark_paralagg.compile.prove.custom_order import claim_of_custom
from pyspark_paralagg.compile.prove.decide import ROUNDING, Decision, Provers, read_by
from pyspark_paralagg.compile.prove.invariants import assumable_in, premises_of, unhoisted
from pyspark_paralagg.compile.prove.monotone import Monotone
from pyspark_paralagg.compile.prove.render import Carried, render_carried, render_filter, render_monotone
from pyspark_paralagg.compile.prove.rule_facts import facts_of
from pyspark_paralagg.compile.prove.verdict import Judgement, Proved, Verdict
from pyspark_paralagg.compile.rewrite.scope import Variable, dependents_in, variables
from pyspark_paralagg.program.expr import Call, Col, Expr
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.compile.prove.facts import Facts, Invariants
    from pyspark_paralagg.program.aggregators import Move
    from pyspark_paralagg.program.custom import Custom
    from pyspark_paralagg.program.program import Dependent, Program, Rule

_CODE = "PARALAGG_NOT_MONOTONE"
_WAY = 'ra.path("{}") returns the way to a row ($PATH in a text, path() in SQL); '
_BY_RULES = "the rules of monotone expressions"


def check_lattice(
    rule: Rule, program: Program, invariants: Invariants, *, provers: Provers = "all"
) -> Iterator[Judgement]:
    """Yield a judgement for each filter and each value of ``rule`` that reads the recursion.

    Unless ``provers`` is ``all``, it looks for proofs only, not for counterexamples or helpful assumptions.
    """
    rule, program = unhoisted(rule, program)
    check = _RuleCheck(rule, program, invariants, provers)
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
    def __init__(self, rule: Rule, program: Program, invariants: Invariants, provers: Provers) -> None:
        self._rule = rule
        self._provers = provers
        self._scope = variables(rule, program)
        self._facts = facts_of(rule, program, invariants)
        # A claim about a filter may use only the filters proved before it and those that read no recursive value:
        # that the others hold for the row after a step is still to be proved.
        self._unfiltered_facts = facts_of(replace(rule, conditions=()), program, invariants)
        self._stay_true = self._unfiltered_facts
        for condition in rule.conditions:
            if not dependents_in(condition, self._scope):
                self._stay_true = self._stay_true.assuming(condition)
        self._premises = premises_of(rule, program)
        self._assumable = assumable_in(rule, program)
        dependents = {n: v.dependent for n, v in self._scope.items() if v.dependent}
        self._moves = {n: d.definition.moves for n, d in dependents.items()}
        # A better row may carry a null.
        self._loses = frozenset(n for n, d in dependents.items() if d.order is not None or d.custom is not None)
        self._columns = {n: Col(n, d.column.type, self._is_nullable(n)) for n, d in dependents.items()}
        # The order of a user-defined aggregator cannot be sampled: its values stay fixed.
        directions = {n: d.definition for n, d in dependents.items() if not d.custom}
        self._orders = {n: o for n in dependents if (o := order_of(n, self._scope))}
        self._values = Values(directions, self._unfiltered_facts, (*rule.conditions, *self._premises), self._orders)

    def filter(self, condition: Expr) -> Iterator[Judgement]:
        """Judge that ``condition`` stays true once it is true."""
        dependents = dependents_in(condition, self._scope)
        if not dependents:
            return
        v = self._scope[dependents[0]]
        aggregator = _aggregator(v)
        statement = (
            f"the filter {show(condition)} on {v.column.name}, which {aggregator} aggregates, "
            "stays true once it is true"
        )
        problem = f"the filter {show(condition)} loses rows while {v.column.name} improves under {aggregator}"
        claim = self._claim("filter", (condition,), "")
        decision = Decision(
            rules=lambda facts: self._stays_true(condition, facts),
            sampled=lambda: against_filter(condition, self._values),
            claim=claim,
            render=lambda worse, better: render_filter(condition, worse, better),
        )
        judgement = self._judge(decision, (condition,), statement, problem, v.column.name, self._stay_true)
        if isinstance(judgement.verdict, Proved):
            self._stay_true = self._stay_true.assuming(condition)
        yield judgement

    def value(self, expr: Expr, d: Dependent) -> Iterator[Judgement]:
        """Judge that ``expr`` moves like the aggregator of the head's column ``d``."""
        if not dependents_in(expr, self._scope):
            return
        name, aggregator = d.column.name, d.definition
        decision = Decision(
            rules=lambda facts: self._proof(expr, aggregator.moves, facts),
            sampled=lambda: against_monotone(expr, aggregator, self._values),
            claim=self._claim("value", (expr,), d.aggregator),
            render=lambda worse, better: render_monotone(expr, aggregator, worse, better),
        )
        statement = f"{name} = {show(expr)} never gets worse under {d.aggregator}"
        others = [v for n in dependents_in(expr, self._scope) if _aggregator(v := self._scope[n]) != d.aggregator]
        read = ", ".join(f"{v.relation}.{v.column.name} under {_aggregator(v)}" for v in others)
        problem = f"{name} = {show(expr)}{f', made of {read},' if read else ''} is not monotone under {d.aggregator}"
        yield self._judge(decision, (expr,), statement, problem, name)

    def carried(self, expr: Expr, order: Expr, d: Dependent) -> Iterator[Judgement]:
        """Judge that the pair (``order``, ``expr``) is monotone in its lexicographic order."""
        read = dependents_in(expr, self._scope)
        if not read:
            return
        name, pair = d.column.name, Carried(order, expr, d.column.name)
        deciding = tuple(self._columns[o] for o in dict.fromkeys(self._orders[n] for n in read if n in self._orders))
        decision = Decision(
            rules=lambda facts: self._carries(expr, order, facts),
            sampled=lambda: against_carried(pair, deciding, self._values),
            claim=self._claim("carried", (order, expr), d.aggregator),
            render=lambda worse, better: render_carried(pair, frozenset(self._orders), worse, better),
        )
        statement = f"{name} = {show(expr)} follows {d.order} = {show(order)} without getting worse"
        problem = f"{name} = {show(expr)} feeds itself, and {d.order} = {show(order)} may tie instead of improving"
        judgement = self._judge(decision, (order,), statement, problem, name)
        is_grown = d.column.type == "string" and isinstance(expr, Call)
        yield replace(judgement, instead=_WAY.format(d.order)) if is_grown else judgement

    def custom(self, exprs: tuple[Expr, ...], d: Dependent, custom: Custom) -> Iterator[Judgement]:
        """Judge that ``exprs``, the columns of a user-defined aggregator, keep the order of ``combine``."""
        if not any(dependents_in(e, self._scope) for e in exprs):
            return
        is_plain = is_copy(exprs, custom, self._scope)
        conditions = (*self._rule.conditions, *self._premises)
        custom_claim = (
            None if is_plain else claim_of_custom(exprs, custom, self._scope, self._unfiltered_facts, conditions)
        )
        decision = Decision(
            rules=lambda _: Proved("copying") if is_plain else None,
            claim=custom_claim.claim if custom_claim else None,
            render=custom_claim.render if custom_claim else None,
        )
        text = ", ".join(show(e) for e in exprs)
        statement = f"{text} never gets worse under {custom.name}"
        yield self._judge(decision, exprs, statement, f"{text} is not monotone under {custom.name}", d.column.name)

    def _judge(  # noqa: PLR0913, PLR0917 - the parts of a judgement
        self,
        decision: Decision,
        exprs: tuple[Expr, ...],
        claim: str,
        problem: str,
        column: str,
        facts: Facts | None = None,
    ) -> Judgement:
        assumable = read_by(exprs, self._assumable)
        verdict = decision.verdict(facts or self._facts, assumable, self._provers)
        return Judgement(claim, verdict, _CODE, problem, column, self._rule.place)

    def _claim(self, kind: Kind, exprs: tuple[Expr, ...], aggregator: str) -> Claim:
        moving = []
        for name, column in self._columns.items():
            order = self._orders.get(name)
            moving.append(Moving(column, _aggregator(self._scope[name]), self._columns[order] if order else None))
        # Claims about filters use all filters before the step only; claims about values may use them after it, too.
        before = self._rule.conditions
        premises = self._premises if kind == "filter" else (*self._premises, *before)
        bounds, setting = bounds_of(self._unfiltered_facts), self._unfiltered_facts.setting
        return Claim(kind, exprs, aggregator, tuple(moving), premises, before, bounds, setting)

    def _stays_true(self, condition: Expr, facts: Facts) -> Verdict | None:
        system = Monotone(self._moves, facts, self._loses)
        is_proved = system.behaviour(condition).keeps_true
        return _by_rules(system) if is_proved else None

    def _proof(self, expr: Expr, move: Move, facts: Facts) -> Verdict | None:
        system = Monotone(self._moves, facts, self._loses)
        is_proved = system.behaviour(expr).improves_as(move)
        return _by_rules(system) if is_proved else None

    def _carries(self, expr: Expr, order: Expr, facts: Facts) -> Verdict | None:
        move = carried_move(expr, order, self._scope, facts)
        if not move.is_fine:
            return None
        rests_on = (ROUNDING,) if move.is_rounded else ()
        return Proved("the rules of carried columns", rests_on, is_rounded=move.is_rounded)

    def _is_nullable(self, name: str) -> bool:
        v = self._scope[name]
        return v.column.nullable and name not in self._unfiltered_facts.present


def _by_rules(system: Monotone) -> Proved:
    rests_on = ("overflow is an error here, although ANSI mode is off",) if system.overflows else ()
    return Proved(_BY_RULES, rests_on, checks_overflow=system.overflows)


def is_copy(exprs: tuple[Expr, ...], custom: Custom, scope: dict[str, Variable]) -> bool:
    """Return whether ``exprs`` are plain columns of one use of ``custom`` in one atom."""
    sources = [scope[e.name] for e in exprs if isinstance(e, Col)]
    return (
        len(sources) == len(exprs)
        and len({v.atom for v in sources}) == 1
        and all(
            v.dependent is not None and v.dependent.custom == custom and v.dependent.part == part
            for part, v in enumerate(sources)
        )
    )


def _aggregator(v: Variable) -> str:
    return v.dependent.aggregator if v.dependent else ""
