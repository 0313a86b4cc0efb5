"""Remove the index of PowerLog's iteration-indexed rules and keep their meaning.

    rank(0, x, r)               :- node(x), r = 1.0.                      initial rows
    rank(i + 1, x, $SUM(0.15))  :- node(x).                               base rows, in every iteration
    rank(i + 1, y, $SUM(v))     :- rank(i, x, r), edge(x, y), v = 0.85 * r.     the step

A relation is indexed if the first argument of a head with an aggregate is ``i + 1``, and ``i`` occurs only as the
first argument of indexed atoms (docs/papers.md: PowerLog, section 1). A plain column that counts levels stays a
column: its variable occurs elsewhere, or its head has no aggregate.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.stratify import strongly_connected
from pyspark_paralagg.datalog.parse.syntax import Apply, Atom, HeadAggregate, Negation, Number, Variable, Wildcard
from pyspark_paralagg.datalog.resolve.expand import Flat, names_in, nodes
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Plain

INITIAL = added_name("", 0)
"""The suffix of the name of a relation that holds the initial rows of another relation."""


def drop_indexes(rules: tuple[Flat, ...], places: Places) -> tuple[tuple[Flat, ...], frozenset[str]]:
    """Return the rules without iteration indexes, and the indexed relations; ``r@0`` has the initial rows of ``r``."""
    needs: dict[str, set[str]] = {r.head.relation: set() for r in rules}
    for r in rules:
        needs[r.head.relation] |= {a.relation for a in _atoms(r)} & needs.keys()
    components = strongly_connected(needs)
    indexed = frozenset(n for names in components for n in _indexed(names, rules))
    if not indexed:
        return rules, indexed
    component = {n: names for names in components for n in names}
    return tuple(_without_index(r, indexed, component[r.head.relation], places) for r in rules), indexed


def _indexed(names: Sequence[str], rules: tuple[Flat, ...]) -> frozenset[str]:
    """Return the indexed relations of the strongly connected component ``names``; each component has its own index."""
    rules_of = {n: [r for r in rules if r.head.relation == n] for n in names}
    candidates = frozenset(
        n for n in names if any(_index(r) for r in rules_of[n]) and any(_has_aggregate(r) for r in rules_of[n])
    )
    while True:
        confirmed = frozenset(n for n in candidates if all(_is_indexed(r, candidates) for r in rules_of[n]))
        if confirmed == candidates:
            return candidates
        candidates = confirmed


def _has_aggregate(rule: Flat) -> bool:
    return any(isinstance(a, HeadAggregate) for a in rule.head.args)


def _index(rule: Flat) -> str | None:
    """Return ``i`` of a head ``r(i + 1, ...)``."""
    if not rule.head.args:
        return None
    match rule.head.args[0]:
        case Apply(name="+", args=(Variable(name=name), Number(value=1))):
            return name
        case _:
            return None


def _is_initial(rule: Flat) -> bool:
    return bool(rule.head.args) and rule.head.args[0] == Number(0)


def _is_indexed(rule: Flat, indexed: Iterable[str]) -> bool:
    if _is_initial(rule):
        return not any(a.relation in indexed for a in _atoms(rule))
    index = _index(rule)
    if index is None or index in names_in(rule.head.args[1:]):
        return False
    for literal in rule.literals:
        rest = literal.args[1:] if isinstance(literal, Atom) and literal.relation in indexed else literal
        if index in names_in(rest):
            return False
    return all(a.args and a.args[0] == Variable(index) for a in _atoms(rule) if a.relation in indexed)


def _atoms(rule: Flat) -> list[Atom]:
    return [n for n in nodes(rule.literals) if isinstance(n, Atom)]


def _without_index(rule: Flat, indexed: frozenset[str], component: Sequence[str], places: Places) -> Flat:
    literals = tuple(_without_first_argument(x, indexed) for x in rule.literals)
    is_step = rule.head.relation in indexed
    indexed_atoms = (a for a in _atoms(rule) if a.relation in indexed)
    other_atom = next((a for a in indexed_atoms if not (is_step and a.relation in component)), None)
    if other_atom is not None:
        index = other_atom.args[0]
        uses = sum(n == index for n in nodes((rule.head.args, rule.literals)))
        if not isinstance(index, Wildcard) and (not isinstance(index, Variable) or uses > 1):
            raise places.error(
                "PARALAGG_DATALOG_INDEX",
                f"`{other_atom.relation}` keeps the rows of its last iteration only",
                other_atom.span,
                value=other_atom.relation,
                hint="replace the index by a variable that occurs nowhere else, such as i",
            )
    if not is_step:
        return replace(rule, literals=literals)
    name = rule.head.relation + (INITIAL if _is_initial(rule) else "")
    return replace(rule, head=replace(rule.head, relation=name, args=rule.head.args[1:]), literals=literals)


def _without_first_argument(literal: Plain, indexed: frozenset[str]) -> Plain:
    if isinstance(literal, Negation) and isinstance(literal.body, Atom):
        return replace(literal, body=_without_first_argument(literal.body, indexed))  # type: ignore[arg-type]
    if isinstance(literal, Atom) and literal.relation in indexed:
        return replace(literal, args=literal.args[1:])
    return literal
