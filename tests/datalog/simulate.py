"""Run a resolved text on simulated tasks without Spark, stratum by stratum, as the Spark backend does.

Rules that do not read their stratum are evaluated in Python and give the base. Each stratum becomes a Program of its
recursive rules, which is compiled, and whose Plan is interpreted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from compile.interpret import run_plan
from datalog.interpreter import MAX_ROUNDS

from pyspark_paralagg.compile import compile_program
from pyspark_paralagg.compile.rewrite.evaluate import evaluate
from pyspark_paralagg.compile.rewrite.stratify import needs_of, strongly_connected
from pyspark_paralagg.datalog.lower.requested import requested_program
from pyspark_paralagg.program.expr import Col, Expr, columns
from pyspark_paralagg.program.program import Atom, Input, Program, Relation, Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark_paralagg.datalog.lower.resolved import Resolved
    from pyspark_paralagg.plan.plan import Plan

Row = tuple[Any, ...]
Rows = dict[str, list[Row]]


def simulate(resolved: Resolved, facts: Rows, tasks: int) -> Rows:
    """Return all derived relations of the text, columns in its order. ``facts`` are the input rows."""
    program = resolved.program
    sources = _sources(resolved, facts)
    results: Rows = {}
    for names in strongly_connected(needs_of(program)):
        results |= _Stratum(program, names, sources, results).run(tasks)
    return {name: _in_text_order(resolved, name, results[name]) for name in results if "@" not in name}


def simulate_whole(resolved: Resolved, facts: Rows, tasks: int) -> Rows:
    """Return the same by one Plan for the whole text, as for an engine without Spark."""
    names = [r.name for r in resolved.program.relations if "@" not in r.name]
    results = run_plan(
        compile_program(requested_program(resolved, names)), _sources(resolved, facts), tasks, MAX_ROUNDS
    )
    return {n: _in_text_order(resolved, n, [k + v for k, v in results[n].items()]) for n in names}


def _sources(resolved: Resolved, facts: Rows) -> dict[int, list[Row]]:
    """Return the distinct rows of the inputs and of the text."""
    return {n: list(dict.fromkeys([*facts.get(s.relation, ()), *s.rows])) for n, s in enumerate(resolved.sources)}


def _in_text_order(resolved: Resolved, name: str, rows: list[Row]) -> list[Row]:
    place = {c.name: n for n, c in enumerate(resolved.program.relation(name).columns)}
    return [tuple(row[place[c]] for c in resolved.names(name)) for row in rows]


@lru_cache(maxsize=64)
def _compile(program: Program) -> Plan:
    """Return the Plan, which is the same for any number of tasks."""
    return compile_program(program)


class _Stratum:
    """One stratum as a Program whose inputs are the rows of lower strata."""

    def __init__(self, program: Program, names: tuple[str, ...], sources: dict[int, list[Row]], below: Rows) -> None:
        self._program = program
        self._names = names
        self._sources = sources
        self._below = below
        self._inputs: list[Input] = []
        self._rows: dict[int, list[Row]] = {}

    def run(self, tasks: int) -> Rows:
        relations = tuple(self._relation(self._program.relation(n)) for n in self._names)
        rules = tuple(
            replace(r, body=tuple(self._atom(a) for a in r.body))
            for r in self._program.rules
            if r.head in self._names and self._recurses(r)
        )
        iterations, on_limit, tolerance = self._program.limit(self._names)
        options = {"max_iterations": iterations, "on_limit": on_limit, "tolerance": tolerance, "limits": ()}
        program = replace(self._program, relations=relations, inputs=tuple(self._inputs), rules=rules, **options)
        results = run_plan(_compile(program), self._rows, tasks, MAX_ROUNDS)
        return {n: [k + v for k, v in results[n].items()] for n in self._names}

    def _recurses(self, rule: Rule) -> bool:
        return any(a.relation in self._names for a in rule.body if a.relation is not None)

    def _relation(self, relation: Relation) -> Relation:
        rows = self._select(self._program.input(relation.base))
        for rule in self._program.rules:
            if rule.head == relation.name and not self._recurses(rule):
                rows = rows + list(derive(rule, self._read))
        base = self._input(relation.supplied, rows)
        if relation.initial is None:
            return replace(relation, base=base)
        source = self._program.input(relation.initial)
        return replace(relation, base=base, initial=self._input(relation.supplied, self._select(source)))

    def _select(self, source: Input) -> list[Row]:
        rows = self._below[source.relation] if source.relation is not None else self._sources[source.source]
        values = [dict(zip((c.name for c in source.columns), row, strict=True)) for row in rows]
        return [tuple(evaluate(e, v) for e in source.exprs) for v in values]

    def _read(self, atom: Atom) -> list[Row]:
        if atom.relation is not None:
            return self._below[atom.relation]
        return self._select(self._program.input(atom.input or 0))

    def _atom(self, atom: Atom) -> Atom:
        if atom.relation in self._names:
            return atom
        if atom.relation is not None:
            columns = self._program.relation(atom.relation).columns
        else:
            columns = self._program.input(atom.input or 0).columns
        return replace(atom, relation=None, input=self._input(columns, self._read(atom)))

    def _input(self, columns: Any, rows: list[Row]) -> int:  # noqa: ANN401 - a tuple of Column
        number = len(self._inputs)
        exprs = tuple(Col(c.name, c.type, c.nullable) for c in columns)
        self._inputs.append(Input(number, number, tuple(columns), exprs))
        self._rows[number] = rows
        return number


def derive(rule: Rule, rows: Callable[[Atom], list[Row]]) -> Iterator[Row]:
    """Yield the rows of a rule's head. Join atom by atom; check each condition as soon as its variables are bound."""
    atoms = sorted(rule.body, key=lambda a: a.kind != "join")
    bindings: list[dict[str, Any]] = [{}]
    pending = list(rule.conditions)
    bound: set[str] = set()
    for atom in atoms:
        names = [v for v in atom.variables if v is not None]
        bound |= set(names)
        ready = [c for c in pending if columns(c) <= bound]
        pending = [c for c in pending if c not in ready]
        extended = [dict(zip(atom.variables, row, strict=True)) for row in rows(atom)]
        if atom.kind == "join":
            bindings = [m for b in bindings for e in extended if _holds(ready, m := {**b, **e})]
        else:
            is_semi = atom.kind == "semi"
            bindings = [b for b in bindings if any(_holds(ready, {**b, **e}) for e in extended) == is_semi]
            bound -= set(names)
    for binding in bindings:
        if _holds(pending, binding):
            yield tuple(evaluate(e, binding) for e in rule.exprs)


def _holds(conditions: list[Expr], binding: dict[Any, Any]) -> bool:
    return all(evaluate(c, binding) is True for c in conditions)
