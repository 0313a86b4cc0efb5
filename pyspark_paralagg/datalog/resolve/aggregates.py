"""Aggregates in bodies become relations of their own, which the rule then reads.

    out(x, n) :- node(x), n = count : { edge(x, _) }.

    count@1(x, $COUNT) :- edge(x, _).
    out(x, n) :- node(x), count@1(x, n).
    out(x, n) :- node(x), !count@1(x, _), n = 0.

The key of the new relation are the variables that the rule uses outside the aggregate, too. Where the aggregate's
body does not bind them all, the literals around it that do are put into it. ``min``, ``max`` and ``mean`` of nothing
have no value, so the rule gives nothing; ``count`` and ``sum`` of nothing are 0: a second rule, or, without a key, a
fact.

Which variables an aggregate shares with its rule is decided before, in ``scope``.
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

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pyspark_paralagg.datalog.parse import syntax
    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Plain

_OF_NOTHING = ("count", "sum")
_COUNTING = ("count", "sum", "mean")


class Aggregates:
    """Takes the aggregates out of ``rules``; numbers the relations that it makes."""

    def __init__(self, rules: Sequence[syntax.Rule], places: Places) -> None:
        self._places = places
        self._reached = reached(rules)
        self._number = itertools.count(1)

    def extract(self, flat: Flat) -> Iterator[Flat]:
        """``flat`` without aggregates, and the rules that they became."""
        if aggregates_in((flat.head.args, flat.literals)):
            scope = Scope(flat, self._places)
            flat = scope.renamed()
            for aggregate, names in scope.witnesses():
                flat = yield from self._witness(flat, aggregate, names)
        yield from self._extract(flat)

    def _extract(self, flat: Flat) -> Iterator[Flat]:
        found = _next_aggregate(flat)
        if found is None:
            yield flat
            return
        around = tuple(x for x in flat.literals if found not in aggregates_in(x))
        using = tuple(x for x in flat.literals if found in aggregates_in(x))
        keys = tuple(sorted(free_names(found) & names_outside((flat.head, flat.literals))))
        name = f"{found.function}@{next(self._number)}"
        yield from self._relation(found, name, keys, around, flat)

        values = ("sum", "count") if found.function == "mean" else (found.function,)
        read = tuple(Variable(f"{v}@{name}", found.span) for v in values)
        value: syntax.Term = read[0]
        if found.function == "mean":
            value = Apply("/", (Apply("to_float", (read[0],), found.span), read[1]), found.span)
        atom = Atom(name, (*(Variable(k, found.span) for k in keys), *read), found.span)
        yield from self._extract(_replaced(flat, found, value, (*around, atom), using))
        if keys and found.function in _OF_NOTHING:
            nothing = Negation(replace(atom, args=(*atom.args[: len(keys)], Wildcard(found.span))), found.span)
            yield from self._extract(_replaced(flat, found, Number(0, span=found.span), (*around, nothing), using))

    def _witness(self, flat: Flat, of: BodyAggregate, names: Mapping[str, str]) -> Generator[Flat, None, Flat]:
        """``flat`` with an atom that says where the aggregate has its value; ``names`` has each witness inside of it.

        ``r(x, m) :- m = max y : { e(x, y) }.`` gets ``witness@1(x, max y : { e(x_2, y) })``.
        """
        outside = names_outside((flat.head, flat.literals))
        keys = tuple(sorted(free_names(of) & outside))
        name = f"witness@{next(self._number)}"
        around = tuple(x for x in flat.literals if of not in aggregates_in(x))
        inner: tuple[syntax.Term, ...] = (
            *(Variable(k, of.span) for k in keys),
            *(Variable(w, of.span) for w in names.values()),
        )
        assert of.value is not None  # noqa: S101 - min and max have one
        head = Atom(name, (*inner, of.value), of.span)
        for body in alternatives(of.body):
            yield from self._grounded(head, body, keys, around, flat)
        read = (*inner[: len(keys)], *(Variable(w, of.span) for w in names), of)
        return replace(flat, literals=(*flat.literals, Atom(name, read, of.span)))

    def _relation(
        self, of: BodyAggregate, name: str, keys: tuple[str, ...], around: tuple[Plain, ...], flat: Flat
    ) -> Iterator[Flat]:
        args = () if of.value is None else (of.value,)
        functions = ("SUM", "COUNT") if of.function == "mean" else (of.function.upper(),)
        values = tuple(HeadAggregate(f, args if f != "COUNT" else (), of.span) for f in functions)
        head = Atom(name, (*(Variable(k, of.span) for k in keys), *values), of.span)
        bodies = alternatives(of.body)
        if of.function in _COUNTING:
            bodies = disjoint(bodies, self._places)
        for body in bodies:
            yield from self._grounded(head, body, keys, around, flat)
        if not keys and of.function in _OF_NOTHING:
            zero = tuple(Number(0, span=of.span) for _ in values)
            yield Flat(Atom(name, zero, of.span), (), flat.rule)

    def _grounded(
        self, head: Atom, body: tuple[Plain, ...], keys: tuple[str, ...], around: tuple[Plain, ...], flat: Flat
    ) -> Iterator[Flat]:
        """``head :- body``; where ``body`` leaves a key open, what that can be comes from the literals around."""
        missing = [k for k in keys if k not in bound_by(body)]
        if missing:
            values = Atom(f"keys@{next(self._number)}", tuple(Variable(k, head.span) for k in missing), head.span)
            # What waits for another aggregate cannot say anything here, and need not: the rule says it again. Nor need
            # what recurses, where others bind the keys: the aggregate stays below the recursion then.
            shared = names_outside((flat.head, flat.literals))
            binding = _closed(around, shared)
            below = _closed(tuple(x for x in binding if not self._recurses(x, flat.rule)), shared)
            yield from self.extract(Flat(values, below if set(missing) <= bound_by(below) else binding, flat.rule))
            body = (values, *body)
        yield from self.extract(Flat(head, body, flat.rule))

    def _recurses(self, literal: Plain, rule: syntax.Rule) -> bool:
        read = {n.relation for n in nodes(literal) if isinstance(n, Atom)}
        return any(h.relation in self._reached.get(name, ()) for h in rule.heads for name in read)


def reached(rules: Sequence[syntax.Rule]) -> dict[str, set[str]]:
    """The relations that each derived one needs, itself included."""
    out = {h.relation: {h.relation} for r in rules for h in r.heads}
    for _ in out:
        for r in rules:
            read = {n.relation for n in nodes(r.body) if isinstance(n, Atom)} & out.keys()
            for h in r.heads:
                out[h.relation].update(*(out[n] for n in read))
    return out


def _closed(literals: tuple[Plain, ...], shared: AbstractSet[str]) -> tuple[Plain, ...]:
    """Those of ``literals`` whose variables they bind themselves; inside of aggregates those that are ``shared``."""
    bound = bound_by(literals)

    def needed(x: Plain) -> frozenset[str]:
        return frozenset(names_outside(x)).union(*(free_names(a) & shared for a in aggregates_in(x)))

    return tuple(x for x in literals if needed(x) <= bound)


def _next_aggregate(flat: Flat) -> BodyAggregate | None:
    """An aggregate whose group the others' values do not bind, if there is one."""
    found = aggregates_in((flat.head.args, flat.literals))
    outside = names_outside((flat.head, flat.literals))
    bound = bound_by(tuple(x for x in flat.literals if not aggregates_in(x)))
    ready = (a for a in found if free_names(a) & outside <= bound)
    return next(ready, found[0] if found else None)


def _replaced(
    flat: Flat, old: BodyAggregate, new: syntax.Term, before: tuple[Plain, ...], using: tuple[Plain, ...]
) -> Flat:
    """An equal aggregate beside ``old`` has the same value; one inside of another aggregate is left to that."""

    def change(node: object) -> object:
        return (new if node == old else node) if isinstance(node, BodyAggregate) else None

    return replace(flat, head=substituted(flat.head, change), literals=(*before, *substituted(using, change)))
