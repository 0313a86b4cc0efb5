"""PowerLog's iteration-indexed rules: the index goes, what it says stays.

    rank(0, x, r)               :- node(x), r = 1.0.                      initial rows
    rank(i + 1, x, $SUM(0.15))  :- node(x).                               base rows, of every round
    rank(i + 1, y, $SUM(v))     :- rank(i, x, r), edge(x, y), v = 0.85 * r.     the step

A relation is indexed where the first argument of a head with an aggregate is ``i + 1``, and ``i`` is nothing but the
first argument of atoms that are indexed too. (Wang et al. 2020, section 2; design section 3.) A plain column that
counts levels has a use for its variable elsewhere, or no aggregate beside it, and stays a column.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.stratify import strongly_connected
from pyspark_paralagg.datalog.parse.syntax import Apply, Atom, HeadAggregate, Negation, Number, Variable, Wildcard
from pyspark_paralagg.datalog.resolve.expand import Flat, names_in, nodes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Plain

INITIAL = "@0"
"""What the name of a relation ends in that holds the initial rows of another one."""


def drop_indexes(rules: tuple[Flat, ...], places: Places) -> tuple[tuple[Flat, ...], frozenset[str]]:
    """The rules without iteration indexes, and the relations that had one; ``r@0`` holds the initial rows of ``r``."""
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
    """Those of ``names``, which need each other, that have an index. What they need besides has its own, if any."""
    own = {n: [r for r in rules if r.head.relation == n] for n in names}
    found = frozenset(n for n in names if any(_index(r) for r in own[n]) and any(_has_aggregate(r) for r in own[n]))
    while True:
        right = frozenset(n for n in found if all(_is_indexed(r, found) for r in own[n]))
        if right == found:
            return found
        found = right


def _has_aggregate(rule: Flat) -> bool:
    return any(isinstance(a, HeadAggregate) for a in rule.head.args)


def _index(rule: Flat) -> str | None:
    """``i`` of a head ``r(i + 1, ...)``."""
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


def _without_index(rule: Flat, indexed: frozenset[str], same: Sequence[str], places: Places) -> Flat:
    literals = tuple(_shortened(x, indexed) for x in rule.literals)
    is_step = rule.head.relation in indexed
    read = next((a for a in _atoms(rule) if a.relation in indexed and not (is_step and a.relation in same)), None)
    if read is not None:
        index = read.args[0]
        uses = sum(n == index for n in nodes((rule.head.args, rule.literals)))
        if not isinstance(index, Wildcard) and (not isinstance(index, Variable) or uses > 1):
            raise places.error(
                "PARALAGG_DATALOG_INDEX",
                f"`{read.relation}` keeps the rows of its last iteration only",
                read.span,
                value=read.relation,
                hint="write a variable in the place of the index that is used nowhere else, such as i",
            )
    if not is_step:
        return replace(rule, literals=literals)
    name = rule.head.relation + (INITIAL if _is_initial(rule) else "")
    return replace(rule, head=replace(rule.head, relation=name, args=rule.head.args[1:]), literals=literals)


def _shortened(literal: Plain, indexed: frozenset[str]) -> Plain:
    if isinstance(literal, Negation) and isinstance(literal.body, Atom):
        return replace(literal, body=_shortened(literal.body, indexed))  # type: ignore[arg-type]
    if isinstance(literal, Atom) and literal.relation in indexed:
        return replace(literal, args=literal.args[1:])
    return literal
