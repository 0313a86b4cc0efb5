"""Reduce subsumption to aggregates in heads where it keeps a minimum, and to a negation after the fixpoint elsewhere.

    sp(x, c1) <= sp(x, c2) :- c2 <= c1.             sp(y, c + w) :- ...     becomes     sp(y, $MIN(c + w)) :- ...

    r(a, b) <= r(c, d) :- c <= a, b <= d.           r@dominated(a, b) :- r@all(a, b), r@all(c, d), c <= a, b <= d,
                                                                         (a != c; b != d).
                                                    r(x, y) :- r@all(x, y), !r@dominated(x, y).

Soufflé removes dominated rows while it evaluates, so what such a row derives may depend on the order of evaluation. The
second form has the rows of the fixpoint that no other one dominates. That is Soufflé's result if a greater row derives
a row that is at least as great, for each row that a lesser one derives.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.desugar.candidates import CODE, Candidates
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.expand import nodes
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pyspark_paralagg.datalog.parse.syntax import Atom, Subsumption, Term

_KEPT = {"<": "MAX", "<=": "MAX", ">": "MIN", ">=": "MIN"}
"""The aggregate of the value that stays, by the sign between the lesser row's value and the greater one's."""
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def without_subsumption(text: syntax.Text, inputs: Collection[str] = ()) -> syntax.Text:
    """Return ``text`` without subsumptions; raise ``DatalogError`` ``PARALAGG_DATALOG_KEPT_ROWS``."""
    by_relation: dict[str, list[Subsumption]] = {}
    for c in text.clauses:
        if isinstance(c, syntax.Subsumption):
            _check(c, Places(text.source, text.name))
            by_relation.setdefault(c.lesser.relation, []).append(c)
    for relation, subsumptions in by_relation.items():
        rest = replace(text, clauses=tuple(c for c in text.clauses if c not in subsumptions))
        read = {n.relation for s in subsumptions for n in nodes(s.body) if isinstance(n, syntax.Atom)}
        candidates = Candidates(rest, relation, read, inputs)
        candidates.check_is_derived(subsumptions[0].span)
        lattice = _lattice(subsumptions, rest)
        clauses = candidates.clauses(_kept(candidates, subsumptions)) if lattice is None else lattice
        text = replace(text, clauses=clauses)
    return text


def _check(node: Subsumption, places: Places) -> None:
    first, second = node.lesser, node.greater
    if first.relation != second.relation:
        message = f"a row of `{first.relation}` cannot be compared with one of `{second.relation}`"
        raise places.error(CODE, message, second.span, value=second.relation, hint="compare rows of one relation")
    if len(first.args) != len(second.args):
        message = f"`{first.relation}` has {len(first.args)} columns here, and then {len(second.args)}"
        raise places.error("PARALAGG_DATALOG_ARITY", message, second.span, value=len(second.args))


# --- as an aggregate -------------------------------------------------------------------------------------------------


def _lattice(subsumptions: Sequence[Subsumption], text: syntax.Text) -> tuple[syntax.Clause, ...] | None:
    """Return the clauses of ``text`` with an aggregate in the relation's heads; None if it keeps no minimum."""
    compared = _compared(subsumptions[0]) if len(subsumptions) == 1 else None
    relation = subsumptions[0].lesser.relation
    is_head = [any(h.relation == relation for h in c.heads) for c in text.clauses if isinstance(c, syntax.Rule)]
    rules = [c for c in text.clauses if isinstance(c, syntax.Rule) and c.body is not None]
    if compared is None or not any(is_head) or not any(h.relation == relation for r in rules for h in r.heads):
        return None
    position, function = compared

    def aggregated(head: Atom) -> Atom:
        if head.relation != relation or len(head.args) <= position:
            return head
        value = head.args[position]
        if isinstance(value, syntax.HeadAggregate):
            return head
        aggregate = syntax.HeadAggregate(function, (value,), head.span, function)
        return replace(head, args=(*head.args[:position], aggregate, *head.args[position + 1 :]))

    return tuple(
        replace(c, heads=tuple(map(aggregated, c.heads))) if isinstance(c, syntax.Rule) and c.body is not None else c
        for c in text.clauses
    )


def _compared(node: Subsumption) -> tuple[int, str] | None:
    """Return the position of the one column that is compared and the aggregate that it keeps; None if there is none."""
    pairs = list(zip(node.lesser.args, node.greater.args, strict=True))
    differing = [n for n, (a, b) in enumerate(pairs) if a != b]
    body = node.body
    while isinstance(body, syntax.Conjunction | syntax.Disjunction) and len(body.parts) == 1:
        body = body.parts[0]
    if len(differing) != 1 or not isinstance(body, syntax.Comparison) or body.op not in _KEPT:
        return None
    names = [a.name for a, _ in pairs if isinstance(a, syntax.Variable)]
    lesser, greater = pairs[differing[0]]
    if len(set(names)) != len(pairs) or not isinstance(greater, syntax.Variable) or greater.name in names:
        return None
    if (body.left, body.right) == (lesser, greater):
        return differing[0], _KEPT[body.op]
    return (differing[0], _KEPT[_TURNED[body.op]]) if (body.left, body.right) == (greater, lesser) else None


# --- after the fixpoint ----------------------------------------------------------------------------------------------


def _kept(candidates: Candidates, subsumptions: Sequence[Subsumption]) -> list[syntax.Clause]:
    """Return the rules of the relation: the candidates that no other candidate dominates."""
    dominated = added_name(candidates.relation, "dominated")
    rules = [r for s in subsumptions if (r := _dominated(candidates, dominated, s)) is not None]
    atom = subsumptions[0].lesser
    columns = tuple(syntax.Variable(f"c@{n}", atom.span) for n in range(len(atom.args)))
    literals: list[syntax.Literal_] = [syntax.Atom(candidates.name, columns, atom.span)]
    if rules:
        literals.append(syntax.Negation(syntax.Atom(dominated, columns, atom.span), atom.span))
    head = syntax.Atom(candidates.relation, columns, atom.span)
    text = f"subsumption of {candidates.relation}"
    kept = syntax.Rule((head,), syntax.Conjunction(tuple(literals), atom.span), None, text, subsumptions[0].span)
    return [*rules, kept]


def _dominated(candidates: Candidates, name: str, node: Subsumption) -> syntax.Rule | None:
    """Return the rule for the rows that ``node`` removes; None if it compares each row with itself only."""
    equations: list[syntax.Literal_] = []
    lesser = _columns(node.lesser, "lesser", equations)
    greater = _columns(node.greater, "greater", equations)
    different = tuple(syntax.Comparison("!=", a, b, node.span) for a, b in zip(lesser, greater, strict=True) if a != b)
    if not different:
        return None
    atoms = (
        syntax.Atom(candidates.name, lesser, node.lesser.span),
        syntax.Atom(candidates.name, greater, node.greater.span),
    )
    body = candidates.with_candidates(node.body)
    parts = (*atoms, *equations, body, syntax.Disjunction(different, node.span))
    head = syntax.Atom(name, lesser, node.lesser.span)
    text = f"subsumption of {candidates.relation}"
    return syntax.Rule((head,), syntax.Conjunction(parts, node.span), None, text, node.span)


def _columns(atom: Atom, stem: str, equations: list[syntax.Literal_]) -> tuple[syntax.Variable, ...]:
    """Return a variable for each column of ``atom``; add equations for the arguments that are none."""
    result: list[syntax.Variable] = []
    for n, a in enumerate(atom.args):
        if isinstance(a, syntax.Variable):
            result.append(a)
            continue
        result.append(syntax.Variable(f"{stem}@{n}", atom.span))
        if not isinstance(a, syntax.Wildcard):
            value: Term = a  # type: ignore[assignment] # no aggregate: `aggregated` heads are those of rules
            equations.append(syntax.Comparison("=", result[-1], value, atom.span))
    return tuple(result)
