"""Add the columns of ``ra.hops`` and ``ra.path`` to a Program, as a search of its own over the final rows.

    dist(v, $MIN(d + w)) :- dist(u, d), edges(u, v, w)
    dist_route(v, $MIN(d), h by d, p by h) :- dist(v, d), h = null, p = null
    dist_route(v, $MIN(d), h by d, p by h) :- start(v, d), h = 0, p = null
    dist_route(v, $MIN(d + w), h + 1 by d, u by h) :- dist_route(u, d, h, _), edges(u, v, w), h IS NOT NULL

A rule instance is *tight* if it derives the final value of its head. The search begins with all rows and their final
values, and gives hops to the base rows that have them. From there on the rules are those of the recursion. They derive
no better value, since the rows are a fixpoint; a worse one loses, so only tight instances matter. Of these the fewest
hops win, then the smallest parent. Whatever the weights are, parents cannot form a cycle: each has one hop less. (Hops
that the loop itself carried would be wrong where values tie: under ``least(width, d)`` a wider way with more hops may
replace one that is as good.) All engines run the result as any other Program.

Without values each row that the rules derive is one, so the search does not need the rows, unless a limit or initial
rows make them others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.added import (
    check_is_finished,
    fresh_variable,
    no_single_parent,
    reads,
    same_rows,
)
from pyspark_paralagg.compile.rewrite.stratify import recursion_with
from pyspark_paralagg.program.expr import Call, Col, Lit
from pyspark_paralagg.program.program import Atom, Input, Rule
from pyspark_paralagg.program.traced import HOPS_TYPE, traced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Program, Relation

CHANGED_PARENTS = "whose parents may have changed since, so they have no path"
_NO_HOPS = Lit(0, HOPS_TYPE)


def trace_paths(program: Program) -> Program:
    """Return the program with further relations that compute the traces of each relation.

    Raises ``UsageError`` ``PARALAGG_PATH`` for limits that return unfinished rows, and for a rule whose rows have no
    single parent.
    """
    for relation in program.relations:
        if relation.traces:
            program = _Tracer(program, relation).run()
    return program


class _Tracer:
    """Traces one relation."""

    def __init__(self, program: Program, relation: Relation) -> None:
        self._program = program
        self._recursion = recursion_with(program, relation.name)
        self._relation = replace(relation, traces=())
        self._order = relation.traces[0].kind.order
        self._rules = [r for r in program.rules if r.head == relation.name]
        types = [e.type for e in self._rules[0].exprs[len(relation.supplied) :]] if self._rules else ()
        self._stage = traced(relation, types).result
        is_limited = program.limit(self._recursion)[0] is not None or program.row_limit(self._recursion) is not None
        self._is_free = self._order is None and relation.initial is None and not is_limited

    def run(self) -> Program:
        relation = self._relation
        check_is_finished(self._program, relation, "PARALAGG_PATH", CHANGED_PARENTS)
        for rule in self._rules:
            self._check_parents(rule)
        inputs = [self._program.input(i) for i in (relation.base, relation.initial) if i is not None]
        if self._is_free:
            searches, rows = [], self._with_hops(inputs[0])
        else:
            searches, rows = [s for i in inputs for s in self._existing(self._start(i))], self._all_rows()
        searches += [s for r in self._rules for s in self._existing(self._search(r))]
        program, base = self._program.with_new_input(rows)
        stage = replace(self._stage, base=base, initial=None)
        count = len(relation.supplied)
        written = [replace(r, exprs=r.exprs[:count]) if r.head == relation.name else r for r in program.rules]
        relations = [relation if r.name == relation.name else r for r in program.relations]
        return replace(program, relations=(*relations, stage), rules=(*written, *searches))

    def _check_parents(self, rule: Rule) -> None:
        read = self._reads(rule)
        if len(read) > 1 or any(a.relation != self._relation.name or a.kind != "join" for a in read):
            shown = ", ".join(f"{a.relation} ({a.kind})" for a in read)
            raise no_single_parent(self._relation.name, rule.place, shown)

    def _reads(self, rule: Rule) -> list[Atom]:
        """Return the atoms of a rule that read relations of the same recursion."""
        return [a for a in reads(rule) if a.relation in self._recursion]

    def _with_hops(self, rows: Input) -> Input:
        """Return base rows, which have no values, as those of the search."""
        return replace(rows, exprs=(*rows.exprs, Lit(0, HOPS_TYPE), *self._no_parents()))

    def _all_rows(self) -> Input:
        """Return the final rows, none of which has hops."""
        columns = self._relation.columns
        found = (Lit(None, HOPS_TYPE), *self._no_parents())
        exprs = (*(Col(c.name, c.type, c.nullable) for c in columns), *found)
        return Input(-1, -1, columns, exprs, relation=self._relation.name)

    def _start(self, rows: Input) -> Rule:
        variables = tuple(f"base_{c.name}" for c in self._relation.supplied)
        derived = [Col(v, e.type) for v, e in zip(variables, rows.exprs, strict=True)]
        place = f"base of {self._relation.name}"
        return Rule(self._stage.name, self._row(derived, self._base()), (Atom(variables, input=rows.id),), place=place)

    def _search(self, rule: Rule) -> Rule:
        """Return the rule of rows that follow in one hop, or that need no other row."""
        read = self._reads(rule)
        if not read:
            return replace(rule, head=self._stage.name, exprs=self._row(rule.exprs, self._base()))
        reader, keys = read[0], self._relation.keys
        names = [v or fresh_variable(rule, f"from_{k.name}") for v, k in zip(reader.variables, keys, strict=False)]
        parent = [Col(v, k.type) for v, k in zip(names, keys, strict=True)]
        hops = Col(fresh_variable(rule, "hops"), HOPS_TYPE)
        others = (None,) * (len(self._stage.columns) - len(self._relation.columns) - 1)
        variables = (*names, *reader.variables[len(keys) :], hops.name, *others)
        more = Call("Add", (hops, Lit(1, HOPS_TYPE)), HOPS_TYPE)
        shown = rule.exprs[len(self._relation.supplied) :]
        found = (more, *(parent if len(others) > len(shown) else ()), *shown)
        return replace(
            rule,
            head=self._stage.name,
            exprs=self._row(rule.exprs, found),
            body=tuple(Atom(variables, self._stage.name) if a is reader else a for a in rule.body),
            conditions=(*rule.conditions, Call("IsNotNull", (hops,), "boolean", nullable=False)),
        )

    def _row(self, derived: Sequence[Expr], found: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the keys and the deciding value that a rule derives, with ``found``: the rows have other values."""
        by_name = dict(zip((c.name for c in self._relation.supplied), derived, strict=False))
        values = (c for c in self._relation.columns[len(self._relation.keys) :])
        decided = (by_name[c.name] if c.name == self._order else Lit(None, c.type) for c in values)
        return (*(by_name[k.name] for k in self._relation.keys), *decided, *found)

    def _base(self) -> tuple[Expr, ...]:
        return Lit(0, HOPS_TYPE), *self._no_parents()

    def _no_parents(self) -> tuple[Expr, ...]:
        return tuple(Lit(None, c.type) for c in self._stage.columns[len(self._relation.columns) + 1 :])

    def _existing(self, rule: Rule) -> Iterator[Rule]:
        """Yield the rule for the rows that exist: by value only those win; of a limited set it derives others, too."""
        if self._order is not None or self._is_free:
            yield rule
            return
        names = tuple(fresh_variable(rule, f"of_{k.name}") for k in self._relation.keys)
        row = [Col(v, k.type) for v, k in zip(names, self._relation.keys, strict=True)]
        for agree in same_rows(row, rule.exprs[: len(row)], rule.conditions):
            body = (*rule.body, Atom(names, self._relation.name))
            yield replace(rule, body=body, conditions=(*rule.conditions, *agree))
