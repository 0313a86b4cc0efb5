"""Reduce ``autoinc()`` in heads to relations whose rows the engine numbers: 0, 1, 2… in the order of their values.

    edge(autoinc(), x) :- road(x, _).           autoinc@1(x, y) :- road(x, y).
                                                autoinc@numbered1(x, y, n) :- autoinc@1(x, y), autoinc@zero(n).
                                                edge(n, x) :- autoinc@numbered1(x, y, n).

An engine replaces the last column of ``autoinc@numbered1`` by the number of the row (``Relation.numbered``). The
numbers of a rule begin after those of the rules before it, as in Soufflé, which has one counter.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.datalog.resolve.aggregates import reached
from pyspark_paralagg.datalog.resolve.expand import nodes, rewritten, substituted
from pyspark_paralagg.program.names import NUMBERED, added_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.datalog.parse.syntax import Atom, Rule, Term
    from pyspark_paralagg.errors import DatalogError

WORD = "autoinc"
_ZERO = added_name(WORD, "zero")


def without_counters(text: syntax.Text) -> syntax.Text:
    """Return ``text`` without ``autoinc()``.

    Raise ``DatalogError`` ``PARALAGG_DATALOG_UNSUPPORTED`` for a counter that is not alone in the head of a rule, or
    whose rule recurses. ``with_counters_in_heads`` runs before.
    """
    counting = [c for c in text.clauses if counters(c)]
    if not counting:
        return text
    places = Places(text.source, text.name)
    rules = [_checked(c, places) for c in counting]
    replaced: dict[int, list[syntax.Clause]] = {}
    offsets: list[syntax.Literal_] = []
    for number, rule in enumerate(_ordered(rules, text, places), 1):
        body, variables = _with_variables(rule)
        rows = _atom(added_name(WORD, number), variables, rule.span)
        counter = syntax.Variable(added_name(WORD, "n"), rule.span)
        numbered = replace(rows, relation=f"{NUMBERED}{number}", args=(*rows.args, counter))
        zero = syntax.Atom(_ZERO, (counter,), rule.span)
        value: Term = counter
        for n, _ in enumerate(offsets, 1):
            value = syntax.Apply("+", (value, syntax.Variable(added_name(WORD, f"n{n}"), rule.span)), rule.span)
        replaced[id(rule)] = [
            replace(rule, heads=(rows,), body=body),
            replace(rule, heads=(numbered,), body=syntax.Conjunction((rows, zero), rule.span), plan=None),
            replace(
                rule,
                heads=(_with_counter(rule.heads[0], value),),
                body=syntax.Conjunction((numbered, *offsets), rule.span),
                plan=None,
            ),
        ]
        counted = replace(rows, args=tuple(syntax.Variable(added_name(v, "counted")) for v in variables))
        size = syntax.BodyAggregate("count", None, counted, rule.span)
        offset = syntax.Variable(added_name(WORD, f"n{number}"), rule.span)
        offsets.append(syntax.Comparison("=", offset, size, rule.span))
    clauses = [n for c in text.clauses for n in replaced.get(id(c), [c])]
    return replace(text, clauses=(*clauses, syntax.Rule((syntax.Atom(_ZERO, (syntax.Number(0),)),))))


def counters(node: object) -> list[syntax.Apply]:
    """Return the counters in ``node``."""
    return [n for n in nodes(node) if isinstance(n, syntax.Apply) and n.name == WORD]


def _checked(clause: syntax.Clause, places: Places) -> Rule:
    """Return the clause, a rule with one counter, which is in its head."""
    counter = counters(clause)[0]
    if not isinstance(clause, syntax.Rule) or clause.body is None:
        raise refused("it is not in a rule", counter, places)
    if len(counters(clause)) > 1 or len(clause.heads) > 1:
        raise refused("the rule has two heads or counters", counter, places)
    check_counter(clause, places)
    return clause


def check_counter(node: object, places: Places) -> syntax.Apply:
    """Return the only counter of a rule or a body, which has no alternatives."""
    counter, *others = counters(node)
    if counter.args:
        raise refused("it has an argument", counter, places)
    if others:
        raise refused("the body has two counters", counter, places)
    if any(isinstance(n, syntax.Disjunction) and len(n.parts) > 1 for n in nodes(node)):
        raise refused("the body has alternatives", counter, places)
    return counter


def refused(reason: str, node: syntax.Apply, places: Places) -> DatalogError:
    """Return the error for a counter that is not supported for the ``reason``."""
    message = f"`autoinc()` is not supported here: {reason}"
    hint = "number rows in the head of a rule of its own: `numbered(autoinc(), x) :- rows(x).`"
    return places.error("PARALAGG_DATALOG_UNSUPPORTED", message, node.span, value=WORD, hint=hint)


def _ordered(rules: Sequence[Rule], text: syntax.Text, places: Places) -> Iterator[Rule]:
    """Yield the rules in the text's order, but each after those whose rows it reads."""
    needs = reached([c for c in text.clauses if isinstance(c, syntax.Rule)])
    reads = {id(r): set().union(*(needs.get(n, ()) for n in _read(r.body))) for r in rules}
    for rule in rules:
        if rule.heads[0].relation in reads[id(rule)]:
            raise refused(f"`{rule.heads[0].relation}` reads itself", counters(rule)[0], places)
    waiting = list(rules)
    while waiting:
        heads = {r.heads[0].relation for r in waiting}
        rule = next(r for r in waiting if not heads & reads[id(r)])
        waiting = [r for r in waiting if r is not rule]
        yield rule


def _read(body: object) -> set[str]:
    return {n.relation for n in nodes(body) if isinstance(n, syntax.Atom)}


def _with_variables(rule: Rule) -> tuple[syntax.Body, list[str]]:
    """Return the body with a variable for each `_` of its positive atoms, and its variables, the first one first."""
    wildcards = itertools.count(1)

    def named(node: object) -> object:
        return syntax.Variable(added_name("_", next(wildcards))) if isinstance(node, syntax.Wildcard) else node

    def constant(node: object) -> object:
        return syntax.Number(0) if isinstance(node, syntax.BodyAggregate) else None

    literals = tuple(rewritten(p, named) if isinstance(p, syntax.Atom) else p for p in parts(rule.body))
    binding = (*(substituted(p, constant) for p in literals if not isinstance(p, syntax.Negation)), rule.heads)
    names = dict.fromkeys(n.name for n in nodes(binding) if isinstance(n, syntax.Variable))
    return syntax.Conjunction(literals, rule.span), list(names)


def parts(body: object) -> Iterator[syntax.Literal_]:
    """Yield the literals of a body without alternatives."""
    if isinstance(body, syntax.Conjunction | syntax.Disjunction):
        for part in body.parts:
            yield from parts(part)
    else:
        yield body  # type: ignore[misc] # a literal


def _atom(relation: str, variables: Sequence[str], span: syntax.Span) -> Atom:
    return syntax.Atom(relation, tuple(syntax.Variable(v, span) for v in variables), span)


def _with_counter(head: Atom, value: Term) -> Atom:
    def change(node: object) -> object:
        return value if isinstance(node, syntax.Apply) and node.name == WORD else node

    result: Atom = rewritten(head, change)
    return result
