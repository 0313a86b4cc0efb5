"""``range(a, b)`` in a body becomes a relation that counts from ``a`` to before ``b``.

    p(x, i) :- q(x, n), i = range(0, n).

    range@1(0, n, 0) :- q(x, n), 0 != n.                    up or down, as Soufflé has it
    range@1(a, b, i + 1) :- range@1(a, b, i), a < b, i + 1 < b.
    range@1(a, b, i - 1) :- range@1(a, b, i), a > b, i - 1 > b.
    p(x, i) :- q(x, n), range@1(0, n, i).

With a step the relation has it as a column, too; a step of 0 gives ``a`` alone, where ``b`` is another number.
Constant bounds give facts. Each ``range`` that is written is one of its own: two equal ones give all pairs.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse.syntax import Apply, Atom, Comparison, Number, Term, Variable
from pyspark_paralagg.datalog.resolve.expand import Flat, names_in, nodes, substituted
from pyspark_paralagg.datalog.resolve.scope import bound_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Plain

_MOST_FACTS = 100_000
_BOUNDS = (2, 3)


class Ranges:
    """Takes ``range`` out of rules; numbers the relations that it makes."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._number = itertools.count(1)

    def extract(self, flat: Flat) -> Iterator[Flat]:
        """``flat`` without ranges, and the rules that they became."""
        others = _binding(tuple(x for x in flat.literals if not any(_is_range(n) for n in nodes(x))))
        found = _next_range(flat, bound_by(others))
        if found is None:
            yield flat
            return
        if len(found.args) not in _BOUNDS:
            message = f"range takes two or three arguments, not {len(found.args)}"
            raise self._places.error("PARALAGG_DATALOG_ARITY", message, found.span, hint="range(from, to, step)")
        name = f"range@{next(self._number)}"
        value = Variable(f"i@{name}", found.span)
        args = _alike(found.args)
        values = _values([_constant(a) for a in args])
        if values is None:
            yield from self._counted(name, replace(found, args=args), others, flat)
            yield from self.extract(_reading(flat, found, value, Atom(name, (*args, value), found.span)))
            return
        is_unsigned = any(isinstance(a, Number) and a.is_unsigned for a in args)
        for v in values:
            yield Flat(Atom(name, (Number(v, is_unsigned, found.span),), found.span), (), flat.rule)
        if not values:  # a relation without rows: it still has a type
            never = Comparison("!=", args[0], args[0], found.span)
            yield Flat(Atom(name, args[:1], found.span), (never,), flat.rule)
        yield from self.extract(_reading(flat, found, value, Atom(name, (value,), found.span)))

    def _counted(self, name: str, of: Apply, others: tuple[Plain, ...], flat: Flat) -> Iterator[Flat]:
        """The rules that count, for bounds that the other literals bind."""
        at = of.span
        a, b, i = (Variable(v, at) for v in ("a", "b", "i"))
        start, stop = of.args[:2]
        if len(of.args) == 2:  # noqa: PLR2004
            first = Atom(name, (start, stop, start), at)
            yield Flat(first, (*others, Comparison("!=", start, stop, at)), flat.rule)
            for sign, op in (("+", "<"), ("-", ">")):
                after = Apply(sign, (i, Number(1, span=at)), at)
                further = (Comparison(op, a, b, at), Comparison(op, after, b, at))  # type: ignore[arg-type]
                yield Flat(Atom(name, (a, b, after), at), (Atom(name, (a, b, i), at), *further), flat.rule)
            return
        s, zero = Variable("s", at), Number(0, span=at)
        for direction, op in ((">", "<"), ("<", ">"), ("=", "!=")):
            first = Atom(name, (start, stop, of.args[2], start), at)
            asked = (Comparison(direction, of.args[2], zero, at), Comparison(op, start, stop, at))  # type: ignore[arg-type]
            yield Flat(first, (*others, *asked), flat.rule)
            if direction == "=":
                continue
            after = Apply("+", (i, s), at)
            further = (Comparison(direction, s, zero, at), Comparison(op, after, b, at))  # type: ignore[arg-type]
            yield Flat(Atom(name, (a, b, s, after), at), (Atom(name, (a, b, s, i), at), *further), flat.rule)


def _next_range(flat: Flat, bound: frozenset[str]) -> Apply | None:
    """A range whose bounds have values already, if there is one."""
    found = [n for n in nodes((flat.head.args, flat.literals)) if _is_range(n)]
    inner = [r for r in found if not any(_is_range(n) for n in nodes(r.args))]
    return next((r for r in inner if names_in(r) <= bound), inner[0] if inner else None)


def _binding(literals: tuple[Plain, ...]) -> tuple[Plain, ...]:
    """The atoms, and the comparisons that they bind."""
    atoms = tuple(x for x in literals if isinstance(x, Atom))
    equations = tuple(x for x in literals if isinstance(x, Comparison))
    bound = bound_by((*atoms, *equations))
    return (*atoms, *(c for c in equations if names_in(c) <= bound))


def _is_range(node: object) -> bool:
    return isinstance(node, Apply) and node.name == "range"


def _constant(term: Term) -> float | None:
    if isinstance(term, Apply) and term.name == "neg" and isinstance(term.args[0], Number):
        inner = _constant(term.args[0])
        return None if inner is None else -inner
    return term.value if isinstance(term, Number) else None


def _alike(args: tuple[Term, ...]) -> tuple[Term, ...]:
    """``args`` of one type: beside a float all are floats."""
    if not any(isinstance(_constant(a), float) for a in args):
        return args
    known = [_constant(a) for a in args]
    return tuple(
        Apply("to_float", (a,), a.span) if v is None else Number(float(v), span=a.span)
        for a, v in zip(args, known, strict=True)
    )


def _values(constants: Sequence[float | None]) -> list[float] | None:
    """The numbers of a range whose bounds are constants; None where they are not, or where there are too many."""
    known = [c for c in constants if c is not None]
    if len(known) < len(constants):
        return None
    start, stop = known[:2]
    step = known[2] if len(known) > 2 else 1 if start <= stop else -1  # noqa: PLR2004 - a step is given
    if step == 0:
        return [start] if start != stop else []
    out: list[float] = []
    while start < stop if step > 0 else start > stop:
        out.append(start)
        if len(out) > _MOST_FACTS or start + step == start:
            return None
        start += step
    return out


def _reading(flat: Flat, old: Apply, new: Variable, atom: Atom) -> Flat:
    def change(node: object) -> object:
        return new if node is old else None

    return replace(flat, head=substituted(flat.head, change), literals=(atom, *substituted(flat.literals, change)))
