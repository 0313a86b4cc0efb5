"""Check that no negation and no aggregate of a body is part of a recursion."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.stratify import strongly_connected
from pyspark_paralagg.datalog.parse.syntax import Atom, Negation
from pyspark_paralagg.errors import VerificationError
from pyspark_paralagg.program.names import is_added, stem_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Flat

_BODY_AGGREGATES = ("count", "sum", "min", "max", "mean", "keys")


def check_stratified(rules: Sequence[Flat], derived: set[str], places: Places) -> None:
    """Raise ``VerificationError`` (``PARALAGG_NOT_STRATIFIED``) at the first atom that is not stratified."""
    needs: dict[str, set[str]] = {r.head.relation: set() for r in rules}
    for rule in rules:
        needs[rule.head.relation] |= {a.relation for a, _ in atoms(rule)} & derived
    component = {n: names for names in strongly_connected(needs) for n in names}
    for rule in rules:
        for atom, is_negated in atoms(rule):
            is_aggregate = is_added(atom.relation) and stem_of(atom.relation) in _BODY_AGGREGATES
            if (is_negated or is_aggregate) and atom.relation in component[rule.head.relation]:
                raise _problem(rule, atom, component[rule.head.relation], places, is_aggregate=is_aggregate)


def atoms(rule: Flat) -> list[tuple[Atom, bool]]:
    """Return the atoms of a body, each with True if it is negated."""
    result = []
    for literal in rule.literals:
        if isinstance(literal, Atom):
            result.append((literal, False))
        elif isinstance(literal, Negation) and isinstance(literal.body, Atom):
            result.append((literal.body, True))
    return result


def _problem(rule: Flat, atom: Atom, cycle: Sequence[str], places: Places, *, is_aggregate: bool) -> VerificationError:
    names = ", ".join(n for n in cycle if not is_added(n))
    if is_aggregate:
        message = f"{stem_of(atom.relation)} in the body aggregates rows that depend on its own value ({names})"
        hint = "aggregate in the head with $MIN, $MAX, $SUM, $MCOUNT or another aggregate"
    else:
        message = f"`!{atom.relation}` negates a relation that depends on its result ({names})"
        hint = "compute the negated relation from relations that do not read the result"
    problem = VerificationError("PARALAGG_NOT_STRATIFIED", message, value=atom.relation, hint=hint)
    return places.located(problem, atom.span if atom.span.line else rule.span)
