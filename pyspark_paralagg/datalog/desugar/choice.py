"""Reduce ``choice-domain`` to minima: of each key, the row with the least values stays, column by column.

    .decl advisor(s: symbol, p: symbol) choice-domain s     advisor(s, $MIN(p)) :- advisor@all(s, p).

Soufflé keeps the row that it derives first, which depends on the order of evaluation; any row is a valid choice. A
relation that reads itself, or that has several keys, needs that order, so it is refused.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.desugar.candidates import CODE, Candidates
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.places import Places
from pyspark_paralagg.program.names import added_name

if TYPE_CHECKING:
    from collections.abc import Collection

    from pyspark_paralagg.datalog.parse.syntax import Declaration, Term

_UNSUPPORTED = "PARALAGG_DATALOG_UNSUPPORTED"


def without_choices(text: syntax.Text, inputs: Collection[str] = ()) -> syntax.Text:
    """Return ``text`` without ``choice-domain``.

    Raise ``DatalogError`` ``PARALAGG_DATALOG_KEPT_ROWS`` for a key that is no column, and
    ``PARALAGG_DATALOG_UNSUPPORTED`` for a relation that recurses or has several keys.
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
        if len(keys) > 1:
            message = f"choice-domain with several keys is not supported: `{d.relation}` has {len(keys)}"
            raise places.error(_UNSUPPORTED, message, d.span, value=d.relation, hint=hint)
        if candidates.component():
            message = f"choice-domain is not supported in a recursion: `{d.relation}` reads itself"
            raise places.error(_UNSUPPORTED, message, d.span, value=d.relation, hint=hint)
        text = replace(text, clauses=candidates.clauses(_chosen(d, keys[0], candidates)))
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


def _chosen(declaration: Declaration, key: frozenset[str], candidates: Candidates) -> list[syntax.Clause]:
    """Return rules that add one column after the other, each the minimum for the key and the columns before it."""
    span, relation = declaration.span, declaration.relation
    columns = [a.name for a in declaration.attributes]
    variables = {c: syntax.Variable(c, span) for c in columns}
    all_rows = syntax.Atom(candidates.name, tuple(variables.values()), span)
    known = [c for c in columns if c in key]
    result: list[syntax.Clause] = []
    body: tuple[syntax.Literal_, ...] = (all_rows,)
    values = [c for c in columns if c not in key]
    for n, column in enumerate(values):
        is_last = n == len(values) - 1
        minimum = syntax.HeadAggregate("MIN", (variables[column],), span, "MIN")
        args: dict[str, Term | syntax.HeadAggregate] = {**{c: variables[c] for c in known}, column: minimum}
        name = relation if is_last else added_name(relation, f"chosen{n + 1}")
        order = columns if is_last else [*known, column]
        head = syntax.Atom(name, tuple(args[c] for c in order), span)
        text = f"choice-domain of {relation}"
        result.append(syntax.Rule((head,), syntax.Conjunction(body, span), None, text, span))
        known.append(column)
        body = (all_rows, syntax.Atom(name, tuple(variables[c] for c in known), span))
    return result
