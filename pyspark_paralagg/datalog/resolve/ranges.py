"""Turn ``range(a, b)`` in a body into a relation of the numbers from ``a`` up to but without ``b``.

    p(x, i) :- q(x, n), i = range(0, n).

    range@1(0, n, 0) :- q(x, n), 0 != n.                    upwards or downwards, as in Soufflé
    range@1(a, b, i + 1) :- range@1(a, b, i), a < b, i + 1 < b.
    range@1(a, b, i - 1) :- range@1(a, b, i), a > b, i - 1 > b.
    p(x, i) :- q(x, n), range@1(0, n, i).

A step becomes one more column. A step of 0 gives ``a`` alone if ``b`` is a different number. Constant bounds give
facts. Each occurrence of ``range`` has a relation of its own: two equal ones give all pairs.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse.syntax import Apply, Atom, Comparison, Number, Term, Variable
from pyspark_paralagg.datalog.resolve.expand import Flat, names_in, nodes, substituted
from pyspark_paralagg.datalog.resolve.scope import bound_by
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Plain

_MAX_FACTS = 100_000
_ARITIES = (2, 3)


class Ranges:
    """The extraction of ``range`` from the rules of one text; it numbers the new relations."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._number = itertools.count(1)

    def extract(self, flat: Flat) -> Iterator[Flat]:
        """Yield the rules of the ranges' relations, and ``flat`` reading these relations."""
        others = _binding(tuple(x for x in flat.literals if not any(_is_range(n) for n in nodes(x))))
        range_term = _next_range(flat, bound_by(others))
        if range_term is None:
            yield flat
            return
        if len(range_term.args) not in _ARITIES:
            message = f"range takes two or three arguments, not {len(range_term.args)}"
            raise self._places.error("PARALAGG_DATALOG_ARITY", message, range_term.span, hint="use range(a, b, step)")
        name = added_name("range", next(self._number))
        value = Variable(f"i@{name}", range_term.span)
        args = _with_common_type(range_term.args)
        values = _values([_constant(a) for a in args])
        if values is None:
            yield from self._counting_rules(name, replace(range_term, args=args), others, flat)
            atom = Atom(name, (*args, value), range_term.span)
            yield from self.extract(_replace_range(flat, range_term, value, atom))
            return
        is_unsigned = any(isinstance(a, Number) and a.is_unsigned for a in args)
        for v in values:
            yield Flat(Atom(name, (Number(v, is_unsigned, range_term.span),), range_term.span), (), flat.rule)
        if not values:  # a relation without rows still needs a type
            never = Comparison("!=", args[0], args[0], range_term.span)
            yield Flat(Atom(name, args[:1], range_term.span), (never,), flat.rule)
        yield from self.extract(_replace_range(flat, range_term, value, Atom(name, (value,), range_term.span)))

    def _counting_rules(self, name: str, range_term: Apply, others: tuple[Plain, ...], flat: Flat) -> Iterator[Flat]:
        """Yield the rules that count, for bounds that the other literals bind."""
        span = range_term.span
        a, b, i = (Variable(v, span) for v in ("a", "b", "i"))
        start, stop = range_term.args[:2]
        if len(range_term.args) == 2:  # noqa: PLR2004
            first = Atom(name, (start, stop, start), span)
            yield Flat(first, (*others, Comparison("!=", start, stop, span)), flat.rule)
            for sign, op in (("+", "<"), ("-", ">")):
                following = Apply(sign, (i, Number(1, span=span)), span)
                bounds = (Comparison(op, a, b, span), Comparison(op, following, b, span))  # type: ignore[arg-type]
                yield Flat(Atom(name, (a, b, following), span), (Atom(name, (a, b, i), span), *bounds), flat.rule)
            return
        s, zero = Variable("s", span), Number(0, span=span)
        for direction, op in ((">", "<"), ("<", ">"), ("=", "!=")):
            first = Atom(name, (start, stop, range_term.args[2], start), span)
            guards = (Comparison(direction, range_term.args[2], zero, span), Comparison(op, start, stop, span))  # type: ignore[arg-type]
            yield Flat(first, (*others, *guards), flat.rule)
            if direction == "=":
                continue
            following = Apply("+", (i, s), span)
            bounds = (Comparison(direction, s, zero, span), Comparison(op, following, b, span))  # type: ignore[arg-type]
            yield Flat(Atom(name, (a, b, s, following), span), (Atom(name, (a, b, s, i), span), *bounds), flat.rule)


def _next_range(flat: Flat, bound: frozenset[str]) -> Apply | None:
    """Return the next innermost range, first one whose bounds are bound; None if there is none."""
    ranges = [n for n in nodes((flat.head.args, flat.literals)) if _is_range(n)]
    innermost = [r for r in ranges if not any(_is_range(n) for n in nodes(r.args))]
    return next((r for r in innermost if names_in(r) <= bound), innermost[0] if innermost else None)


def _binding(literals: tuple[Plain, ...]) -> tuple[Plain, ...]:
    """Return the atoms, and the comparisons whose variables they bind."""
    atoms = tuple(x for x in literals if isinstance(x, Atom))
    equations = tuple(x for x in literals if isinstance(x, Comparison))
    bound = bound_by((*atoms, *equations))
    return (*atoms, *(c for c in equations if names_in(c) <= bound))


def _is_range(node: object) -> bool:
    return isinstance(node, Apply) and node.name == "range"


def _constant(term: Term) -> float | None:
    if isinstance(term, Apply) and term.name == "neg" and isinstance(term.args[0], Number):
        value = _constant(term.args[0])
        return None if value is None else -value
    return term.value if isinstance(term, Number) else None


def _with_common_type(args: tuple[Term, ...]) -> tuple[Term, ...]:
    """Return ``args`` as one type: all floats if one is a float."""
    if not any(isinstance(_constant(a), float) for a in args):
        return args
    constants = [_constant(a) for a in args]
    return tuple(
        Apply("to_float", (a,), a.span) if v is None else Number(float(v), span=a.span)
        for a, v in zip(args, constants, strict=True)
    )


def _values(constants: Sequence[float | None]) -> list[float] | None:
    """Return the numbers of a range with constant bounds; None if a bound is not constant or there are too many."""
    bounds = [c for c in constants if c is not None]
    if len(bounds) < len(constants):
        return None
    start, stop = bounds[:2]
    step = bounds[2] if len(bounds) > 2 else 1 if start <= stop else -1  # noqa: PLR2004 - a step is given
    if step == 0:
        return [start] if start != stop else []
    result: list[float] = []
    while start < stop if step > 0 else start > stop:
        result.append(start)
        if len(result) > _MAX_FACTS or start + step == start:
            return None
        start += step
    return result


def _replace_range(flat: Flat, old: Apply, new: Variable, atom: Atom) -> Flat:
    def change(node: object) -> object:
        return new if node is old else None

    return replace(flat, head=substituted(flat.head, change), literals=(atom, *substituted(flat.literals, change)))
