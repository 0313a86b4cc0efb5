"""Two tiny executors, written for clearness: the meaning of a Program, and a Plan on n simulated tasks.

The first is docs/design.md, "Definition", to the letter. The second keeps rows where the Plan says and looks nowhere
else, so a probe that is not local loses rows, and a row that is produced twice shows under a sum.
"""
# ruff: noqa: ANN401  (values of any type)

from __future__ import annotations

import itertools
import math
import zlib
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.compile.rewrite.evaluate import evaluate
from pyspark_paralagg.plan.plan import Filter, Plan, PlannedRelation, PlannedRule, Stratum
from pyspark_paralagg.program.expr import columns
from pyspark_paralagg.program.program import Dependent, Input, Program, Relation, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Row = tuple[Any, ...]
State = dict[Row, Row]
Sources = dict[int, list[Row]]


def rows_of(source: Input, sources: Sources, results: dict[str, State]) -> list[Row]:
    rows = [k + v for k, v in results[source.relation].items()] if source.relation else sources[source.source]
    out = []
    for row in rows:
        values = dict(zip((c.name for c in source.columns), row, strict=True))
        if all(evaluate(f, values) is True for f in source.filters):
            out.append(tuple(evaluate(e, values) for e in source.exprs))
    return out


def h_index(total: int, values: Iterable[int]) -> int:
    """The greatest h that at least h of ``total`` witnesses hold: those with a lower value do not, unnamed ones do."""
    return max(h for h in range(max(0, total) + 1) if h == 0 or total - sum(v < h for v in values) >= h)


def aggregate(dependents: tuple[Dependent, ...], key_count: int, rows: Iterable[Row]) -> State:
    groups: dict[Row, list[Row]] = {}
    for row in rows:
        groups.setdefault(row[:key_count], []).append(row[key_count:])
    return {k: tuple(_column(dependents, j, vs) for j in range(len(dependents))) for k, vs in groups.items()}


def _column(dependents: tuple[Dependent, ...], j: int, rows: list[Row]) -> Any:
    how = dependents[j].aggregator
    if how in ("min_by", "max_by"):
        order = next(n for n, d in enumerate(dependents) if d.column.name == dependents[j].order)
        present = [r for r in rows if r[order] is not None]
        best = (min if how == "min_by" else max)((r[order] for r in present), default=None)
        return min((r[j] for r in present if r[order] == best and r[j] is not None), default=None)
    values = [r[j] for r in rows if r[j] is not None]
    if how == "count":
        return sum(values) + sum(r[j] is None for r in rows)
    if not values:
        return None
    if how in ("bit_or", "bit_and"):
        total = values[0]
        for v in values:
            total = total | v if how == "bit_or" else total & v
        return total
    if how == "gcd":
        return math.gcd(*values)
    return {"min": min, "all": min, "max": max, "any": max, "sum": sum}[how](values)


def run_program(program: Program, sources: Sources, rounds: int = 100) -> dict[str, State]:
    """R(i+1) = agg(C + F(R(i))) of the whole program at once, strata or not; all relations of the program's text."""
    base = {r.name: rows_of(program.input(r.base), sources, {}) for r in program.relations}
    state = {}
    for r in program.relations:
        start = base[r.name] if r.initial is None else rows_of(program.input(r.initial), sources, {})
        state[r.name] = aggregate(r.dependents, len(r.keys), start)
    for _ in range(rounds):
        new = {}
        for r in program.relations:
            derived = [
                row for rule in program.rules if rule.head == r.name for row in _derive(rule, program, sources, state)
            ]
            new[r.name] = aggregate(r.dependents, len(r.keys), base[r.name] + derived)
        if new == state:
            break
        state = new
    return state


def _derive(rule: Rule, program: Program, sources: Sources, state: dict[str, State]) -> Iterator[Row]:
    def rows(n: int) -> list[Row]:
        atom = rule.body[n]
        if atom.relation is not None:
            return [k + v for k, v in state[atom.relation].items()]
        return rows_of(program.input(atom.input or 0), sources, state)

    joins = [n for n, a in enumerate(rule.body) if a.kind == "join"]
    tests = [n for n, a in enumerate(rule.body) if a.kind != "join"]
    for chosen in itertools.product(*(rows(n) for n in joins)):
        values: dict[str, Any] = {}
        for n, row in zip(joins, chosen, strict=True):
            values |= {v: x for v, x in zip(rule.body[n].variables, row, strict=True) if v is not None}
        if not all(evaluate(c, values) is True for c in rule.conditions if _names(c) <= set(values)):
            continue
        if all(_exists(rule, n, rows(n), values, tests) == (rule.body[n].kind == "semi") for n in tests):
            yield tuple(evaluate(e, values) for e in rule.exprs)


def _exists(rule: Rule, n: int, rows: list[Row], values: dict[str, Any], tests: list[int]) -> bool:
    others = {v for m in tests if m != n for v in rule.body[m].variables}
    for row in rows:
        both = values | {v: x for v, x in zip(rule.body[n].variables, row, strict=True) if v is not None}
        if all(evaluate(c, both) is True for c in rule.conditions if not _names(c) & others):
            return True
    return False


def _names(expr: Any) -> frozenset[str]:
    return columns(expr)


def run_plan(plan: Plan, sources: Sources, tasks: int, rounds: int = 100) -> dict[str, State]:
    """All strata in order, on ``tasks`` simulated tasks."""
    results: dict[str, State] = {}
    for stratum in plan.strata:
        results |= _Simulation(plan, stratum, sources, results, tasks).run(rounds)
    return results


def owner(values: Iterable[Any], tasks: int) -> int:
    values = tuple(values)
    return zlib.crc32(repr(values).encode()) % tasks if values else 0


def _value(state: State, key: Row, column: int) -> Any:
    return state[key][column] if key in state else 0


class _Simulation:
    def __init__(self, plan: Plan, stratum: Stratum, sources: Sources, results: dict[str, State], tasks: int) -> None:
        self.stratum, self.tasks = stratum, tasks
        used = {i.input for i in stratum.static_indexes} | {i for r in stratum.relations for i in (r.base, r.initial)}
        inputs = {i.id: rows_of(i, sources, results) for i in plan.inputs if i.id in used}
        self.relations: dict[str, PlannedRelation] = {r.name: r for r in stratum.relations}
        self.base = {r.name: inputs[r.base] for r in stratum.relations}
        self.static = {i.id: inputs[i.input] for i in stratum.static_indexes}
        start = {r.name: inputs[r.base if r.initial is None else r.initial] for r in stratum.relations}
        self.state = self.viewed({n: self.aggregated(n, rows) for n, rows in start.items()})
        self.delta = dict(self.state)

    def aggregated(self, name: str, rows: Iterable[Row]) -> State:
        r = self.relations[name]
        return {} if any(d.view for d in r.dependents) else aggregate(r.dependents, len(r.keys), rows)

    def viewed(self, state: dict[str, State]) -> dict[str, State]:
        """``state`` with the relations that no rule writes: their columns follow others of the stratum."""
        for r in self.stratum.relations:
            keys = {k[: len(r.keys)] for d in r.dependents if d.view for k in state[d.view.relation]}
            if any(d.view for d in r.dependents):
                state[r.name] = {k: tuple(self.view(d, k, state) for d in r.dependents) for k in keys}
        return state

    def view(self, d: Dependent, key: Row, state: dict[str, State]) -> Any:
        assert d.view is not None
        source = self.relations[d.view.relation]
        rows = {k[len(key) :]: v for k, v in state[source.name].items() if k[: len(key)] == key}
        if d.aggregator == "mcount":
            return sum(None not in witness for witness in rows)
        position = next((n for n, s in enumerate(source.dependents) if s.column.name == d.view.column), 0)
        values = [v[position] for witness, v in rows.items() if None not in witness and v[position] is not None]
        if d.view.total is not None:
            at = [s.column.name for s in source.dependents].index(d.view.total)
            return h_index(min(v[at] for v in rows.values()), values)
        return sum(max(0, v) for v in values) if d.aggregator == "msum" else values[0]

    def run(self, rounds: int) -> dict[str, State]:
        limit = self.stratum.max_iterations or rounds
        for _ in range(limit):
            emitted: dict[str, list[Row]] = {n: [] for n in self.relations}
            for rule in self.stratum.rules:
                for task in range(self.tasks):
                    emitted[rule.head] += self.run_rule(rule, task)
            before = self.state
            if not self.advance(emitted):
                break
            if self.stratum.tolerance is not None and self.difference(before) < self.stratum.tolerance:
                break
        return self.state

    def difference(self, before: dict[str, State]) -> float:
        """Return the sum of |delta| over keys and summed columns; in a relation without any a change is infinite."""
        total = 0.0
        for n, r in self.relations.items():
            old, new = before[n], self.state[n]
            sums = [j for j, d in enumerate(r.dependents) if d.aggregator in ("sum", "count")]
            if not sums and old != new:
                return math.inf
            keys = old.keys() | new.keys()
            total += sum(abs(_value(new, key, j) - _value(old, key, j)) for j in sums for key in keys)
        return total

    def advance(self, emitted: dict[str, list[Row]]) -> bool:
        if self.stratum.relation_class == "iterated":
            new = {n: self.aggregated(n, self.base[n] + rows) for n, rows in emitted.items()}
            self.delta = self.viewed(new)
        elif self.stratum.relation_class == "lattice":
            new = {
                n: self.aggregated(n, [k + v for k, v in self.state[n].items()] + emitted[n]) for n in self.relations
            }
            new = self.viewed(new)
            self.delta = {
                n: {k: v for k, v in s.items() if self.state[n].get(k) != v or k not in self.state[n]}
                for n, s in new.items()
            }
        else:
            self.delta = {n: self.aggregated(n, rows) for n, rows in emitted.items()}
            new = {
                n: self.aggregated(n, [k + v for s in (self.state[n], self.delta[n]) for k, v in s.items()])
                for n in self.relations
            }
        has_changed = new != self.state
        self.state = new
        return has_changed

    def run_rule(self, rule: PlannedRule, task: int) -> list[Row]:
        relation, driver = self.relations[rule.driver.relation], rule.driver
        rows = self.delta[driver.relation] if driver.version == "delta" else self.state[driver.relation]
        out: list[Row] = []
        for key, value in rows.items():
            if driver.index is None:
                is_here = owner((key[p] for p in relation.distribute_by), self.tasks) == task
            else:
                is_here = self.index_is_here(driver.index, key, task)
            if is_here:
                bound = {b: v for b, v in zip(driver.binds, key + value, strict=True) if b is not None}
                out += self.step(rule, 0, bound, task)
        return out

    def index_is_here(self, index_id: int, key: Row, task: int) -> bool:
        index = self.stratum.relation_indexes[index_id]
        if index.placement == "everywhere":
            return True
        by = index.keys if index.copy else self.relations[index.relation].distribute_by
        return owner((key[p] for p in by), self.tasks) == task

    def step(self, rule: PlannedRule, at: int, bound: dict[str, Any], task: int) -> Iterator[Row]:
        if at == len(rule.steps):
            yield tuple(evaluate(e, bound) for e in rule.emit)
            return
        step = rule.steps[at]
        if isinstance(step, Filter):
            if evaluate(step.condition, bound) is True:
                yield from self.step(rule, at + 1, bound, task)
            return
        wanted = tuple(evaluate(k, bound) for k in step.keys)
        if step.recursive:
            index = self.stratum.relation_indexes[step.index]
            found = [
                k + v
                for k, v in self.state[index.relation].items()
                if tuple(k[p] for p in index.keys) == wanted
                and self.index_is_here(step.index, k, task)
                and not (step.version == "old" and k in self.delta[index.relation])
            ]
        else:
            static = self.stratum.static_indexes[step.index]
            found = [
                tuple(row[p] for p in static.payload)
                for row in self.static[step.index]
                if tuple(row[p] for p in static.keys) == wanted
                and (
                    static.placement == "everywhere" or owner((row[p] for p in static.partition_by), self.tasks) == task
                )
            ]
        if None in wanted:
            found = []
        if step.kind != "join":
            if bool(found) == (step.kind == "semi"):
                yield from self.step(rule, at + 1, bound, task)
            return
        for row in found:
            more = {b: v for b, v in zip(step.binds, row, strict=True) if b is not None}
            yield from self.step(rule, at + 1, bound | more, task)


__all__ = ["Relation", "run_plan", "run_program"]
