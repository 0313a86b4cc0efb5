"""Make alternatives disjoint for aggregates that count, so a binding that meets several alternatives counts once.

    total($SUM(v)) :- pair(x, v), (v < 6; v > 2).

    total($SUM(v)) :- pair(x, v), v < 6.
    total($SUM(v)) :- pair(x, v), v > 2, v >= 6.

Alternatives that bind different variables, or wildcards, have different bindings and stay unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.resolve.expand import Flat, alternatives, names_in, nodes, rewritten
from pyspark_paralagg.program.aggregators import AGGREGATORS
from pyspark_paralagg.program.sets import COLLECT_SET

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Plain

_IDEMPOTENT = frozenset(
    name.upper().replace("_", "")
    for name in ("set", COLLECT_SET, *(a.name for a in AGGREGATORS.values() if a.is_idempotent))
)
_SINGLE_VALUED = ("count", "sum")


def counting(rules: Sequence[syntax.Rule]) -> frozenset[str]:
    """Return the relations with an aggregate that depends on how often a row is derived."""
    return frozenset(
        h.relation
        for r in rules
        for h in r.heads
        for a in h.args
        if isinstance(a, syntax.HeadAggregate) and a.name.upper().replace("_", "") not in _IDEMPOTENT
    )


def expand(rule: syntax.Rule, counted: frozenset[str], places: Places) -> Iterator[Flat]:
    """Yield the flat rules of ``rule``, head by head; ``counted`` has the relations from ``counting``."""
    bodies = [()] if rule.body is None else alternatives(rule.body)
    for head in rule.heads:
        for body in disjoint(bodies, places) if head.relation in counted else bodies:
            yield Flat(head, body, rule)


def disjoint(bodies: Sequence[tuple[Plain, ...]], places: Places) -> list[tuple[Plain, ...]]:
    """Return conjunctions with the bindings of ``bodies``, each in exactly one; ``alternatives`` made ``bodies``."""
    result: list[tuple[Plain, ...]] = []
    # Bodies with few atoms come first: excluding them from later ones adds comparisons rather than negations.
    bodies = sorted(bodies, key=lambda b: sum(isinstance(x, syntax.Atom | syntax.Negation) for x in b))
    for n, body in enumerate(bodies):
        parts = [body]
        for earlier in bodies[:n]:
            # Literals outside of the ``;`` are the same node in both bodies.
            own_part, other_part = _without(body, earlier), _without(earlier, body)
            if _bound_names(body) == _bound_names(earlier) and not _binds_wildcards((*own_part, *other_part)):
                parts = [(*p, *excluded) for p in parts for excluded in _complement(other_part, places)]
        result += parts
    return result


def _name_without_single_value(node: object) -> str | None:
    if isinstance(node, syntax.BodyAggregate):
        return None if node.function in _SINGLE_VALUED else node.function
    return "range" if isinstance(node, syntax.Apply) and node.name == "range" else None


def _without(body: tuple[Plain, ...], other: tuple[Plain, ...]) -> tuple[Plain, ...]:
    return tuple(x for x in body if not any(x is y for y in other))


def _bound_names(body: tuple[Plain, ...]) -> frozenset[str]:
    """Return the variables of a binding: those outside of aggregates."""
    return names_in(rewritten(body, lambda n: syntax.Wildcard() if isinstance(n, syntax.BodyAggregate) else n))


def _binds_wildcards(literals: tuple[Plain, ...]) -> bool:
    return any(isinstance(a, syntax.Wildcard) for x in literals if isinstance(x, syntax.Atom) for a in x.args)


def _complement(literals: tuple[Plain, ...], places: Places) -> Iterator[tuple[Plain, ...]]:
    """Yield the disjoint conjunctions of "not all of ``a, b, c``": ``!a``, then ``a, !b``, then ``a, b, !c``."""
    for n, literal in enumerate(literals):
        for node in nodes(literal):
            # A term with no value or several has no complement: `x = t` and `x != t` may both fail or both hold.
            name = _name_without_single_value(node)
            if name is not None:
                message = f"{name} is in one of several alternatives whose bindings are counted"
                hint = "assign its value to a variable before the alternatives, or write two rules"
                raise places.error("PARALAGG_DATALOG_UNSUPPORTED", message, node.span, value=name, hint=hint)
        # ``Negation`` accepts a negated literal here, whatever its type says: ``alternatives`` cancels the two signs.
        for negated in alternatives(syntax.Negation(literal, literal.span)):  # type: ignore[arg-type]
            yield (*literals[:n], *negated)
