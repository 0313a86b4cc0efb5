"""Decide which variables an aggregate of a body shares with its rule, as Soufflé does.

    p(x, n) :- q(x), n = count : { e(x, y) }.         x is bound outside: it is the aggregate's key
    p(x, s) :- q(x), s = sum x : { r(x) }.            the aggregated variable is local, even if the rule has its name
    p(m) :- m = max m : { r(m) }.                     a variable that only the aggregate's value binds is local
    p(x, m) :- m = max y : { e(x, y) }.               nothing binds x outside: it is a witness, a row of the maximum

A local variable whose name the rule also uses is renamed. Only ``min`` and ``max`` have witnesses; with ``sum``,
``count`` and ``mean`` they are an error. (Soufflé: ``ast/analysis/Aggregate.cpp``,
``ast/transform/GroundWitnesses.cpp``.)
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.syntax import Atom, BodyAggregate, Variable, Wildcard
from pyspark_paralagg.datalog.resolve.expand import alternatives, names_in, nodes, rewritten, substituted

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Flat, Plain

_WITH_WITNESSES = ("min", "max")
_VALUE = Variable("value@")
_VALUES = Atom("value@", (_VALUE,))


class Scope:
    """The outermost aggregates of ``flat`` and their local variables."""

    def __init__(self, flat: Flat, places: Places) -> None:
        self._flat = flat
        self._places = places
        self._outside = names_outside((flat.head, flat.literals))
        self._taken = set(names_in((flat.head, flat.literals)))
        self._witnesses: list[tuple[BodyAggregate, dict[str, str]]] = []

    def renamed(self) -> Flat:
        """Return the rule with its aggregates' local variables renamed apart."""
        scoped = {id(a): self._scoped(a) for a in aggregates_in((self._flat.head.args, self._flat.literals))}

        def change(node: object) -> object:
            return scoped.get(id(node), node) if isinstance(node, BodyAggregate) else None

        literals = tuple(self._name_unused_value(x) for x in substituted(self._flat.literals, change))
        return replace(self._flat, head=substituted(self._flat.head, change), literals=literals)

    def witnesses(self) -> list[tuple[BodyAggregate, dict[str, str]]]:
        """Return the renamed aggregates that have witnesses; each maps its witnesses to their names inside of it."""
        return self._witnesses

    def _name_unused_value(self, literal: Plain) -> Plain:
        """Name the unused value of ``_ = max ...``, which the rule has for its witnesses only."""
        if isinstance(literal, syntax.Comparison) and literal.op == "=":
            if isinstance(literal.left, Wildcard) and isinstance(literal.right, BodyAggregate):
                return replace(literal, left=Variable(self._fresh(literal.right.function), literal.left.span))
            if isinstance(literal.right, Wildcard) and isinstance(literal.left, BodyAggregate):
                return replace(literal, right=Variable(self._fresh(literal.left.function), literal.right.span))
        return literal

    def _scoped(self, aggregate: BodyAggregate) -> BodyAggregate:
        # `bound`: all aggregates have values; `bound_without`: all but this one.
        bound = bound_by((_VALUES, *_without_aggregates(self._flat.literals, lambda _: _VALUE)))
        others = _without_aggregates(self._flat.literals, lambda a: Wildcard() if a is aggregate else _VALUE)
        bound_without = bound_by((_VALUES, *others))
        target = names_in(aggregate.value)
        free = free_names(aggregate)
        shared = (free & bound_without) - target
        bound_inside = reduce(frozenset.__and__, (bound_by(b) for b in alternatives(aggregate.body)), free)
        witnesses = sorted((free & self._outside & bound_inside) - bound)
        for name in witnesses:
            self._check_witness(name, aggregate)
        local = sorted((free & self._outside) - shared)
        names = {n: self._fresh(n) for n in local}
        result = _with_names(aggregate, names)
        if witnesses:
            self._witnesses.append((result, {w: names[w] for w in witnesses}))
        return result

    def _check_witness(self, name: str, aggregate: BodyAggregate) -> None:
        if aggregate.function not in _WITH_WITNESSES:
            message = f"nothing outside of {aggregate.function} binds `{name}`, but {aggregate.function} has no witness"
            hint = f"add an atom with {name} before the aggregate, to aggregate for each {name}"
        elif aggregate.value == Variable(name):
            message = f"{aggregate.function} aggregates `{name}`, which has no value outside of the aggregate"
            hint = f"use the value of the aggregate: m = {aggregate.function} {name} : {{ ... }}"
        else:
            return
        span = next(n.span for n in nodes((aggregate.value, aggregate.body)) if n == Variable(name))
        raise self._places.error("PARALAGG_DATALOG_UNBOUND", message, span, value=name, hint=hint)

    def _fresh(self, stem: str) -> str:
        name, n = f"{stem}_{2}", 3
        while name in self._taken:
            name, n = f"{stem}_{n}", n + 1
        self._taken.add(name)
        return name


def bound_by(literals: tuple[Plain, ...]) -> frozenset[str]:
    """Return the variables that positive atoms and equations bind."""
    bound = {a.name for x in literals if isinstance(x, Atom) for a in x.args if isinstance(a, Variable)}
    while True:
        more = set()
        for x in literals:
            if isinstance(x, syntax.Comparison) and x.op == "=":
                for side, other in ((x.left, x.right), (x.right, x.left)):
                    if isinstance(side, Variable) and names_in(other) <= bound and not isinstance(other, Wildcard):
                        more.add(side.name)
        if more <= bound:
            return frozenset(bound)
        bound |= more


def aggregates_in(node: object) -> list[BodyAggregate]:
    """Return the outermost aggregates of ``node``."""
    aggregates: list[BodyAggregate] = []

    def collect(n: object) -> object:
        if not isinstance(n, BodyAggregate):
            return None
        aggregates.append(n)
        return n

    substituted(node, collect)
    return aggregates


def free_names(aggregate: BodyAggregate) -> frozenset[str]:
    """Return the variables of an aggregate, without those that an aggregate inside of it aggregates."""
    inner = aggregates_in((aggregate.value, aggregate.body))
    below = frozenset().union(*(free_names(a) - names_in(a.value) for a in inner))
    return names_outside((aggregate.value, aggregate.body)) | below


def names_outside(node: object) -> frozenset[str]:
    """Return the variables of ``node`` that occur outside of all aggregates."""
    return names_in(_without_aggregates(node, lambda a: Wildcard(a.span)))


def _without_aggregates(node: object, value: Callable[[BodyAggregate], syntax.Term]) -> tuple[Plain, ...]:
    result: tuple[Plain, ...] = substituted(node, lambda n: value(n) if isinstance(n, BodyAggregate) else None)
    return result


def _with_names(aggregate: BodyAggregate, names: Mapping[str, str]) -> BodyAggregate:
    def change(node: object) -> object:
        return replace(node, name=names[node.name]) if isinstance(node, Variable) and node.name in names else node

    result: BodyAggregate = rewritten(aggregate, change)
    return result
