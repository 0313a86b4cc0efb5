"""Reduce ``choice-domain`` to minima: of each key, the row with the least values stays, column by column.

    .decl advisor(s: symbol, p: symbol) choice-domain s     advisor(s, $MIN(p)) :- advisor@all(s, p).

Soufflé keeps the row that it derives first, which depends on the order of evaluation; any row is a valid choice. With
several keys, rows are taken in their order, each unless a row before it has one of its keys. For each key the rows
with equal values of it form a chain, which is walked from its first row over removed ones::

    match(x, y) :- match@all(x, y), match@turn1(x, y), match@turn2(x, y).
    match@gone(x, y) :- match(x, z), match@all(x, y), y != z.               (and the same with y)
    match@turn1(x, y) :- match@first1(x, y).                                (the least y of each x)
    match@turn1(x, y) :- match@turn1(x, z), match@gone(x, z), match@next1(x, z, y).

A relation that reads itself needs the order in which rows are derived, so it is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.datalog.desugar.candidates import CODE, Candidates
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from pyspark_paralagg.datalog.parse.syntax import Atom, Declaration

_UNSUPPORTED = "PARALAGG_DATALOG_UNSUPPORTED"


def without_choices(text: syntax.Text, inputs: Collection[str] = ()) -> syntax.Text:
    """Return ``text`` without ``choice-domain``.

    Raise ``DatalogError`` ``PARALAGG_DATALOG_KEPT_ROWS`` for a key that is no column, and
    ``PARALAGG_DATALOG_UNSUPPORTED`` for a relation that recurses.
    """
    places = Places(text.source, text.name)
    declared = [c for c in text.clauses if isinstance(c, syntax.Declaration) and c.choices]
    for d in declared:
        keys = _keys(d, places)
        text = replace(text, clauses=tuple(replace(c, choices=()) if c is d else c for c in text.clauses))
        if not keys:
            continue
        candidates = Candidates(text, d.relation, (), inputs)
        candidates.check_is_derived(d.span)
        hint = "choose the row in a head: `r(x, $MIN(y)) :- ...`, or `$MIN_BY(y, cost)`"
        if candidates.component():
            message = f"choice-domain is not supported in a recursion: `{d.relation}` reads itself"
            raise places.error(_UNSUPPORTED, message, d.span, value=d.relation, hint=hint)
        text = replace(text, clauses=candidates.clauses(_Choice(d, candidates).rules(keys)))
    return text


def _keys(declaration: Declaration, places: Places) -> list[frozenset[str]]:
    """Return the keys, without those that another key implies, or that are the whole row."""
    columns = [a.name for a in declaration.attributes]
    for key in declaration.choices:
        for name in key:
            if name not in columns:
                message = f"`{declaration.relation}` has no column `{name}`"
                hint = f"use one of {', '.join(columns)}" if columns else "remove the choice-domain"
                raise places.error(CODE, message, declaration.span, value=name, hint=hint)
    keys = list(dict.fromkeys(frozenset(key) for key in declaration.choices))
    return [k for k in keys if k != frozenset(columns) and not any(other < k for other in keys)]


class _Choice:
    """The rules that choose the rows of a declared relation among its candidates."""

    def __init__(self, declaration: Declaration, candidates: Candidates) -> None:
        self._relation = declaration.relation
        self._span = declaration.span
        self._columns = [a.name for a in declaration.attributes]
        self._rows = self._atom(candidates.name, self._columns)

    def rules(self, keys: Sequence[frozenset[str]]) -> list[syntax.Rule]:
        """Return the rules of the relation; with a single key, the first row of each of its values stays."""
        if len(keys) == 1:
            return self._first(self._relation, self._rows, [c for c in self._columns if c in keys[0]], self._columns)
        turns = [self._added("turn", n) for n in range(len(keys))]
        turn_atoms = [self._atom(turn, self._columns) for turn in turns]
        result = [self._rule(self._atom(self._relation, self._columns), self._rows, *turn_atoms)]
        for n, key in enumerate(keys):
            result += self._chain(n, key, turn_atoms[n])
        return result

    def _chain(self, n: int, key: frozenset[str], turn: Atom) -> list[syntax.Rule]:
        """Return the rules of one key: the turn goes from a row to the next one with this key, once it is gone."""
        after, first, following = (self._added(word, n) for word in ("after", "first", "next"))
        others = {c: added_name(c, "other") for c in self._columns if c not in key}
        other_row = [others.get(c, c) for c in self._columns]
        other = self._atom(self._rows.relation, other_row)
        gone = added_name(self._relation, "gone")
        pair = [*self._columns, *others.values()]
        known = [c for c in self._columns if c in key]
        kept = self._atom(self._relation, self._columns)
        differ = syntax.Disjunction(tuple(self._compared("!=", c, o) for c, o in others.items()), self._span)
        return [
            self._rule(self._atom(gone, other_row), kept, other, differ),
            *self._first(first, self._rows, known, self._columns),
            self._rule(turn, self._atom(first, self._columns)),
            self._rule(self._atom(after, pair), self._rows, other, self._greater(others)),
            *self._first(following, self._atom(after, pair), self._columns, pair),
            self._rule(
                self._atom(turn.relation, other_row), turn, self._atom(gone, self._columns), self._atom(following, pair)
            ),
        ]

    def _first(self, name: str, rows: Atom, known: Sequence[str], columns: Sequence[str]) -> list[syntax.Rule]:
        """Return rules of ``name`` that add to ``known`` one column after the other, each the minimum in ``rows``."""
        known = list(known)
        result: list[syntax.Rule] = []
        body = [rows]
        values = [c for c in columns if c not in known]
        for n, column in enumerate(values, 1):
            is_last = n == len(values)
            head = self._atom(
                name if is_last else added_name(name, f"chosen{n}"), columns if is_last else [*known, column]
            )
            minimum = syntax.HeadAggregate("MIN", (self._variable(column),), self._span, "MIN")
            args = tuple(minimum if a == self._variable(column) else a for a in head.args)
            result.append(self._rule(replace(head, args=args), *body))
            known.append(column)
            body = [rows, self._atom(head.relation, known)]
        return result

    def _greater(self, others: Mapping[str, str]) -> syntax.Literal_:
        """Return the condition that the other row is greater: by the first column that differs."""
        equal: list[syntax.Literal_] = []
        cases: list[syntax.Literal_] = []
        for column, other in others.items():
            cases.append(syntax.Conjunction((*equal, self._compared("<", column, other)), self._span))
            equal.append(self._compared("=", column, other))
        return syntax.Disjunction(tuple(cases), self._span)

    def _compared(self, op: Literal["=", "!=", "<"], left: str, right: str) -> syntax.Comparison:
        return syntax.Comparison(op, self._variable(left), self._variable(right), self._span)

    def _rule(self, head: Atom, *body: syntax.Literal_) -> syntax.Rule:
        text = f"choice-domain of {self._relation}"
        return syntax.Rule((head,), syntax.Conjunction(body, self._span), None, text, self._span)

    def _atom(self, relation: str, columns: Sequence[str]) -> Atom:
        return syntax.Atom(relation, tuple(map(self._variable, columns)), self._span)

    def _variable(self, column: str) -> syntax.Variable:
        return syntax.Variable(column, self._span)

    def _added(self, word: str, n: int) -> str:
        return added_name(self._relation, f"{word}{n + 1}")
