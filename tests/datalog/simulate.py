"""A resolved text on simulated tasks: stratum by stratum, as ``strata`` does it on Spark, without Spark.

What needs nothing of its stratum is computed here, rule by rule, and is the base; each stratum is a Program of its own
with its recursive rules, which is compiled and whose Plan is interpreted.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from compile.interpret import run_plan

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

ROUNDS = 200
"""More than any fixture needs; a tolerance is reached late."""


def simulate(resolved: Resolved, given: Rows, tasks: int) -> Rows:
    """All derived relations of the text, columns in its order; ``given`` are rows from outside."""
    program = resolved.program
    sources = _sources(resolved, given)
    results: Rows = {}
    for names in strongly_connected(needs_of(program)):
        results |= _Stratum(program, names, sources, results).run(tasks)
    return {name: _as_written(resolved, name, results[name]) for name in results if "@" not in name}


def simulate_whole(resolved: Resolved, given: Rows, tasks: int) -> Rows:
    """The same by one Plan for the whole text, which an engine without Spark is given."""
    names = [r.name for r in resolved.program.relations if "@" not in r.name]
    found = run_plan(compile_program(requested_program(resolved, names)), _sources(resolved, given), tasks, ROUNDS)
    return {n: _as_written(resolved, n, [k + v for k, v in found[n].items()]) for n in names}


def _sources(resolved: Resolved, given: Rows) -> dict[int, list[Row]]:
    """The rows from outside and those of the text, each once."""
    return {n: list(dict.fromkeys([*given.get(s.relation, ()), *s.rows])) for n, s in enumerate(resolved.sources)}


def _as_written(resolved: Resolved, name: str, rows: list[Row]) -> list[Row]:
    place = {c.name: n for n, c in enumerate(resolved.program.relation(name).columns)}
    return [tuple(row[place[c]] for c in resolved.names(name)) for row in rows]


@lru_cache(maxsize=64)
def _compiled(program: Program) -> Plan:
    """The same for any number of tasks."""
    return compile_program(program)


class _Stratum:
    """One stratum as a Program whose inputs are the rows of lower ones."""

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
        own = replace(self._program, relations=relations, inputs=tuple(self._inputs), rules=rules, **options)
        found = run_plan(_compiled(own), self._rows, tasks)
        return {n: [k + v for k, v in found[n].items()] for n in self._names}

    def _recurses(self, rule: Rule) -> bool:
        return any(a.relation in self._names for a in rule.body if a.relation is not None)

    def _relation(self, of: Relation) -> Relation:
        rows = self._selected(self._program.input(of.base))
        for rule in self._program.rules:
            if rule.head == of.name and not self._recurses(rule):
                rows = rows + list(derive(rule, self._read))
        base = self._input(of.supplied, rows)
        if of.initial is None:
            return replace(of, base=base)
        source = self._program.input(of.initial)
        return replace(of, base=base, initial=self._input(of.supplied, self._selected(source)))

    def _selected(self, source: Input) -> list[Row]:
        rows = self._below[source.relation] if source.relation is not None else self._sources[source.source]
        values = [dict(zip((c.name for c in source.columns), row, strict=True)) for row in rows]
        return [tuple(evaluate(e, v) for e in source.exprs) for v in values]

    def _read(self, atom: Atom) -> list[Row]:
        if atom.relation is not None:
            return self._below[atom.relation]
        return self._selected(self._program.input(atom.input or 0))

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
    """The rows of a rule's head: atom by atom, each condition as soon as its variables are bound."""
    atoms = sorted(rule.body, key=lambda a: a.kind != "join")
    found: list[dict[str, Any]] = [{}]
    left = list(rule.conditions)
    seen: set[str] = set()
    for atom in atoms:
        names = [v for v in atom.variables if v is not None]
        seen |= set(names)
        ready = [c for c in left if columns(c) <= seen]
        left = [c for c in left if c not in ready]
        extended = [dict(zip(atom.variables, row, strict=True)) for row in rows(atom)]
        if atom.kind == "join":
            found = [m for b in found for e in extended if _holds(ready, m := {**b, **e})]
        else:
            is_semi = atom.kind == "semi"
            found = [b for b in found if any(_holds(ready, {**b, **e}) for e in extended) == is_semi]
            seen -= set(names)
    for binding in found:
        if _holds(left, binding):
            yield tuple(evaluate(e, binding) for e in rule.exprs)


def _holds(conditions: list[Expr], binding: dict[Any, Any]) -> bool:
    return all(evaluate(c, binding) is True for c in conditions)
