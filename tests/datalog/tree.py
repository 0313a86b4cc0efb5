"""What is written where in a Datalog text: rules one head each, names, wildcards, iteration indexes, strata."""
# ruff: noqa: ANN401  (nodes of any type)

from __future__ import annotations

import itertools
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.datalog.parse import syntax as s

if TYPE_CHECKING:
    from collections.abc import Iterator

WILDCARD = "_#"  # how the variable that stands for a wildcard begins
TRUE = s.Constraint("true")


@dataclass(frozen=True)
class Flat:
    """One head of a rule. Initial rows are of X, and not of C or F."""

    head: s.Atom
    body: s.Body
    is_initial: bool = False


def rules_of(text: s.Text) -> list[Flat]:
    """The rules and facts of ``text``: no wildcards, no iteration indexes."""
    clauses = [_named(c) for c in text.clauses if isinstance(c, s.Rule)]
    return _without_index([Flat(h, c.body or TRUE) for c in clauses for h in c.heads])


def constant(relation: str, row: tuple[Any, ...]) -> s.Atom:
    """The head of a fact."""
    return s.Atom(relation, tuple(s.String(v) if isinstance(v, str) else s.Number(v) for v in row))


def strata(rules: list[Flat]) -> list[set[str]]:
    """The sets of derived relations that need each other, each after those that it needs."""
    needs = {r.head.relation: {r.head.relation} for r in rules}
    for _ in needs:  # as many rounds as the longest chain can have links
        for r in rules:
            needs[r.head.relation].update(*(needs[n] for n in reads(r.body) & needs.keys()))
    components = {frozenset(m for m in needs[n] if n in needs[m]) for n in needs}
    # Who needs another needs all that the other needs, and itself.
    return [set(c) for c in sorted(components, key=lambda c: len(needs[min(c)]))]


# --- nodes ------------------------------------------------------------------------------------------------------------


@cache
def _children(of: type) -> tuple[str, ...]:
    """The names of the fields that may hold nodes; none where it is no node."""
    return tuple(f.name for f in fields(of) if f.name != "span") if is_dataclass(of) else ()


def nodes(node: Any, skip: type | tuple[()] = ()) -> Iterator[Any]:
    """``node`` and all below it, but for what is below a ``skip``."""
    yield node
    is_list = isinstance(node, tuple | list)
    children = list(node) if is_list else [getattr(node, name) for name in _children(type(node))]
    for child in () if isinstance(node, skip) else children:
        yield from nodes(child, skip)


def variables(node: Any) -> set[str]:
    """The names of variables in ``node``."""
    return {n.name for n in nodes(node) if isinstance(n, s.Variable)}


def outer_variables(node: Any) -> set[str]:
    """Those that occur outside of body aggregates."""
    return {n.name for n in nodes(node, s.BodyAggregate) if isinstance(n, s.Variable)}


def reads(body: Any) -> set[str]:
    """The relations that ``body`` reads."""
    return {n.relation for n in nodes(body) if isinstance(n, s.Atom)}


def _rewritten(node: Any, change: Any) -> Any:
    if isinstance(node, tuple):
        return tuple(_rewritten(n, change) for n in node)
    if not is_dataclass(node):
        return node
    return change(replace(node, **{f.name: _rewritten(getattr(node, f.name), change) for f in fields(node)}))  # type: ignore[type-var]


def _named(rule: s.Rule) -> Any:
    """``rule`` with a variable of its own for each wildcard."""
    numbers = itertools.count()
    return _rewritten(rule, lambda n: s.Variable(f"{WILDCARD}{next(numbers)}") if isinstance(n, s.Wildcard) else n)


# --- iteration indexes ------------------------------------------------------------------------------------------------


def _without_index(rules: list[Flat]) -> list[Flat]:
    """``rank(0, x, r)`` is an initial row of rank(x, r); ``rank(i + 1, ...) :- rank(i, ...)`` is its step.

    Where ``i`` stands for more than the iteration, or nothing is aggregated, the first column is one as any other.
    """
    indexed = {n for names in strata(rules) for n in _indexed(names, rules)}

    def shortened(node: Any) -> Any:
        is_read = isinstance(node, s.Atom) and node.relation in indexed
        return replace(node, args=node.args[1:]) if is_read else node

    return [
        Flat(shortened(r.head), _rewritten(r.body, shortened), r.head.relation in indexed and _index(r) is None)
        for r in rules
    ]


def _indexed(names: set[str], rules: list[Flat]) -> set[str]:
    """Those of ``names``, which need each other, that have an index."""
    own = {n: [r for r in rules if r.head.relation == n] for n in names}
    with_aggregate = {n for n in names for r in own[n] for a in r.head.args if isinstance(a, s.HeadAggregate)}
    found = {n for n in with_aggregate if any(_index(r) for r in own[n])}
    while not all(_is_indexed(r, found) for n in found for r in own[n]):
        found = {n for n in found if all(_is_indexed(r, found) for r in own[n])}
    return found


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
    """The columns declared ``float``, or by an alias of it."""
    aliases = {c.name: c.types for c in text.clauses if isinstance(c, s.TypeAlias)}

    def is_float(name: str) -> bool:
        return name == "float" or any(is_float(t) for t in aliases.get(name, ()))

    declared = [c for c in text.clauses if isinstance(c, s.Declaration)]
    return {(c.relation, j) for c in declared for j, a in enumerate(c.attributes) if is_float(a.type)}
