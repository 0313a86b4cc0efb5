"""What is left of a stratum where only some dependent columns of a relation are read afterwards.

    tree(y, min d + w, min_by(d) x) :- tree(x, d, _), edges(x, y, w)        where only the distances are wanted:
    tree(y, min d + w)              :- tree(x, d), edges(x, y, w)

A column may go if nothing that stays is computed from it: no other column, no key, no condition, no order. A climb
without end and a limit that is reached are errors, and stay: a column that may climb does not go, and neither does
anything where iterations are counted. Catalyst's rule ``PruneDependents`` chooses when the query is known.
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
"""Dependent columns: relation and name."""


@dataclass(frozen=True)
class Smaller:
    """``program`` computes of ``relation`` only ``columns``; ``whole`` is the program that it was made of."""

    relation: str
    columns: tuple[str, ...]
    program: Program
    whole: Program

    def planned(self, position: int, stratum: Stratum, inputs: tuple[Input, ...]) -> list[Narrower]:
        """The Plan's entry for the stratum of ``program``; none where it reads what the whole one does not."""
        own = tuple(i for i in inputs if i.id in stratum.input_ids)
        slices = [self._slice(i) for i in own]
        found = tuple(s for s in slices if s is not None)
        if len(found) < len(own):
            return []
        return [Narrower(position, self.relation, self.columns, stratum, own, found)]

    def _slice(self, of: Input) -> Slice | None:
        for i in self.whole.inputs:
            if replace(i, id=of.id, exprs=of.exprs) == of and set(of.exprs) <= set(i.exprs):
                return Slice(i.id, tuple(i.exprs.index(e) for e in of.exprs))
        return None


def narrow(program: Program, stratum: Stratum) -> Iterator[Smaller]:
    """The smaller programs that are worth a plan of their own: for each dependent column alone, and for none."""
    relations = tuple(program.relation(r.name) for r in stratum.relations)
    dependents = [d for r in relations for d in r.dependents]
    is_counted = stratum.tolerance is not None or (stratum.max_iterations is not None and stratum.on_limit == "error")
    if is_counted or any(d.view or d.supplied or d.custom for d in dependents):
        return
    everything = frozenset((r.name, d.column.name) for r in relations for d in r.dependents)
    for r in relations:
        seeds = [frozenset({(r.name, d.column.name)}) for d in r.dependents]
        if stratum.relation_class == "lattice":  # a sum without its column would be a relation of another class
            seeds.append(frozenset())
        kept = {_closure(seed, program, relations) for seed in seeds}
        for k in sorted(kept - {everything}, key=lambda k: (len(k), sorted(k))):
            gone = [d for o in relations for d in o.dependents if (o.name, d.column.name) not in k]
            if not stratum.cycle_check or all(d.order is not None for d in gone):
                mine = tuple(d.column.name for d in r.dependents if (r.name, d.column.name) in k)
                yield Smaller(r.name, mine, _without(program, relations, k), program)


def _closure(seed: Columns, program: Program, relations: tuple[Relation, ...]) -> Columns:
    """``seed`` and all that it, or the set of rows, depends on."""
    names = {r.name for r in relations}
    rules = [r for r in program.rules if r.head in names]
    kept: Columns = frozenset()
    found = seed | {c for rule in rules for c in _read(rule, program, _always(rule, program))}
    while found != kept:
        kept = found
        orders = (
            (r.name, d.order) for r in relations for d in r.dependents if d.order and (r.name, d.column.name) in kept
        )
        found = kept | frozenset(orders)
        for rule in rules:
            wanted = [e for d, e in _heads(rule, program) if (rule.head, d.column.name) in kept]
            found |= _read(rule, program, wanted)
    return kept


def _always(rule: Rule, program: Program) -> list[Expr]:
    """What decides whether there is a row, and which."""
    return [*rule.exprs[: len(program.relation(rule.head).keys)], *rule.conditions]


def _heads(rule: Rule, program: Program) -> list[tuple[Dependent, Expr]]:
    head = program.relation(rule.head)
    return list(zip(head.dependents, rule.exprs[len(head.keys) :], strict=True))


def _read(rule: Rule, program: Program, exprs: Iterable[Expr]) -> Columns:
    scope = variables(rule, program)
    used = (scope[v] for e in exprs for v in columns(e))
    return frozenset((v.relation, v.column.name) for v in used if v.role == "dependent" and v.relation is not None)


def _without(program: Program, relations: tuple[Relation, ...], kept: Columns) -> Program:
    """``program`` with only the ``kept`` dependents of these relations."""
    places = {r.name: _places(r, kept) for r in relations}
    smaller = {r.name: _of_columns(r, places[r.name]) for r in relations}
    start = {i: places[r.name] for r in relations for i in (r.base, r.initial) if i is not None}
    rules = [_rule(r, places) for r in program.rules if r.head in places]
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


def _places(relation: Relation, kept: Columns) -> tuple[int, ...]:
    n = len(relation.keys)
    stays = (n + p for p, d in enumerate(relation.dependents) if (relation.name, d.column.name) in kept)
    return (*range(n), *stays)


def _of_columns(relation: Relation, places: tuple[int, ...]) -> Relation:
    n = len(relation.keys)
    return replace(relation, dependents=tuple(relation.dependents[p - n] for p in places if p >= n))


def _rule(rule: Rule, places: dict[str, tuple[int, ...]]) -> Rule:
    body = tuple(
        replace(a, variables=tuple(a.variables[p] for p in places[a.relation])) if a.relation in places else a
        for a in rule.body
    )
    return replace(rule, exprs=tuple(rule.exprs[p] for p in places[rule.head]), body=body)
