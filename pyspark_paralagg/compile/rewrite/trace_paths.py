"""Add the columns of ``ra.hops`` and ``ra.path`` to a Program, by a search over the final rows or in the recursion.

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

The recursion itself finds hops and parents where it cannot be wrong: without values, and where each rule adds to the
deciding value a number that no value decides. A better value then stays better, and an equal one equal. The relation
without its traces is a part of the Program for who reads it, or asks about its rows::

    dist_route(v, $MIN(d + w), h + 1 by d, u by h) :- dist_route(u, d, h, _), edges(u, v, w)

Limits and initial rows make a set smaller or larger than its rules do, so it is searched, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.added import (
    check_is_finished,
    fresh_variable,
    no_single_parent,
    reads,
    rules_of,
    same_rows,
)
from pyspark_paralagg.compile.rewrite.stratify import recursion_with
from pyspark_paralagg.program.expr import Call, Col, Lit
from pyspark_paralagg.program.expr import columns as columns_of
from pyspark_paralagg.program.program import Atom, Dependent, Input, Rule
from pyspark_paralagg.program.traced import HOPS_TYPE, traced

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Program, Relation

CHANGED_PARENTS = "whose parents may have changed since, so they have no path"


def trace_paths(program: Program) -> Program:
    """Return the program with further relations that compute the traces of each relation.

    Raises ``UsageError`` ``PARALAGG_PATH`` for limits that return unfinished rows, and for a rule whose rows have no
    single parent.
    """
    for relation in program.relations:
        if relation.traces:
            program = _Tracer(program, relation).run()
    return program


_WHOLE = ("tinyint", "smallint", "int", "bigint")
"""Sums of other numbers are rounded, so unequal values may become equal."""


def _copy(d: Dependent) -> Dependent:
    """Return a column that takes over a final value: whatever it was aggregated with, all its rows are equal."""
    return Dependent(d.column, d.aggregator if d.column.type == "boolean" else "min")


class _Tracer:
    """Traces one relation."""

    def __init__(self, program: Program, relation: Relation) -> None:
        self._program = program
        self._recursion = recursion_with(program, relation.name)
        self._relation = replace(relation, traces=())
        self._order = relation.traces[0].kind.order
        self._rules = [r for r in program.rules if r.head == relation.name]
        types = [e.type for e in self._rules[0].exprs[len(relation.supplied) :]] if self._rules else ()
        check_is_finished(program, self._relation, "PARALAGG_PATH", CHANGED_PARENTS)
        for rule in self._rules:
            self._check_parents(rule)
        iterations, _, tolerance = program.limit(self._recursion)
        is_limited = iterations is not None or tolerance is not None or program.row_limit(self._recursion) is not None
        is_plain = relation.initial is None and program.mode != "iterate" and not is_limited
        self._is_own = is_plain and (self._order is None or all(map(self._adds, self._rules)))
        stage = traced(relation, types).result
        copied = tuple(d if d.order or d.column.name == self._order else _copy(d) for d in stage.dependents)
        self._stage = replace(stage, follows=None) if self._is_own else replace(stage, dependents=copied)

    def run(self) -> Program:
        name = self._relation.name
        derived = self._rules if self._is_own else rules_of(self._program, self._relation)
        searches = [s for rule in map(self._search, derived) for s in self._existing(rule)]
        base = self._program.input(self._relation.base)
        program, base_id = self._program.with_new_input(self._with_hops(base) if self._is_own else self._all_rows())
        stage = replace(self._stage, base=base_id, initial=None)
        others = [r for r in program.rules if r.head != name]
        written = [replace(r, exprs=r.exprs[: len(self._relation.supplied)]) for r in self._rules]
        relations = [*(self._relation if r.name == name else r for r in program.relations), stage]
        rules = (*others, *written, *searches)
        notes = (*program.notes, self._note())
        return replace(program, relations=tuple(relations), rules=rules, notes=notes)

    def _note(self) -> str:
        name, how = self._relation.name, "a search follows the recursion, since unequal values may lead to equal ones"
        if self._is_own:
            how = f"found by the recursion itself; {name} without them is computed only for who reads it"
        return f"hops and parents of {name}: {how}"

    def _check_parents(self, rule: Rule) -> None:
        read = self._reads(rule)
        if len(read) > 1 or any(a.relation != self._relation.name or a.kind != "join" for a in read):
            shown = ", ".join(f"{a.relation} ({a.kind})" for a in read)
            raise no_single_parent(self._relation.name, rule.place, shown)

    def _reads(self, rule: Rule) -> list[Atom]:
        """Return the atoms of a rule that read relations of the same recursion."""
        return [a for a in reads(rule) if a.relation in self._recursion]

    def _adds(self, rule: Rule) -> bool:
        """Return whether ``rule`` copies the deciding value, or adds to it a number that no value decides."""
        read = self._reads(rule)
        if not read:
            return True
        columns, keys, variables = self._relation.columns, len(self._relation.keys), read[0].variables
        own = next(v for v, c in zip(variables, columns, strict=True) if c.name == self._order)
        moving = {v for v in variables[keys:] if v is not None}
        match dict(zip((c.name for c in self._relation.supplied), rule.exprs, strict=False))[str(self._order)]:
            case Col(name):
                return name == own
            case Call("Add" | "Subtract" as sign, (first, second), type) if type in _WHOLE:
                pairs = [(first, second), (second, first)] if sign == "Add" else [(first, second)]
                return any(isinstance(a, Col) and a.name == own and not columns_of(b) & moving for a, b in pairs)
        return False

    def _with_hops(self, rows: Input) -> Input:
        """Return base rows with their hops."""
        return replace(rows, exprs=(*rows.exprs, *self._base()))

    def _all_rows(self) -> Input:
        """Return the final rows, none of which has hops."""
        columns = self._relation.columns
        found = (Lit(None, HOPS_TYPE), *self._no_parents())
        exprs = (*(Col(c.name, c.type, c.nullable) for c in columns), *found)
        return Input(-1, -1, columns, exprs, relation=self._relation.name)

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
        is_found = () if self._is_own else (Call("IsNotNull", (hops,), "boolean", nullable=False),)
        return replace(
            rule,
            head=self._stage.name,
            exprs=self._row(rule.exprs, found),
            body=tuple(Atom(variables, self._stage.name) if a is reader else a for a in rule.body),
            conditions=(*rule.conditions, *is_found),
        )

    def _row(self, derived: Sequence[Expr], found: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return the keys and the deciding value that a rule derives, with ``found``: the rows have other values."""
        if self._is_own:
            return (*derived[: len(self._relation.supplied)], *found)
        by_name = dict(zip((c.name for c in self._relation.supplied), derived, strict=False))
        values = (c for c in self._relation.columns[len(self._relation.keys) :])
        decided = (by_name[c.name] if c.name == self._order else Lit(None, c.type) for c in values)
        return (*(by_name[k.name] for k in self._relation.keys), *decided, *found)

    def _base(self) -> tuple[Expr, ...]:
        """Return hops and parents of a base row."""
        return Lit(0, HOPS_TYPE), *self._no_parents()

    def _no_parents(self) -> tuple[Expr, ...]:
        return tuple(Lit(None, c.type) for c in self._stage.columns[len(self._relation.columns) + 1 :])

    def _existing(self, rule: Rule) -> Iterator[Rule]:
        """Yield the rule for the rows that exist: by value only those win; of a limited set it derives others, too."""
        if self._order is not None or self._is_own:
            yield rule
            return
        names = tuple(fresh_variable(rule, f"of_{k.name}") for k in self._relation.keys)
        row = [Col(v, k.type) for v, k in zip(names, self._relation.keys, strict=True)]
        for agree in same_rows(row, rule.exprs[: len(row)], rule.conditions):
            body = (*rule.body, Atom(names, self._relation.name))
            yield replace(rule, body=body, conditions=(*rule.conditions, *agree))
