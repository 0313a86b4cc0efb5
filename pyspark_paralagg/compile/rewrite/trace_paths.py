"""Add the columns of ``ra.hops`` and ``ra.path`` to a Program, as a search of its own over the final rows.

    dist(v, $MIN(d)) :- dist(u, d1), edges(u, v, w), d = d1 + w
    dist_route(v, d, $MIN(h), u by h) :-
        dist_route(u, _, h1), dist(u, d1), edges(u, v, w), dist(v, d), d = d1 + w, h = h1 + 1

A rule instance is *tight* if it derives the final value of its head. The search starts at base rows that have the final
value and follows tight instances, so each row gets the fewest hops and the smallest of the parents that give them.
Whatever the weights are, parents cannot form a cycle, because each has one hop less. (Hops that the loop itself carried
would be wrong where values tie: under ``least(width, d)`` a wider way with more hops may replace one that is as good.)
Further keys of the parent follow, each in a stage of its own. All engines run the result as any other Program.
Where keys may be null, rows are joined by ``same_rows``: a rule for keys without nulls, and one for those with nulls.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.added import (
    check_is_finished,
    fresh_variable,
    is_equal,
    is_same,
    no_single_parent,
    reads,
    same_rows,
    with_relation,
)
from pyspark_paralagg.compile.rewrite.stratify import recursion_with
from pyspark_paralagg.program.expr import Call, Col, Lit
from pyspark_paralagg.program.program import Atom, Rule
from pyspark_paralagg.program.traced import HOPS_TYPE, traced

if TYPE_CHECKING:
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Program, Relation
    from pyspark_paralagg.program.traced import Traced

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


@dataclass(frozen=True)
class _Parent:
    """The row before, in a rule: the body that reads it, its keys, the head's hops, cases in which atoms agree."""

    body: tuple[Atom, ...]
    keys: tuple[Col, ...]
    hops: Expr
    same: list[tuple[Expr, ...]]


class _Tracer:
    """Traces one relation."""

    def __init__(self, program: Program, relation: Relation) -> None:
        self._program = program
        self._recursion = recursion_with(program, relation.name)
        self._relation = replace(relation, traces=())
        self._order = relation.traces[0].kind.order
        count = len(relation.supplied)
        written = [r for r in program.rules if r.head == relation.name]
        self._shown = {r.place: r.exprs[count:] for r in written}
        self._rules = [replace(r, exprs=r.exprs[:count]) for r in written]
        types = [e.type for e in written[0].exprs[count:]] if written else ()
        self._names: Traced = traced(relation, types)

    def run(self) -> Program:
        check_is_finished(self._program, self._relation, "PARALAGG_PATH", CHANGED_PARENTS)
        for rule in self._rules:
            self._check_parents(rule)
        program, name = self._program, self._relation.name
        relations = [self._relation if r.name == name else r for r in program.relations]
        rules = [*(r for r in program.rules if r.head != name), *self._rules]
        self._program = replace(program, relations=tuple(relations), rules=tuple(rules))
        first, *others = self._names.stages
        inputs = [i for i in (self._relation.base, self._relation.initial) if i is not None]
        starts = [rule for i in inputs for rule in self._start(i)]
        begin = [_copied(self._relation, first), *starts]  # a copy first: a row that no search finds has null hops
        searches = [rule for r in self._rules for rule in self._search(r, first)]
        self._program = with_relation(self._program, first, begin + searches)
        for before, stage in zip(self._names.stages, others, strict=False):
            recursive = [r for r in self._rules if self._reads(r)]
            rules = [_copied(before, stage), *(rule for r in recursive for rule in self._parent(r, before, stage))]
            self._program = with_relation(self._program, stage, rules)
        return self._program

    def _check_parents(self, rule: Rule) -> None:
        read = self._reads(rule)
        if len(read) > 1 or any(a.relation != self._relation.name or a.kind != "join" for a in read):
            shown = ", ".join(f"{a.relation} ({a.kind})" for a in read)
            raise no_single_parent(self._relation.name, rule.place, shown)

    def _reads(self, rule: Rule) -> list[Atom]:
        """Return the atoms of a rule that read relations of the same recursion."""
        return [a for a in reads(rule) if a.relation in self._recursion]

    def _start(self, input_id: int) -> list[Rule]:
        """Return the rules of base rows that have the final value."""
        stage, place = self._names.stages[0], f"base of {self._relation.name}"
        rows = self._program.input(input_id)
        variables = tuple(f"base_{c.name}" for c in self._relation.supplied)
        derived = tuple(Col(v, e.type) for v, e in zip(variables, rows.exprs, strict=True))
        rule = Rule(stage.name, derived, (Atom(variables, input=input_id),), place=place)
        return self._tight(rule, rule.body, (_NO_HOPS, *self._no_parents(stage)), stage)

    def _search(self, rule: Rule, stage: Relation) -> list[Rule]:
        """Return the rules of rows that follow in one hop, or that need no other row."""
        if not self._reads(rule):
            return self._tight(rule, rule.body, (_NO_HOPS, *self._no_parents(stage)), stage)
        parent = self._from(rule, stage)
        found = (parent.hops, *parent.keys[: len(self._names.parents[:1])])
        return [
            tight
            for same in parent.same
            for tight in self._tight(replace(rule, conditions=(*rule.conditions, *same)), parent.body, found, stage)
        ]

    def _parent(self, rule: Rule, before: Relation, stage: Relation) -> list[Rule]:
        """Return the rules that add the next key of the parent."""
        parent = self._from(rule, before)
        row = self._row(rule, before)
        columns = len(self._relation.columns)
        number = len(before.columns) - columns - 1
        known = row[columns:]
        found = (*parent.keys, *self._shown[rule.place])
        same = [is_same(r, e) for r, e in zip(known, (parent.hops, *found[:number]), strict=True)]
        new = found[number : len(stage.columns) - columns - 1]
        return [
            joined
            for agree in parent.same
            for joined in self._joined(rule, parent.body, before, row, [*agree, *same], stage, (*known, *new))
        ]

    def _tight(self, rule: Rule, body: tuple[Atom, ...], found: tuple[Expr, ...], stage: Relation) -> list[Rule]:
        return self._joined(rule, body, self._relation, self._row(rule, self._relation), [], stage, found)

    def _joined(  # noqa: PLR0913, PLR0917 - all parts of a rule
        self,
        rule: Rule,
        body: tuple[Atom, ...],
        rows: Relation,
        row: tuple[Col, ...],
        same: list[Expr],
        stage: Relation,
        found: tuple[Expr, ...],
    ) -> list[Rule]:
        """Return the rules with the row that one derives from ``rows``, and ``found`` behind its columns."""
        columns, keys = self._relation.columns, len(self._relation.keys)
        derived = dict(zip((c.name for c in self._relation.supplied), rule.exprs, strict=True))
        values = zip(row[keys:], columns[keys:], strict=False)
        equal = [is_equal(r, derived[c.name]) for r, c in values if c.name == self._order]
        result = replace(
            rule,
            head=stage.name,
            exprs=(*row[: len(columns)], *found),
            body=(*body, Atom(tuple(c.name for c in row), rows.name)),
            place=f"{rule.place}, {stage.name}",
        )
        own = same_rows(row[:keys], [derived[c.name] for c in columns[:keys]], rule.conditions)
        return [replace(result, conditions=(*rule.conditions, *agree, *equal, *same)) for agree in own]

    def _from(self, rule: Rule, stage: Relation) -> _Parent:
        """Return what reads the parent's row of ``stage`` beside its row of the relation.

        Values are read from the relation itself: it is final, so they may decide what is joined.
        """
        reader = self._reads(rule)[0]
        count = len(self._relation.keys)
        named = zip(reader.variables[:count], self._relation.keys, strict=True)
        keys = tuple(v or fresh_variable(rule, f"from_{k.name}") for v, k in named)
        seen = replace(reader, variables=(*keys, *reader.variables[count:]))
        hops = fresh_variable(rule, "hops")
        found = tuple(fresh_variable(rule, f"found_{k.name}") for k in self._relation.keys)
        values = (None,) * len(self._relation.dependents)
        others = (None,) * (len(stage.columns) - len(self._relation.columns) - 1)
        known = Atom((*found, *values, hops, *others), stage.name)
        types = [k.type for k in self._relation.keys]
        of_stage, of_row = (tuple(Col(v, t) for v, t in zip(names, types, strict=True)) for names in (found, keys))
        return _Parent(
            body=(known, *(seen if a is reader else a for a in rule.body)),
            keys=of_row,
            hops=Call("Add", (Col(hops, HOPS_TYPE, nullable=False), Lit(1, HOPS_TYPE)), HOPS_TYPE, nullable=False),
            same=same_rows(of_stage, of_row, rule.conditions),
        )

    def _row(self, rule: Rule, rows: Relation) -> tuple[Col, ...]:
        return tuple(Col(fresh_variable(rule, f"of_{c.name}"), c.type) for c in rows.columns)

    def _no_parents(self, stage: Relation) -> tuple[Expr, ...]:
        return tuple(Lit(None, c.type) for c in stage.columns[len(self._relation.columns) + 1 :])


def _copied(before: Relation, stage: Relation) -> Rule:
    """Return the rule that takes over all rows, with nulls for what ``stage`` adds."""
    row = tuple(Col(c.name, c.type) for c in before.columns)
    nulls = tuple(Lit(None, c.type) for c in stage.columns[len(before.columns) :])
    return Rule(stage.name, (*row, *nulls), (Atom(tuple(c.name for c in row), before.name),), place=stage.name)
