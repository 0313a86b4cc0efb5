"""Which keys a recursion carries unchanged, so that a filter on them may be applied to the rows that it starts from.

    dist(s, y, min d + w) :- dist(s, x, d), edges(x, y, w)      s: ``s = 7`` afterwards is ``s = 7`` in the base
    path(x, z)            :- path(x, y), path(y, z)             none: the second atom needs all of them
    even(s, y)            :- odd(s, x), next(x, y)              s, in even and odd alike
    odd(s, y)             :- even(s, x), next(x, y)

Every rule must copy the key from *every* recursive atom that it reads: a row then comes only from rows with its own
value there. So a key of one relation says which key it can be in the relations that its rules read, and so on through
the stratum; where a rule makes two keys of an atom equal it may be either, and both are followed. Nothing is carried
where the run ends by a tolerance, which adds up the changes of all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.equal import Classes
from pyspark_paralagg.compile.rewrite.types import is_float
from pyspark_paralagg.program.expr import Col

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Program, Relation, Rule

Positions = dict[str, set[int]]
"""Of each relation the positions that its key may still have; in the order of the relations."""


@dataclass(frozen=True)
class _Link:
    """The key of ``one`` and that of ``other`` stand at one of these pairs of positions."""

    one: str
    other: str
    pairs: frozenset[tuple[int, int]]


def find_carried(program: Program, relations: tuple[Relation, ...]) -> tuple[tuple[int, ...], ...]:
    """Each carried key as its position among the keys of each relation of the stratum, in their order."""
    if program.tolerance is not None:
        return ()
    keys = {r.name: len(r.keys) for r in relations}
    rules = [r for r in program.rules if r.head in keys]
    if any(all(a.relation is None for a in r.body) for r in rules):
        return ()  # a row that comes from no other
    links = dict.fromkeys([*_shown(relations), *(link for r in rules for link in _copied(r, keys))])
    return tuple(_chosen({name: set(range(n)) for name, n in keys.items()}, tuple(links)))


def _shown(relations: tuple[Relation, ...]) -> Iterator[_Link]:
    """A relation that shows another's rows has its keys first."""
    for r in relations:
        same = frozenset((p, p) for p in range(len(r.keys)))
        yield from (_Link(r.name, d.view.relation, same) for d in r.dependents if d.view is not None)


def _copied(rule: Rule, keys: Mapping[str, int]) -> Iterator[_Link]:
    """What the rule copies from each recursive atom."""
    equal = Classes.of(rule.conditions, lambda _: True)
    same = [_same(e, equal) for e in rule.exprs[: keys[rule.head]]]
    for atom in rule.body:
        if atom.relation is not None:
            read = atom.variables[: keys[atom.relation]]
            pairs = ((p, q) for p, names in enumerate(same) for q, v in enumerate(read) if v in names)
            is_own = atom.relation == rule.head
            yield _Link(rule.head, atom.relation, frozenset((p, q) for p, q in pairs if p == q or not is_own))


def _same(key: Expr, equal: Classes) -> set[str]:
    """The variables that are the head's ``key``."""
    if not isinstance(key, Col):
        return set()
    # Equal fractions may differ in the sign of zero, which a filter can see.
    return {key.name} if is_float(key.type) else equal.mates(key.name)


def _chosen(at: Positions, links: tuple[_Link, ...]) -> Iterator[tuple[int, ...]]:
    """One position for each relation, in every way that all links allow; the smallest first."""
    left = _possible(at, links)
    if not all(left.values()):
        return
    several = next((name for name, positions in left.items() if len(positions) > 1), None)
    if several is None:
        yield tuple(p for positions in left.values() for p in positions)
        return
    for p in sorted(left[several]):
        yield from _chosen({**left, several: {p}}, links)


def _possible(at: Positions, links: tuple[_Link, ...]) -> Positions:
    """``at`` without the positions that some link leaves no partner."""
    left: Positions = {}
    while left != at:
        left, at = at, dict(at)
        for link in links:
            pairs = [(p, q) for p, q in link.pairs if p in at[link.one] and q in at[link.other]]
            at[link.one] = {p for p, _ in pairs}
            at[link.other] = {q for _, q in pairs}
    return at
