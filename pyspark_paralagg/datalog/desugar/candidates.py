"""Split a relation that keeps some of its rows: ``r@all`` has the rows that rules derive, ``r`` those that are kept.

    r(x) :- e(x).   far(x) :- r(x).         r@all(x) :- e(x).   far(x) :- r(x).

``subsumption`` and ``choice`` add the rules of ``r``. What is mutually recursive with ``r`` reads ``r@all``, so that
the rows are kept after the fixpoint.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeGuard

from pyspark_paralagg.compile.rewrite.stratify import strongly_connected
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.expand import nodes, rewritten
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

CODE = "PARALAGG_DATALOG_KEPT_ROWS"


class Candidates:
    """The split of ``relation``; ``read`` are the relations that the rules which choose its rows read, besides it."""

    def __init__(self, text: syntax.Text, relation: str, read: Collection[str], inputs: Collection[str]) -> None:
        self.relation = relation
        self.name = added_name(relation, "all")
        self._text = text
        self._rules = [c for c in text.clauses if isinstance(c, syntax.Rule)]
        self._read = read
        self._inputs = inputs

    def component(self, read: Collection[str] = ()) -> frozenset[str]:
        """Return the relations that are mutually recursive with this one, if it also reads ``read``."""
        needs: dict[str, set[str]] = {h.relation: set() for r in self._rules for h in r.heads}
        needs.setdefault(self.relation, set()).update(set(read) & needs.keys())
        for rule in self._rules:
            for h in rule.heads:
                needs[h.relation] |= {n.relation for n in nodes(rule.body) if isinstance(n, syntax.Atom)} & needs.keys()
        names = next(frozenset(c) for c in strongly_connected(needs) if self.relation in c)
        return names if len(names) > 1 or self.relation in needs[self.relation] else frozenset()

    def check_is_derived(self, span: syntax.Span) -> None:
        """Raise ``DatalogError`` ``PARALAGG_DATALOG_KEPT_ROWS`` if the relation has rows from outside."""
        external = {c.relation for c in self._text.clauses if isinstance(c, syntax.Directive) and c.kind == "input"}
        if self.relation in external or self.relation in self._inputs:
            message = f"`{self.relation}` is an input, so all of its rows are kept"
            hint = f"give the input another name, and derive `{self.relation}` from it"
            places = Places(self._text.source, self._text.name)
            raise places.error(CODE, message, span, value=self.relation, hint=hint)

    def clauses(self, kept: Sequence[syntax.Clause]) -> tuple[syntax.Clause, ...]:
        """Return the clauses of the text, with the rows of the relation as candidates, and ``kept`` after them."""
        component = self.component(self._read) | {self.relation}
        result: list[syntax.Clause] = []
        for c in self._text.clauses:
            if isinstance(c, syntax.Rule) and any(h.relation in component for h in c.heads):
                result.extend(self._split(c, component))
            elif _limits(c) and c.relation == self.relation:
                result.append(replace(c, relation=self.name))
            else:
                result.append(c)
            if isinstance(c, syntax.Declaration) and c.relation == self.relation:
                result[-1] = replace(c, choices=())
                result.append(replace(c, relation=self.name, qualifiers=(), choices=()))
        return (*result, *kept)

    def _split(self, rule: syntax.Rule, component: Collection[str]) -> list[syntax.Rule]:
        """Return ``rule`` with one head each; heads in ``component`` read the candidates."""
        result = []
        for head in rule.heads:
            name = self.name if head.relation == self.relation else head.relation
            body = self.with_candidates(rule.body) if head.relation in component and rule.body else rule.body
            result.append(replace(rule, heads=(replace(head, relation=name),), body=body))
        return result

    def with_candidates(self, body: syntax.Body) -> syntax.Body:
        """Return ``body`` reading the candidates in place of the relation."""

        def change(node: object) -> object:
            if isinstance(node, syntax.Atom) and node.relation == self.relation:
                return replace(node, relation=self.name)
            return node

        result: syntax.Body = rewritten(body, change)
        return result


def _limits(clause: syntax.Clause) -> TypeGuard[syntax.Limit | syntax.Directive]:
    return isinstance(clause, syntax.Limit) or (isinstance(clause, syntax.Directive) and clause.kind == "limitsize")
