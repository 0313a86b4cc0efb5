"""Interpret a Datalog text over its syntax tree: the reference semantics for tests, simple but slow.

    evaluate     strongly connected relations are a stratum; a stratum comes after those that it reads
    _fixpoint    R(0) = agg(X), R(i+1) = agg(C + F(R(i))) until nothing changes (docs/design.md, "Definition")
    _Bodies      all bindings of a body: the first literal whose variables are bound, then the rest;
                 the values of a term: none (the min of nothing), one, or many (a range)

A body has a *set* of bindings, where each ``_`` is a separate variable. Each binding gives one row to aggregate.
``operations`` has the operators and functors; ``tree`` has the queries on syntax trees.
"""
# ruff: noqa: ANN401  (values of any type)

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any

from compile.interpret import h_index
from datalog.operations import COMPARE, OPERATIONS, constrain
from datalog.tree import (
    TRUE,
    WILDCARD,
    Flat,
    constant,
    float_columns,
    nodes,
    outer_variables,
    reads,
    rules_of,
    strata,
    variables,
)

from pyspark_paralagg.datalog.parse import syntax as s

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

Row = tuple[Any, ...]
State = dict[str, set[Row]]
Binding = dict[str, Any]
Shape = list[s.HeadAggregate | None]  # the aggregate of each column of a relation; None for a key

MAX_ROUNDS = 2_000
MAX_ROWS_READ = 250_000
"""The rows of atoms that a stratum may read: 20 seconds for long rules."""


def _fold(name: str) -> Callable[[list[Row]], Any]:
    return lambda rows: reduce(OPERATIONS[name], (x for (x,) in rows))


def _by_witness(rows: list[Row]) -> dict[Any, list[Any]]:
    return {w: [x for _, x, v in rows if v == w] for *_, w in rows}


# Map the arguments of a group's rows to the aggregate's value. MIN_BY and MAX_BY get (value, order).
AGGREGATES: dict[str, Callable[[list[Row]], Any]] = {
    "MIN": _fold("min"),
    "MAX": _fold("max"),
    "SUM": _fold("+"),
    "COUNT": lambda rows: sum(row[0] if row else 1 for row in rows),
    "MCOUNT": lambda rows: len(set(rows)),
    "MSUM": lambda rows: sum(max(0, *(x for x, v in rows if v == w), 0) for w in {w for _, w in rows}),
    "H_INDEX": lambda rows: h_index(min(n for n, _, _ in rows), [min(g) for g in _by_witness(rows).values()]),
    "ANY": lambda rows: any(x for (x,) in rows),
    "ALL": lambda rows: all(x for (x,) in rows),
    "MIN_BY": lambda rows: min((x, v) for v, x in rows)[1],
    "MAX_BY": lambda rows: min(v for v, x in rows if x == max(x for _, x in rows)),
    "BITOR": _fold("bor"),
    "BITAND": _fold("band"),
    "GCD": lambda rows: math.gcd(*(x for (x,) in rows)),  # for one number, its absolute value
    "MEAN": lambda rows: sum(x for (x,) in rows) / len(rows),
}


def evaluate(text: s.Text, facts: dict[str, set[Row]]) -> State:
    """Return all relations of ``text``, including inputs. ``facts`` are the input rows of any relation."""
    rules = rules_of(text)
    state: State = {c.relation: set() for c in text.clauses if isinstance(c, s.Declaration)}
    state |= {r.head.relation: set() for r in rules}
    state |= {name: set(rows) for name, rows in facts.items()}
    limits = {c.relation: c for c in text.clauses if isinstance(c, s.Limit)}
    sizes = {c.relation: int(dict(c.parameters)["n"]) for c in text.clauses if getattr(c, "kind", "") == "limitsize"}
    floats = float_columns(text)
    for stratum in strata(rules):
        limit = next((limits[name] for name in stratum if name in limits), s.Limit(""))
        max_rows = min((sizes[name] for name in stratum if name in sizes), default=None)
        _fixpoint(stratum, [r for r in rules if r.head.relation in stratum], state, limit, floats, max_rows)
    return state


def _fixpoint(  # noqa: PLR0913, PLR0917 - all that decides the end
    stratum: set[str],
    rules: list[Flat],
    state: State,
    limit: s.Limit,
    floats: set[tuple[str, int]],
    max_rows: int | None,
) -> None:
    """Replace the relations of ``stratum`` in ``state``, which has their input rows, by their fixpoint."""
    for node in nodes([r.body for r in rules]):
        is_whole = isinstance(node, s.Negation | s.BodyAggregate)
        assert not (is_whole and reads(node) & stratum), f"{stratum} recurses through {node}"
    rules = rules + [Flat(constant(name, row), TRUE) for name in stratum for row in state[name]]
    recursive = [r for r in rules if reads(r.body) & stratum]
    base = [r for r in rules if r not in recursive and not r.is_initial]
    has_initial = {r.head.relation for r in rules if r.is_initial}
    start = [r for r in rules if r.is_initial or (r in base and r.head.relation not in has_initial)]
    shapes = {name: _shape([r.head for r in rules if r.head.relation == name]) for name in stratum}

    rows_read = itertools.count(1)

    def aggregated(using: list[Flat]) -> State:
        derived = {
            n: [row for r in using if r.head.relation == n for row in _derive(r, shapes[n], state, rows_read)]
            for n in stratum
        }
        totals = {name: _aggregate(rows, shapes[name]) for name, rows in derived.items()}
        return {
            n: {tuple(float(v) if (n, j) in floats else v for j, v in enumerate(row)) for row in rows}
            for n, rows in totals.items()
        }

    state |= aggregated(start)
    for applied in itertools.count(1):
        before, after = {name: state[name] for name in stratum}, aggregated(base + recursive)
        state |= after
        change = sum(_change(before[name], after[name], shapes[name]) for name in stratum)
        is_near = limit.tolerance is not None and change < limit.tolerance
        has_enough = max_rows is not None and sum(map(len, after.values())) >= max_rows
        if before == after or not recursive or applied == limit.iterations or is_near or has_enough:
            return
        assert applied < MAX_ROUNDS, f"{stratum} does not end"


def _change(before: set[Row], after: set[Row], shape: Shape) -> float:
    """Return the sum of |delta| over keys and accumulating columns; without such columns any change is infinite."""
    total = 0.0
    sums = [j for j, a in enumerate(shape) if a is not None and a.name in ("SUM", "COUNT")]
    if not sums and before != after:
        return math.inf
    for j in sums:
        old, new = ({_key(row, shape): row[j] for row in rows} for rows in (before, after))
        total += sum(abs(new.get(key, 0) - old.get(key, 0)) for key in old.keys() | new.keys())
    return total


# --- heads -----------------------------------------------------------------------------------------------------------


def _shape(heads: list[s.Atom]) -> Shape:
    by_column = zip(*(h.args for h in heads), strict=True)
    return [next((a for a in column if isinstance(a, s.HeadAggregate)), None) for column in by_column]


def _derive(rule: Flat, shape: Shape, state: State, rows_read: Iterator[int]) -> Iterator[Row]:
    """Yield a row for each binding. A column with an aggregate has the tuple of its arguments."""
    args = list(rule.head.args)
    at = {a.args: j for j, a in enumerate(shape) if a is not None}
    for j, a in enumerate(shape):
        if a is not None and not isinstance(args[j], s.HeadAggregate):
            # A plain term contributes its value. Under MIN_BY, its order is the term in the column of the MIN.
            order = (rule.head.args[at[a.args[1:]]],) if a.name in ("MIN_BY", "MAX_BY") else ()
            args[j] = s.HeadAggregate(a.name, (rule.head.args[j], *order))
    bodies, scope = _Bodies(state, rows_read), outer_variables((rule.head, rule.body))
    for binding in bodies.bindings(rule.body, {}, scope):
        yield from bodies.product(args, binding, scope)


def _key(row: Row, shape: Shape) -> Row:
    return tuple(v for v, a in zip(row, shape, strict=True) if a is None)


def _aggregate(rows: list[Row], shape: Shape) -> Iterator[Row]:
    groups = defaultdict(list)
    for row in rows:
        groups[_key(row, shape)].append(row)
    for members in groups.values():
        columns = zip(*members, strict=True)
        yield tuple(c[0] if a is None else AGGREGATES[a.name](list(c)) for a, c in zip(shape, columns, strict=True))


# --- bodies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bodies:
    """The evaluation of bodies and terms over ``state``. Variables outside of ``scope`` are local to an aggregate.

    ``rows_read`` counts the rows of atoms, for ``MAX_ROWS_READ``.
    """

    state: State
    rows_read: Iterator[int]

    def bindings(self, body: s.Body, binding: Binding, scope: set[str]) -> list[Binding]:
        """Return the distinct bindings of ``body`` that extend ``binding``."""
        bindings = (b for literals in _alternatives(body) for b in self._solve(literals, binding, scope))
        return list({frozenset(b.items()): b for b in bindings}.values())

    def _solve(self, literals: list[s.Body], binding: Binding, scope: set[str]) -> Iterator[Binding]:
        if not literals:
            yield binding
            return
        ready = [x for x in literals if self._is_ready(x, binding, scope)]
        assert ready, f"nothing binds the variables of {literals}"
        # Tests come first, then the atoms that bind the fewest variables. The order does not affect the result.
        literal = min(ready, key=lambda x: (isinstance(x, s.Atom), len(outer_variables(x) - binding.keys())))
        rest = [x for x in literals if x is not literal]
        for extended in self._extend(literal, binding, scope):
            yield from self._solve(rest, extended, scope)

    def _is_ready(self, literal: s.Body, binding: Binding, scope: set[str]) -> bool:
        def unbound(node: Any) -> set[str]:
            return {v for v in (variables(node) & scope) - binding.keys() if not v.startswith(WILDCARD)}

        match literal:
            case s.Atom(_, args):
                return unbound(literal) <= {a.name for a in args if isinstance(a, s.Variable)}
            case s.Comparison("=", left, right):
                sides = [t for t in (left, right) if unbound(t)]
                return not sides or (len(sides) == 1 and isinstance(sides[0], s.Variable))
        return not unbound(literal)

    def _extend(self, literal: s.Body, binding: Binding, scope: set[str]) -> Iterator[Binding]:
        match literal:
            case s.Atom(relation, args):
                for row in self.state[relation]:
                    assert next(self.rows_read) < MAX_ROWS_READ, f"{relation} is read too often: it does not end soon"
                    yield from self._unify(list(zip(args, row, strict=True)), binding, scope)
            case s.Negation(body):
                if not self.bindings(body, binding, scope):
                    yield binding
            case s.Comparison("=", s.Variable(name), term) if name not in binding:
                yield from ({**binding, name: v} for v in self.values(term, binding, scope))
            case s.Comparison("=", term, s.Variable(name)) if name not in binding:
                yield from ({**binding, name: v} for v in self.values(term, binding, scope))
            case s.Comparison():
                yield from (binding for holds in self.values(literal, binding, scope) if holds)
            case s.Constraint(name, args):
                yield from (binding for v in self.product(args, binding, scope) if constrain(name, *v))

    def _unify(self, pairs: list[tuple[s.Term, Any]], binding: Binding, scope: set[str]) -> Iterator[Binding]:
        for term, value in sorted(pairs, key=lambda pair: not isinstance(pair[0], s.Variable)):
            if isinstance(term, s.Variable) and term.name not in binding:
                binding = {**binding, term.name: value}
            elif value not in self.values(term, binding, scope):
                return
        yield binding

    def product(self, terms: Iterable[Any], binding: Binding, scope: set[str]) -> Iterator[Row]:
        return itertools.product(*(self.values(t, binding, scope) for t in terms))

    def values(self, term: Any, binding: Binding, scope: set[str]) -> list[Any]:  # noqa: PLR0911 - one line for each kind
        """Return the values of a term, a comparison or a head's argument."""
        match term:
            case s.Variable(name):
                return [binding[name]]
            case s.Number(value) | s.String(value):
                return [value]
            case s.Cast(operand, type_):
                return [OPERATIONS[f"to_{type_}"](*v) for v in self.product((operand,), binding, scope)]
            case s.Apply("range", args):
                return [n for v in self.product(args, binding, scope) for n in OPERATIONS["range"](*v)]
            case s.Apply(name, args):
                return [OPERATIONS[name](*v) for v in self.product(args, binding, scope)]
            case s.Comparison(op, left, right):
                return [COMPARE[op](*v) for v in self.product((left, right), binding, scope)]
            case s.HeadAggregate(_, args):
                return list(self.product(args, binding, scope))
            case s.BodyAggregate(function, value, body):
                inner = scope | outer_variables(body)
                rows = [v for b in self.bindings(body, binding, inner) for v in self.product([value or ONE], b, inner)]
                return _body_aggregate(function, [v for (v,) in rows])
        raise AssertionError(term)


ONE = s.Number(1)


def _body_aggregate(function: str, values: list[Any]) -> list[Any]:
    if function in ("count", "sum"):
        return [sum(values)]
    if not values:
        return []
    return [sum(values) / len(values) if function == "mean" else OPERATIONS[function](*values, values[0])]


def _alternatives(body: s.Body) -> list[list[s.Body]]:
    """Expand ``a, (b; c)`` to ``a, b`` and ``a, c``."""
    if isinstance(body, s.Disjunction):
        return [a for part in body.parts for a in _alternatives(part)]
    if isinstance(body, s.Conjunction):
        return [[x for part in parts for x in part] for parts in itertools.product(*map(_alternatives, body.parts))]
    return [[body]]
