"""Replace atoms of ``inline`` relations that cannot be computed on their own by the bodies of their rules.

    .decl same(a: number, b: number) inline
    same(a, b) :- a = b.        p(x, y) :- q(x), r(y), same(x, y).        p(x, y) :- q(x), r(y), x = y.

Only relations with a rule that does not bind its head are replaced; any other has the same rows as a relation.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.rewrite.stratify import strongly_connected
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.expand import alternatives, names_in, nodes, rewritten
from pyspark_paralagg.datalog.resolve.scope import bound_by

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark_paralagg.datalog.parse.syntax import Atom, Body, Literal_, Rule, Term


def without_inlined(text: syntax.Text) -> syntax.Text:
    """Return ``text`` without the ``inline`` relations that need the rules around them.

    Raise ``DatalogError`` ``PARALAGG_DATALOG_UNBOUND`` if such a relation reads itself.
    """
    inline = {c.relation for c in text.clauses if isinstance(c, syntax.Declaration) and "inline" in c.qualifiers}
    outputs = {c.relation for c in text.clauses if isinstance(c, syntax.Directive)}
    rules: dict[str, list[Rule]] = {}
    for c in text.clauses:
        if isinstance(c, syntax.Rule):
            for h in c.heads:
                rules.setdefault(h.relation, []).append(replace(c, heads=(h,)))
    names = _unbound(inline - outputs, rules)
    if not names:
        return text
    _check_acyclic({n: rules[n] for n in names}, Places(text.source, text.name))
    inliner = _Inliner({n: rules[n] for n in names})
    clauses: list[syntax.Clause] = []
    for c in text.clauses:
        if isinstance(c, syntax.Rule) and c.body is not None:
            heads = tuple(h for h in c.heads if h.relation not in names)
            if heads:
                clauses.append(replace(c, heads=heads, body=inliner.body(c.body)))
        elif not (isinstance(c, syntax.Declaration) and c.relation in names):
            clauses.append(c)
    return replace(text, clauses=tuple(c for c in clauses if not _defines(c, names)))


def _unbound(inline: set[str], rules: Mapping[str, list[Rule]]) -> set[str]:
    """Return the relations of ``inline`` with a rule that does not bind its head, and those that read them."""
    names = {n for n in inline if not all(map(_is_bound, rules.get(n, ())))}
    while more := {n for n in inline - names if any(_reads(r, names) for r in rules.get(n, ()))}:
        names |= more
    return names


def _check_acyclic(rules: Mapping[str, list[Rule]], places: Places) -> None:
    read = {n: {a.relation for r in rules[n] for a in nodes(r.body) if isinstance(a, syntax.Atom)} for n in rules}
    needs = {n: relations & rules.keys() for n, relations in read.items()}
    for names in strongly_connected(needs):
        if len(names) > 1 or names[0] in needs[names[0]]:
            message = f"the inline relation `{names[0]}` reads itself"
            hint = "remove `inline`, and bind the head's variables in the body"
            span = rules[names[0]][0].span
            raise places.error("PARALAGG_DATALOG_UNBOUND", message, span, value=names[0], hint=hint)


def _defines(clause: syntax.Clause, names: set[str]) -> bool:
    return isinstance(clause, syntax.Rule) and all(h.relation in names for h in clause.heads)


def _reads(rule: Rule, names: set[str]) -> bool:
    return any(isinstance(n, syntax.Atom) and n.relation in names for n in nodes(rule.body))


def _is_bound(rule: Rule) -> bool:
    """Return whether each alternative of the body binds all variables of the head."""
    needed = names_in(rule.heads[0].args)
    bodies = [()] if rule.body is None else alternatives(rule.body)
    return all(needed <= bound_by(_flat(b)) for b in bodies)


def _flat(body: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return ``body`` with records in atoms as their variables, which they bind."""
    return tuple(
        replace(x, args=tuple(v for a in x.args for v in (_variables(a) if _is_pattern(a) else (a,))))
        if isinstance(x, syntax.Atom)
        else x
        for x in body
    )


def _is_pattern(term: object) -> bool:
    return isinstance(term, syntax.Record | syntax.Branch)


def _variables(term: object) -> Iterator[syntax.Variable]:
    return (n for n in nodes(term) if isinstance(n, syntax.Variable))


class _Inliner:
    def __init__(self, rules: dict[str, list[Rule]]) -> None:
        self._rules = rules
        self._number = itertools.count(1)

    def body(self, body: Body) -> Body:
        """Return ``body`` with the bodies of the rules in place of the atoms."""

        def change(node: Any) -> Any:  # noqa: ANN401 - any node of the tree
            if isinstance(node, syntax.Atom) and node.relation in self._rules:
                return self._expanded(node)
            return node

        result: Body = rewritten(body, change)
        return result

    def _expanded(self, atom: Atom) -> Body:
        rules = self._rules[atom.relation]
        parts = tuple(self._instance(atom, rule) for rule in rules if len(rule.heads[0].args) == len(atom.args))
        return parts[0] if len(parts) == 1 else syntax.Disjunction(parts, atom.span)

    def _instance(self, atom: Atom, rule: Rule) -> syntax.Conjunction:
        """Return the body of ``rule`` for the arguments of ``atom``, its other variables renamed."""
        number = next(self._number)
        names: dict[str, Term] = {}
        equations: list[Literal_] = []
        others: list[tuple[Any, Any]] = []
        for argument, parameter in zip(atom.args, rule.heads[0].args, strict=True):
            if not isinstance(parameter, syntax.Variable) or parameter.name in names:
                others.append((argument, parameter))
            elif isinstance(argument, syntax.Variable | syntax.Number | syntax.String):
                names[parameter.name] = argument
            else:
                variable = syntax.Variable(f"inline@{number}_{len(names)}", atom.span)
                names[parameter.name] = variable
                equations.extend(_equations(variable, argument, atom))

        def change(node: Any) -> Any:  # noqa: ANN401 - any node of the tree
            if not isinstance(node, syntax.Variable):
                return node
            return names.setdefault(node.name, syntax.Variable(f"{node.name}@{number}", node.span))

        for argument, parameter in others:
            equations.extend(_equations(argument, rewritten(parameter, change), atom))
        body = () if rule.body is None else (self.body(rewritten(rule.body, change)),)
        return syntax.Conjunction((*equations, *body), atom.span)


def _equations(left: Any, right: Any, atom: Atom) -> Iterator[syntax.Comparison]:  # noqa: ANN401 - terms
    """Yield the equations of two terms; of two records those of their fields."""
    same = type(left) is type(right) and getattr(left, "name", "") == getattr(right, "name", "")
    if _is_pattern(left) and same and len(left.args) == len(right.args):
        for a, b in zip(left.args, right.args, strict=True):
            yield from _equations(a, b, atom)
    elif not isinstance(left, syntax.Wildcard) and not isinstance(right, syntax.Wildcard):
        yield syntax.Comparison("=", left, right, atom.span)
