"""Find the keys that a recursion carries unchanged, so that a filter on them may be applied to the base.

    dist(s, y, min d + w) :- dist(s, x, d), edges(x, y, w)      s: filter ``s = 7`` of the result moves to the base
    path(x, z)            :- path(x, y), path(y, z)             none: the second atom needs all of them
    even(s, y)            :- odd(s, x), next(x, y)              s, in even and odd alike
    odd(s, y)             :- even(s, x), next(x, y)

Every rule must copy the key from *every* recursive atom that it reads: then all rows that derive a row have its value
of that key. A key position in one relation determines the possible positions in the relations that its rules read, and
so on through the stratum. If a rule equates two keys of an atom, both positions are followed. Nothing is carried if the
run ends by a tolerance, which sums the changes of all rows.
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
"""The possible positions of the carried key by relation, in the order of the relations."""


@dataclass(frozen=True)
class _Link:
    """The constraint that the carried keys of two relations are at one of these pairs of positions."""

    left: str
    right: str
    pairs: frozenset[tuple[int, int]]


def find_carried(program: Program, relations: tuple[Relation, ...]) -> tuple[tuple[int, ...], ...]:
    """Return for each carried key its position among the keys of each relation, in the order of ``relations``."""
    if program.tolerance is not None or program.max_rows is not None:
        return ()
    keys = {r.name: len(r.keys) for r in relations}
    rules = [r for r in program.rules if r.head in keys]
    if any(all(a.relation is None for a in r.body) for r in rules):
        return ()  # a rule without a recursive atom
    links = dict.fromkeys([*_view_links(relations), *(link for r in rules for link in _copy_links(r, keys))])
    return tuple(_choices({name: set(range(n)) for name, n in keys.items()}, tuple(links)))


def _view_links(relations: tuple[Relation, ...]) -> Iterator[_Link]:
    """Yield the links of views: the viewed relation has the same keys first."""
    for r in relations:
        same = frozenset((p, p) for p in range(len(r.keys)))
        yield from (_Link(r.name, d.view.relation, same) for d in r.dependents if d.view is not None)


def _copy_links(rule: Rule, keys: Mapping[str, int]) -> Iterator[_Link]:
    """Yield for each recursive atom the link of keys that the rule copies from it."""
    equal = Classes.from_conditions(rule.conditions, lambda _: True)
    head_variables = [_variables_equal_to(e, equal) for e in rule.exprs[: keys[rule.head]]]
    for atom in rule.body:
        if atom.relation is not None:
            read = atom.variables[: keys[atom.relation]]
            pairs = ((p, q) for p, names in enumerate(head_variables) for q, v in enumerate(read) if v in names)
            is_head = atom.relation == rule.head
            yield _Link(rule.head, atom.relation, frozenset((p, q) for p, q in pairs if p == q or not is_head))


def _variables_equal_to(key: Expr, equal: Classes) -> set[str]:
    """Return the variables that equal the head's ``key``."""
    if not isinstance(key, Col):
        return set()
    # Equal floats may differ in the sign of zero, which a filter can observe.
    return {key.name} if is_float(key.type) else equal.mates(key.name)


def _choices(candidates: Positions, links: tuple[_Link, ...]) -> Iterator[tuple[int, ...]]:
    """Yield each choice of one position for each relation that all links allow; the smallest first."""
    possible = _possible(candidates, links)
    if not all(possible.values()):
        return
    ambiguous = next((name for name, positions in possible.items() if len(positions) > 1), None)
    if ambiguous is None:
        yield tuple(p for positions in possible.values() for p in positions)
        return
    for p in sorted(possible[ambiguous]):
        yield from _choices({**possible, ambiguous: {p}}, links)


def _possible(candidates: Positions, links: tuple[_Link, ...]) -> Positions:
    """Return ``candidates`` without the positions that some link excludes."""
    previous: Positions = {}
    while previous != candidates:
        previous, candidates = candidates, dict(candidates)
        for link in links:
            pairs = [(p, q) for p, q in link.pairs if p in candidates[link.left] and q in candidates[link.right]]
            candidates[link.left] = {p for p, _ in pairs}
            candidates[link.right] = {q for _, q in pairs}
    return candidates
