"""Turn each aggregate of a body into a relation that the rule reads.

    out(x, n) :- node(x), n = count : { edge(x, _) }.

    count@1(x, $COUNT) :- edge(x, _).
    out(x, n) :- node(x), count@1(x, n).
    out(x, n) :- node(x), !count@1(x, _), n = 0.

The key of the new relation is the aggregate's variables that the rule also uses outside of it. If the aggregate's body
does not bind them all, the surrounding literals that bind them are added to it. ``min``, ``max`` and ``mean`` of no
rows have no value, so the rule derives nothing. ``count`` and ``sum`` of no rows are 0: a second rule derives that, or
a fact if there is no key.

``scope`` decides before which variables an aggregate shares with its rule.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse.syntax import (
    Apply,
    Atom,
    BodyAggregate,
    HeadAggregate,
    Negation,
    Number,
    Variable,
    Wildcard,
)
from pyspark_paralagg.datalog.resolve.disjoint import disjoint
from pyspark_paralagg.datalog.resolve.expand import Flat, alternatives, nodes, substituted
from pyspark_paralagg.datalog.resolve.scope import Scope, aggregates_in, bound_by, free_names, names_outside
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pyspark_paralagg.datalog.parse import syntax
    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Plain

_ZERO_IF_EMPTY = ("count", "sum")
_COUNTING = ("count", "sum", "mean")


class Aggregates:
    """The extraction of aggregates from the rules of one text; it numbers the new relations."""

    def __init__(self, rules: Sequence[syntax.Rule], places: Places) -> None:
        self._places = places
        self._reached = reached(rules)
        self._number = itertools.count(1)

    def extract(self, flat: Flat) -> Iterator[Flat]:
        """Yield the rules of the aggregates' relations, and ``flat`` reading these relations."""
        if aggregates_in((flat.head.args, flat.literals)):
            scope = Scope(flat, self._places)
            flat = scope.renamed()
            for aggregate, names in scope.witnesses():
                flat = yield from self._witness(flat, aggregate, names)
        yield from self._extract(flat)

    def _extract(self, flat: Flat) -> Iterator[Flat]:
        aggregate = _next_aggregate(flat)
        if aggregate is None:
            yield flat
            return
        others = tuple(x for x in flat.literals if aggregate not in aggregates_in(x))
        users = tuple(x for x in flat.literals if aggregate in aggregates_in(x))
        keys = tuple(sorted(free_names(aggregate) & names_outside((flat.head, flat.literals))))
        name = added_name(aggregate.function, next(self._number))
        yield from self._relation(aggregate, name, keys, others, flat)

        values = ("sum", "count") if aggregate.function == "mean" else (aggregate.function,)
        read = tuple(Variable(f"{v}@{name}", aggregate.span) for v in values)
        value: syntax.Term = read[0]
        if aggregate.function == "mean":
            value = Apply("/", (Apply("to_float", (read[0],), aggregate.span), read[1]), aggregate.span)
        atom = Atom(name, (*(Variable(k, aggregate.span) for k in keys), *read), aggregate.span)
        yield from self._extract(_replace_aggregate(flat, aggregate, value, (*others, atom), users))
        if keys and aggregate.function in _ZERO_IF_EMPTY:
            negated = Negation(replace(atom, args=(*atom.args[: len(keys)], Wildcard(aggregate.span))), aggregate.span)
            zero = Number(0, span=aggregate.span)
            yield from self._extract(_replace_aggregate(flat, aggregate, zero, (*others, negated), users))

    def _witness(self, flat: Flat, aggregate: BodyAggregate, names: Mapping[str, str]) -> Generator[Flat, None, Flat]:
        """Return ``flat`` with an atom of a new relation that binds the witnesses: the rows that have the value.

        ``names`` maps each witness to its name inside of the aggregate.

        ``r(x, m) :- m = max y : { e(x, y) }.`` gets ``witness@1(x, max y : { e(x_2, y) })``.
        """
        outside = names_outside((flat.head, flat.literals))
        keys = tuple(sorted(free_names(aggregate) & outside))
        name = added_name("witness", next(self._number))
        others = tuple(x for x in flat.literals if aggregate not in aggregates_in(x))
        inner: tuple[syntax.Term, ...] = (
            *(Variable(k, aggregate.span) for k in keys),
            *(Variable(w, aggregate.span) for w in names.values()),
        )
        assert aggregate.value is not None  # noqa: S101 - min and max have one
        head = Atom(name, (*inner, aggregate.value), aggregate.span)
        for body in alternatives(aggregate.body):
            yield from self._bind_keys(head, body, keys, others, flat)
        read = (*inner[: len(keys)], *(Variable(w, aggregate.span) for w in names), aggregate)
        return replace(flat, literals=(*flat.literals, Atom(name, read, aggregate.span)))

    def _relation(
        self, aggregate: BodyAggregate, name: str, keys: tuple[str, ...], others: tuple[Plain, ...], flat: Flat
    ) -> Iterator[Flat]:
        args = () if aggregate.value is None else (aggregate.value,)
        functions = ("SUM", "COUNT") if aggregate.function == "mean" else (aggregate.function.upper(),)
        values = tuple(HeadAggregate(f, args if f != "COUNT" else (), aggregate.span) for f in functions)
        head = Atom(name, (*(Variable(k, aggregate.span) for k in keys), *values), aggregate.span)
        bodies = alternatives(aggregate.body)
        if aggregate.function in _COUNTING:
            bodies = disjoint(bodies, self._places)
        for body in bodies:
            yield from self._bind_keys(head, body, keys, others, flat)
        if not keys and aggregate.function in _ZERO_IF_EMPTY:
            zero = tuple(Number(0, span=aggregate.span) for _ in values)
            yield Flat(Atom(name, zero, aggregate.span), (), flat.rule)

    def _bind_keys(
        self, head: Atom, body: tuple[Plain, ...], keys: tuple[str, ...], others: tuple[Plain, ...], flat: Flat
    ) -> Iterator[Flat]:
        """Yield ``head :- body``; a new relation of the values in ``others`` binds the keys that ``body`` does not."""
        missing = [k for k in keys if k not in bound_by(body)]
        if missing:
            name = added_name("keys", next(self._number))
            values = Atom(name, tuple(Variable(k, head.span) for k in missing), head.span)
            # Literals that need another aggregate cannot bind a key; the rule itself applies them again.
            # Recursive literals are left out if the others bind the keys, so the aggregate stays below the recursion.
            shared = names_outside((flat.head, flat.literals))
            binding = _closed(others, shared)
            below = _closed(tuple(x for x in binding if not self._recurses(x, flat.rule)), shared)
            yield from self.extract(Flat(values, below if set(missing) <= bound_by(below) else binding, flat.rule))
            body = (values, *body)
        yield from self.extract(Flat(head, body, flat.rule))

    def _recurses(self, literal: Plain, rule: syntax.Rule) -> bool:
        relations = {n.relation for n in nodes(literal) if isinstance(n, Atom)}
        return any(h.relation in self._reached.get(name, ()) for h in rule.heads for name in relations)


def reached(rules: Sequence[syntax.Rule]) -> dict[str, set[str]]:
    """Return the relations that each derived relation needs, itself included."""
    result = {head.relation: {head.relation} for rule in rules for head in rule.heads}
    for _ in result:
        for rule in rules:
            relations = {n.relation for n in nodes(rule.body) if isinstance(n, Atom)} & result.keys()
            for head in rule.heads:
                result[head.relation].update(*(result[n] for n in relations))
    return result


def _closed(literals: tuple[Plain, ...], shared: AbstractSet[str]) -> tuple[Plain, ...]:
    """Return the literals whose variables ``literals`` bind; of an aggregate only ``shared`` variables count."""
    bound = bound_by(literals)

    def needed(x: Plain) -> frozenset[str]:
        return frozenset(names_outside(x)).union(*(free_names(a) & shared for a in aggregates_in(x)))

    return tuple(x for x in literals if needed(x) <= bound)


def _next_aggregate(flat: Flat) -> BodyAggregate | None:
    """Return the next aggregate to extract, first one whose key the other literals bind; None if there is none."""
    aggregates = aggregates_in((flat.head.args, flat.literals))
    outside = names_outside((flat.head, flat.literals))
    bound = bound_by(tuple(x for x in flat.literals if not aggregates_in(x)))
    ready = (a for a in aggregates if free_names(a) & outside <= bound)
    return next(ready, aggregates[0] if aggregates else None)


def _replace_aggregate(
    flat: Flat, old: BodyAggregate, new: syntax.Term, before: tuple[Plain, ...], users: tuple[Plain, ...]
) -> Flat:
    """Replace ``old`` and equal aggregates by ``new``; one inside of another aggregate stays."""

    def change(node: object) -> object:
        return (new if node == old else node) if isinstance(node, BodyAggregate) else None

    return replace(flat, head=substituted(flat.head, change), literals=(*before, *substituted(users, change)))
