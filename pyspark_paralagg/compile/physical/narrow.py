"""Reduce a stratum to the dependent columns of a relation that a query reads.

    tree(y, min d + w, min_by(d) x) :- tree(x, d, _), edges(x, y, w)        if only the distances are read:
    tree(y, min d + w)              :- tree(x, d), edges(x, y, w)

A column may be dropped if no remaining column, key, condition or order is computed from it. Errors must not change: a
column that may climb without end stays, and so does every column if iterations are limited or a tolerance is set.
Catalyst's rule ``PruneDependents`` chooses a reduced stratum once the query is known.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.prune import prune
from pyspark_paralagg.compile.rewrite.scope import variables
from pyspark_paralagg.plan.plan import Narrower, Slice
from pyspark_paralagg.program.expr import columns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark_paralagg.plan.plan import Stratum
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Dependent, Input, Program, Relation, Rule

Columns = frozenset[tuple[str, str]]
"""Dependent columns, as pairs of relation and column name."""


@dataclass(frozen=True)
class Smaller:
    """The program that computes only ``columns`` of ``relation``; ``inputs`` are those of the original stratum."""

    relation: str
    columns: tuple[str, ...]
    program: Program
    inputs: tuple[Input, ...]

    def narrowers(self, position: int, stratum: Stratum, inputs: tuple[Input, ...]) -> list[Narrower]:
        """Return the Plan's entry for ``stratum``; none if it reads an input that the original one does not."""
        own_inputs = tuple(i for i in inputs if i.id in stratum.input_ids)
        slices = [self._slice(i) for i in own_inputs]
        sliced = tuple(s for s in slices if s is not None)
        if len(sliced) < len(own_inputs):
            return []
        return [Narrower(position, self.relation, self.columns, stratum, own_inputs, sliced)]

    def _slice(self, source: Input) -> Slice | None:
        for i in self.inputs:
            if replace(i, id=source.id, exprs=source.exprs) == source and set(source.exprs) <= set(i.exprs):
                return Slice(i.id, tuple(i.exprs.index(e) for e in source.exprs))
        return None


def narrow(program: Program, stratum: Stratum) -> Iterator[Smaller]:
    """Yield the smaller programs: one for each single dependent column, and one for no dependent column."""
    relations = tuple(program.relation(r.name) for r in stratum.relations)
    inputs = tuple(i for i in program.inputs if i.id in stratum.input_ids)
    dependents = [d for r in relations for d in r.dependents]
    is_counted = stratum.tolerance is not None or (stratum.max_iterations is not None and stratum.on_limit == "error")
    if is_counted or any(d.view or d.supplied or d.custom for d in dependents):
        return
    all_columns = frozenset((r.name, d.column.name) for r in relations for d in r.dependents)
    for r in relations:
        seeds = [frozenset({(r.name, d.column.name)}) for d in r.dependents]
        if stratum.relation_class == "lattice":  # without its sum a relation would have another class
            seeds.append(frozenset())
        kept = {_closure(seed, program, relations) for seed in seeds}
        for k in sorted(kept - {all_columns}, key=lambda k: (len(k), sorted(k))):
            dropped = [d for o in relations for d in o.dependents if (o.name, d.column.name) not in k]
            if not stratum.cycle_check or all(d.order is not None for d in dropped):
                names = tuple(d.column.name for d in r.dependents if (r.name, d.column.name) in k)
                yield Smaller(r.name, names, _keep_only(program, relations, k), inputs)


def _closure(seed: Columns, program: Program, relations: tuple[Relation, ...]) -> Columns:
    """Return ``seed`` and all columns that it, or the set of rows, depends on."""
    names = {r.name for r in relations}
    rules = [r for r in program.rules if r.head in names]
    kept: Columns = frozenset()
    reached = seed | {c for rule in rules for c in _columns_read(rule, program, _row_exprs(rule, program))}
    while reached != kept:
        kept = reached
        orders = (
            (r.name, d.order) for r in relations for d in r.dependents if d.order and (r.name, d.column.name) in kept
        )
        reached = kept | frozenset(orders)
        for rule in rules:
            exprs = [e for d, e in _dependent_exprs(rule, program) if (rule.head, d.column.name) in kept]
            reached |= _columns_read(rule, program, exprs)
    return kept


def _row_exprs(rule: Rule, program: Program) -> list[Expr]:
    """Return the keys and conditions of ``rule``: they decide which rows exist."""
    return [*rule.exprs[: len(program.relation(rule.head).keys)], *rule.conditions]


def _dependent_exprs(rule: Rule, program: Program) -> list[tuple[Dependent, Expr]]:
    head = program.relation(rule.head)
    return list(zip(head.dependents, rule.exprs[len(head.keys) :], strict=True))


def _columns_read(rule: Rule, program: Program, exprs: Iterable[Expr]) -> Columns:
    scope = variables(rule, program)
    used = (scope[v] for e in exprs for v in columns(e))
    return frozenset((v.relation, v.column.name) for v in used if v.role == "dependent" and v.relation is not None)


def _keep_only(program: Program, relations: tuple[Relation, ...], kept: Columns) -> Program:
    """Return ``program`` with only the ``kept`` dependents of ``relations``."""
    positions = {r.name: _kept_positions(r, kept) for r in relations}
    smaller = {r.name: _select(r, positions[r.name]) for r in relations}
    start = {i: positions[r.name] for r in relations for i in (r.base, r.initial) if i is not None}
    rules = [_rule(r, positions) for r in program.rules if r.head in positions]
    return prune(
        replace(
            program,
            relations=tuple(smaller.get(r.name, r) for r in program.relations),
            inputs=tuple(
                replace(i, exprs=tuple(i.exprs[p] for p in start[i.id])) if i.id in start else i for i in program.inputs
            ),
            rules=tuple(rules),
        )
    )


def _kept_positions(relation: Relation, kept: Columns) -> tuple[int, ...]:
    n = len(relation.keys)
    stays = (n + p for p, d in enumerate(relation.dependents) if (relation.name, d.column.name) in kept)
    return (*range(n), *stays)


def _select(relation: Relation, positions: tuple[int, ...]) -> Relation:
    n = len(relation.keys)
    return replace(relation, dependents=tuple(relation.dependents[p - n] for p in positions if p >= n))


def _rule(rule: Rule, positions: dict[str, tuple[int, ...]]) -> Rule:
    body = tuple(
        replace(a, variables=tuple(a.variables[p] for p in positions[a.relation])) if a.relation in positions else a
        for a in rule.body
    )
    return replace(rule, exprs=tuple(rule.exprs[p] for p in positions[rule.head]), body=body)
