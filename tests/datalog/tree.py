"""Query and rewrite syntax trees for the interpreter: one head for each rule, wildcards, iteration indexes, strata."""
# ruff: noqa: ANN401  (nodes of any type)

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.datalog.parse import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterator

WILDCARD = "_#"  # the prefix of a variable that replaces a wildcard
TRUE = s.Constraint("true")


@dataclass(frozen=True)
class Flat:
    """One head of a rule. Initial rows belong to X, not to C or F."""

    head: s.Atom
    body: s.Body
    is_initial: bool = False


def rules_of(text: s.Text) -> list[Flat]:
    """Return the rules and facts of ``text`` without wildcards and iteration indexes."""
    clauses = [_name_wildcards(c) for c in text.clauses if isinstance(c, s.Rule)]
    return _without_index([Flat(h, c.body or TRUE) for c in clauses for h in c.heads])


def constant(relation: str, row: tuple[Any, ...]) -> s.Atom:
    """Return the head of a fact."""
    return s.Atom(relation, tuple(s.String(v) if isinstance(v, str) else s.Number(v) for v in row))


def strata(rules: list[Flat]) -> list[set[str]]:
    """Return the sets of mutually recursive relations, each after those that it reads."""
    needs = {r.head.relation: {r.head.relation} for r in rules}
    for _ in needs:  # the longest chain has at most this many links
        for r in rules:
            needs[r.head.relation].update(*(needs[n] for n in reads(r.body) & needs.keys()))
    components = {frozenset(m for m in needs[n] if n in needs[m]) for n in needs}
    # A relation needs itself and all that the relations it reads need, so it has more.
    return [set(c) for c in sorted(components, key=lambda c: len(needs[min(c)]))]


# --- nodes ------------------------------------------------------------------------------------------------------------


@cache
def _children(node_type: type) -> tuple[str, ...]:
    """Return the names of the fields that may hold nodes; none if the type is not a node."""
    return tuple(f.name for f in fields(node_type) if f.name != "span") if is_dataclass(node_type) else ()


def nodes(node: Any, skip: type | tuple[()] = ()) -> Iterator[Any]:
    """Yield ``node`` and its descendants, except those below a ``skip``."""
    yield node
    is_list = isinstance(node, tuple | list)
    children = list(node) if is_list else [getattr(node, name) for name in _children(type(node))]
    for child in () if isinstance(node, skip) else children:
        yield from nodes(child, skip)


@lru_cache(4096)
def variables(node: Any) -> set[str]:
    """Return the names of variables in ``node``."""
    return {n.name for n in nodes(node) if isinstance(n, s.Variable)}


@lru_cache(4096)
def outer_variables(node: Any) -> set[str]:
    """Return the names of variables outside of body aggregates."""
    return {n.name for n in nodes(node, s.BodyAggregate) if isinstance(n, s.Variable)}


def reads(body: Any) -> set[str]:
    """Return the relations that ``body`` reads."""
    return {n.relation for n in nodes(body) if isinstance(n, s.Atom)}


def _rewrite(node: Any, change: Any) -> Any:
    if isinstance(node, tuple):
        return tuple(_rewrite(n, change) for n in node)
    if not is_dataclass(node):
        return node
    return change(replace(node, **{f.name: _rewrite(getattr(node, f.name), change) for f in fields(node)}))  # type: ignore[type-var]


def _name_wildcards(rule: s.Rule) -> Any:
    """Return ``rule`` with a separate variable for each wildcard."""
    numbers = itertools.count()
    return _rewrite(rule, lambda n: s.Variable(f"{WILDCARD}{next(numbers)}") if isinstance(n, s.Wildcard) else n)


# --- iteration indexes ------------------------------------------------------------------------------------------------


def _without_index(rules: list[Flat]) -> list[Flat]:
    """Remove iteration indexes: ``rank(0, x, r)`` becomes an initial row, ``rank(i + 1, ...) :- rank(i, ...)`` a step.

    The first column is an ordinary column if ``i`` has other uses, or if no column is aggregated.
    """
    indexed = {n for names in strata(rules) for n in _indexed(names, rules)}

    def shorten(node: Any) -> Any:
        is_read = isinstance(node, s.Atom) and node.relation in indexed
        return replace(node, args=node.args[1:]) if is_read else node

    return [
        Flat(shorten(r.head), _rewrite(r.body, shorten), r.head.relation in indexed and _index(r) is None)
        for r in rules
    ]


def _indexed(names: set[str], rules: list[Flat]) -> set[str]:
    """Return the relations of a stratum that have an iteration index."""
    rules_by_head = {n: [r for r in rules if r.head.relation == n] for n in names}
    with_aggregate = {n for n in names for r in rules_by_head[n] for a in r.head.args if isinstance(a, s.HeadAggregate)}
    indexed = {n for n in with_aggregate if any(_index(r) for r in rules_by_head[n])}
    while not all(_is_indexed(r, indexed) for n in indexed for r in rules_by_head[n]):
        indexed = {n for n in indexed if all(_is_indexed(r, indexed) for r in rules_by_head[n])}
    return indexed


def _index(rule: Flat) -> str | None:
    match rule.head.args:
        case (s.Apply("+", (s.Variable(name), s.Number(1))), *_):
            return name
    return None


def _is_indexed(rule: Flat, indexed: set[str]) -> bool:
    atoms = [n for n in nodes(rule.body) if isinstance(n, s.Atom) and n.relation in indexed]
    index = _index(rule)
    if index is None:
        return rule.head.args[0] == s.Number(0) and not atoms
    uses = sum(n == s.Variable(index) for n in nodes((rule.head, rule.body)))
    return all(a.args[0] == s.Variable(index) for a in atoms) and uses == 1 + len(atoms)


# --- declared types ---------------------------------------------------------------------------------------------------


def float_columns(text: s.Text) -> set[tuple[str, int]]:
    """Return the columns declared ``float``, or by an alias of it."""
    aliases = {c.name: c.types for c in text.clauses if isinstance(c, s.TypeAlias)}

    def is_float(name: str) -> bool:
        return name == "float" or any(is_float(t) for t in aliases.get(name, ()))

    declared = [c for c in text.clauses if isinstance(c, s.Declaration)]
    return {(c.relation, j) for c in declared for j, a in enumerate(c.attributes) if is_float(a.type)}
