"""Reduce ``eqrel`` relations to rules: the reflexive, symmetric and transitive closure of the rows that rules derive.

    .decl same(x: number, y: number) eqrel          same(x, y) :- link(x, y).

    same@link(x, y) :- link(x, y).                  same(x, x) :- same@link(x, _).    same(x, x) :- same@link(_, x).
    same(x, z) :- same(x, y), same@link(y, z).      same(x, z) :- same(x, y), same@link(z, y).

The closure is linear in the links: a class of n members with m links costs n * m joined rows, not n^3. Rows of inputs
stay in the relation itself, so a relation with an input gets the rules of the closure over itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from collections.abc import Collection

_PAIR = 2


def without_equivalences(text: syntax.Text, inputs: Collection[str] = ()) -> syntax.Text:
    """Return ``text`` with rules for its ``eqrel`` relations.

    ``inputs`` are the relations with rows from outside. Raise ``DatalogError`` ``PARALAGG_DATALOG_ARITY`` for a
    relation that has not two columns, and ``PARALAGG_DATALOG_TYPE`` if their types differ.
    """
    declared = [c for c in text.clauses if isinstance(c, syntax.Declaration) and "eqrel" in c.qualifiers]
    if not declared:
        return text
    for d in declared:
        _check(d, Places(text.source, text.name))
    external = {*inputs, *(c.relation for c in text.clauses if isinstance(c, syntax.Directive) and c.kind == "input")}
    links = {c.relation: added_name(c.relation, "link") for c in declared if c.relation not in external}
    clauses: list[syntax.Clause] = []
    for c in text.clauses:
        if isinstance(c, syntax.Rule) and any(h.relation in links for h in c.heads):
            heads = tuple(replace(h, relation=links.get(h.relation, h.relation)) for h in c.heads)
            clauses.append(replace(c, heads=heads))
        else:
            clauses.append(c)
    for d in declared:
        relation = d.relation
        if relation in links:
            clauses.append(replace(d, relation=links[relation], qualifiers=()))
        clauses += _closure(relation, links.get(relation, relation), d.span)
    return replace(text, clauses=tuple(clauses))


def _check(declaration: syntax.Declaration, places: Places) -> None:
    name, attributes = declaration.relation, declaration.attributes
    if len(attributes) != _PAIR:
        message = f"the eqrel relation `{name}` has {len(attributes)} columns, not 2"
        raise places.error("PARALAGG_DATALOG_ARITY", message, declaration.span, value=len(attributes))
    first, second = attributes
    if first.type != second.type:
        message = f"the columns of the eqrel relation `{name}` have the types {first.type} and {second.type}"
        hint = "give both columns one type"
        raise places.error("PARALAGG_DATALOG_TYPE", message, declaration.span, value=second.type, hint=hint)


def _closure(relation: str, links: str, span: syntax.Span) -> list[syntax.Rule]:
    """Return the rules of the equivalence ``relation`` that contains ``links``."""
    x, y, z, any_ = (
        syntax.Variable("x", span),
        syntax.Variable("y", span),
        syntax.Variable("z", span),
        syntax.Wildcard(),
    )

    def rule(head: tuple[syntax.Term, ...], *atoms: tuple[str, tuple[syntax.Term, ...]]) -> syntax.Rule:
        body = tuple(syntax.Atom(name, args, span) for name, args in atoms)
        return syntax.Rule(
            (syntax.Atom(relation, head, span),), syntax.Conjunction(body, span), None, f"eqrel {relation}", span
        )

    return [
        rule((x, x), (links, (x, any_))),
        rule((x, x), (links, (any_, x))),
        rule((x, z), (relation, (x, y)), (links, (y, z))),
        rule((x, z), (relation, (x, y)), (links, (z, y))),
    ]
