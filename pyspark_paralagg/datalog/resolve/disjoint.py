"""Alternatives that share no binding, for aggregates that count: a binding that meets several of them counts once.

    total($SUM(v)) :- pair(x, v), (v < 6; v > 2).

    total($SUM(v)) :- pair(x, v), v < 6.
    total($SUM(v)) :- pair(x, v), v > 2, v >= 6.

Alternatives that bind other variables, wildcards among them, have other bindings and stay as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.resolve.expand import Flat, alternatives, names_in, nodes, rewritten

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Plain

_IDEMPOTENT = frozenset(("SET", *(a.name.upper().replace("_", "") for a in AGGREGATORS.values() if a.is_idempotent)))
_OF_ONE_VALUE = ("count", "sum")


def counting(rules: Sequence[syntax.Rule]) -> frozenset[str]:
    """The relations with an aggregate for which it matters how often a row comes."""
    return frozenset(
        h.relation
        for r in rules
        for h in r.heads
        for a in h.args
        if isinstance(a, syntax.HeadAggregate) and a.name.upper().replace("_", "") not in _IDEMPOTENT
    )


def expand(rule: syntax.Rule, counted: frozenset[str], places: Places) -> Iterator[Flat]:
    """The flat rules of ``rule``, head by head; ``counted`` has the relations that count how often a row comes."""
    bodies = [()] if rule.body is None else alternatives(rule.body)
    for head in rule.heads:
        for body in disjoint(bodies, places) if head.relation in counted else bodies:
            yield Flat(head, body, rule)


def disjoint(bodies: Sequence[tuple[Plain, ...]], places: Places) -> list[tuple[Plain, ...]]:
    """Conjunctions with the bindings of ``bodies``, each binding in one; ``bodies`` come of ``alternatives``."""
    out: list[tuple[Plain, ...]] = []
    # Those of few atoms first: what they exclude from others is a comparison, and no negation.
    bodies = sorted(bodies, key=lambda b: sum(isinstance(x, syntax.Atom | syntax.Negation) for x in b))
    for n, body in enumerate(bodies):
        parts = [body]
        for earlier in bodies[:n]:
            # What stands outside of the ``;`` is the same node in both.
            mine, others = _without(body, earlier), _without(earlier, body)
            if _bound_names(body) == _bound_names(earlier) and not _binds_wildcards((*mine, *others)):
                parts = [(*p, *no) for p in parts for no in _none_of(others, places)]
        out += parts
    return out


def _without_one_value(node: object) -> str | None:
    if isinstance(node, syntax.BodyAggregate):
        return None if node.function in _OF_ONE_VALUE else node.function
    return "range" if isinstance(node, syntax.Apply) and node.name == "range" else None


def _without(body: tuple[Plain, ...], other: tuple[Plain, ...]) -> tuple[Plain, ...]:
    return tuple(x for x in body if not any(x is y for y in other))


def _bound_names(body: tuple[Plain, ...]) -> frozenset[str]:
    """The variables of a binding: those outside of aggregates."""
    return names_in(rewritten(body, lambda n: syntax.Wildcard() if isinstance(n, syntax.BodyAggregate) else n))


def _binds_wildcards(literals: tuple[Plain, ...]) -> bool:
    return any(isinstance(a, syntax.Wildcard) for x in literals if isinstance(x, syntax.Atom) for a in x.args)


def _none_of(literals: tuple[Plain, ...], places: Places) -> Iterator[tuple[Plain, ...]]:
    """``a, b, c`` does not hold: ``!a``, or ``a, !b``, or ``a, b, !c``; these share no binding, either."""
    for n, literal in enumerate(literals):
        for node in nodes(literal):
            # What has no value, or several, has no opposite that is the comparison's.
            name = _without_one_value(node)
            if name is not None:
                message = f"{name} stands in one of several alternatives whose bindings are counted"
                hint = "give its value to a variable before the alternatives, or write two rules"
                raise places.error("PARALAGG_DATALOG_UNSUPPORTED", message, node.span, value=name, hint=hint)
        # A negated atom is one for ``Negation``, whatever its type says: ``alternatives`` takes both signs away.
        for negated in alternatives(syntax.Negation(literal, literal.span)):  # type: ignore[arg-type]
            yield (*literals[:n], *negated)
