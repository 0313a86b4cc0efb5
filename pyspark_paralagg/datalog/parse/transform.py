"""Build the nodes of ``syntax`` from the grammar's matches; lark calls one method for each rule, leaves first.

``directives`` has the methods for directives. ``sorts`` decides whether a node is a value or a condition.
"""

# ruff: noqa: D102  (each method handles the grammar rule of the same name)

from __future__ import annotations

from typing import Any

from lark import Token

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.directives import Directives
from pyspark_paralagg.datalog.parse.operators import fold
from pyspark_paralagg.datalog.parse.plans import check_plan
from pyspark_paralagg.datalog.parse.problems import Problem, between, place
from pyspark_paralagg.datalog.parse.sorts import (
    Arguments,
    Call,
    Dollar,
    Group,
    Raw,
    head,
    is_aggregate,
    literal,
    refuse_dollar,
    term,
)

_EXPRESSION_TOKENS = ("INFIX", "PREFIX", "NUMBER")


class Transform(Directives):
    """The transformer of the grammar; ``children`` are the results of a rule's parts."""

    def rule(self, children: list[Any]) -> syntax.Rule:
        heads, second = children[0], children[1]
        plan = children[-1] if isinstance(children[-1], syntax.Plan) else None
        dot = children[-1 if plan is None else -2]
        span = between(heads[0], dot)
        if second.type == "ARROW":
            atoms = tuple(head(h) for h in heads)
            body = literal(children[2])
            check_plan(plan, body)
            return syntax.Rule(atoms, body, plan, span=span)
        for dollar in (a for h in heads for a in h.args if isinstance(a, Dollar) and is_aggregate(a)):
            hint = "write the value itself; it is aggregated with those of the rules"
            refuse_dollar(dollar, "a fact has no rows to aggregate", hint)
        check_plan(plan, syntax.Conjunction(()))
        return syntax.Rule(tuple(head(h) for h in heads), None, plan, span=span)

    def subsumption(self, children: list[Any]) -> syntax.Subsumption:
        lesser, greater = head(children[0]), head(children[2])
        dot = children[-2 if isinstance(children[-1], syntax.Plan) else -1]
        return syntax.Subsumption(lesser, greater, literal(children[4]), between(lesser, dot))

    def heads(self, children: list[Call]) -> list[Call]:
        return children

    def disjunction(self, children: list[Raw]) -> syntax.Disjunction:
        parts = tuple(literal(c) for c in children)
        return syntax.Disjunction(parts, between(parts[0], parts[-1]))

    def conjunction(self, children: list[Raw]) -> syntax.Conjunction:
        parts = tuple(literal(c) for c in children)
        return syntax.Conjunction(parts, between(parts[0], parts[-1]))

    def negation(self, children: list[Any]) -> syntax.Literal_:
        bang, negated = children[0], literal(children[1])
        if isinstance(negated, syntax.Negation):
            return negated.body  # two negations cancel, as in Soufflé
        return syntax.Negation(negated, between(bang, negated))

    def condition(self, children: list[Any]) -> syntax.Comparison:
        left, sign, right = term(children[0]), children[1], term(children[2])
        return syntax.Comparison(sign.value, left, right, between(left, right))

    def expression(self, children: list[Raw]) -> syntax.Term:
        return fold([c if isinstance(c, Token) and c.type in _EXPRESSION_TOKENS else term(c) for c in children])

    def call(self, children: list[Any]) -> Call:
        name, arguments = children
        return Call(name, arguments.items, between(name, arguments))

    def functor_call(self, children: list[Any]) -> syntax.Apply:
        name, arguments = children
        return syntax.Apply(str(name), tuple(term(a) for a in arguments.items), between(name, arguments))

    def arguments(self, children: list[Any]) -> Arguments:
        return Arguments(tuple(children[1:-1:2]), between(children[0], children[-1]))

    def record(self, children: list[Any]) -> syntax.Record:
        return syntax.Record(tuple(term(c) for c in children[1:-1:2]), between(children[0], children[-1]))

    def dollar(self, children: list[Any]) -> Dollar:
        items = children[1].items if len(children) > 1 else ()
        return Dollar(children[0], items, between(children[0], children[-1]))

    def cast(self, children: list[Any]) -> syntax.Cast:
        return syntax.Cast(term(children[2]), str(children[4]), between(children[0], children[-1]))

    def group(self, children: list[Any]) -> Group:
        return Group(children[1], between(children[0], children[-1]))

    def body_aggregate(self, children: list[Any]) -> syntax.BodyAggregate:
        function = children[0]
        colon = next(n for n, c in enumerate(children) if isinstance(c, Token) and c.type == "COLON")
        value = term(children[1]) if colon > 1 else None
        body = literal(children[-1] if isinstance(children[-1], Call) else children[-2])
        if (function == "count") != (value is None):
            requirement = "takes no value" if function == "count" else "needs a value before `:`"
            hint = "`count : { ... }`" if function == "count" else f"`{function} x : {{ ... }}`"
            raise Problem(f"`{function}` {requirement}", place(function), f"write {hint}")
        return syntax.BodyAggregate(function.value, value, body, between(function, children[-1]))
