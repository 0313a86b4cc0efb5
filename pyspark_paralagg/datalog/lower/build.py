"""Build the relations, inputs and rules of a Program from typed flat rules.

A relation of a Program has its keys first, then its aggregated columns; ``slots`` and ``supplied`` have that order.
Every relation of a text has one source. If the relation has rules, the source is its base.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower.bind import ONE, Slot, bind, supplied_kinds
from pyspark_paralagg.datalog.lower.infer import typed_head
from pyspark_paralagg.datalog.lower.resolved import Source
from pyspark_paralagg.datalog.lower.terms import BOOLEAN, NUMBER, Terms
from pyspark_paralagg.datalog.resolve.iterations import INITIAL
from pyspark_paralagg.datalog.resolve.shapes import HOLDS, Shape, Shapes
from pyspark_paralagg.program.aggregators import aggregator_named
from pyspark_paralagg.program.custom import Custom
from pyspark_paralagg.program.expr import Col, Lit
from pyspark_paralagg.program.names import NUMBERED
from pyspark_paralagg.program.program import Atom, Column, Dependent, Input, Relation, Rule
from pyspark_paralagg.program.sets import element_set, element_type, merged_sets
from pyspark_paralagg.program.trace import Hops, Path, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pyspark_paralagg.datalog.lower.facts import Fact
    from pyspark_paralagg.datalog.lower.infer import SlotTypes
    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.parse.syntax import TracedColumn
    from pyspark_paralagg.datalog.resolve.expand import Flat


@dataclass
class Builder:
    """The parts of a Program; ``assumed`` has the columns (relation, name) that have an assumption."""

    shapes: Shapes
    types: SlotTypes
    terms: Terms
    places: Places
    facts: Mapping[str, Sequence[Fact]]
    external: AbstractSet[str]
    indexed: AbstractSet[str]
    unsigned: Mapping[str, AbstractSet[str]]
    assumed: AbstractSet[tuple[str | None, str]]
    traces: Mapping[str, Sequence[TracedColumn]]

    def build(
        self, flat: Sequence[Flat]
    ) -> tuple[tuple[Relation, ...], tuple[Input, ...], tuple[Rule, ...], tuple[Source, ...]]:
        """Return relations, inputs, rules and sources; ``Input.source`` is a position in the sources."""
        rules = [self.rule(f) for f in flat]
        derived = {r.head for r in rules}
        names = list(self.shapes.shapes)
        sources = [self.source(n) for n in names]
        inputs = {n: self.input(n, i, derived) for i, n in enumerate(names)}
        if any(a.relation == ONE for r in rules for a in r.body):
            inputs[ONE] = Input(
                len(inputs), len(sources), (Column(ONE, NUMBER, nullable=False),), (Col(ONE, NUMBER, nullable=False),)
            )
            sources.append(Source(ONE, (Column(ONE, NUMBER),), ((1,),), is_external=False))
        extra: list[Input] = []
        relations = tuple(self.relation(n, derived, inputs, extra) for n in names if n in derived)
        placed = tuple(replace(r, body=tuple(self.atom(a, derived, inputs) for a in r.body)) for r in rules)
        return relations, (*inputs.values(), *extra), placed, tuple(sources)

    def rule(self, flat: Flat) -> Rule:
        """Return the rule; its atoms have the columns in the text's order."""
        shape = self.shapes.shapes[flat.head.relation]
        bound = bind(flat, self.shapes, self.types, self.terms, self.places)
        bound = typed_head(flat, bound, shape, self.types[shape.relation], self.terms, self.places)
        exprs = tuple(bound.head[slot] for slot in supplied(shape))
        order = _join_order(flat, bound.atoms)
        return Rule(shape.relation, exprs, bound.atoms, bound.conditions, self.places.describe(flat.span), order)

    def relation(self, name: str, derived: set[str], inputs: dict[str, Input], extra: list[Input]) -> Relation:
        """Return the relation ``name``; add its initial rows, if it has any, to the ``extra`` inputs."""
        shape, types = self.shapes.shapes[name], self.types[name]
        keys = tuple(Column(shape.columns[p], types["column", p]) for p in shape.keys)
        initial_id = None
        initial_name = name + INITIAL
        # Without initial rows the recursion starts from the base.
        if name in self.indexed and (initial_name in derived or self.facts.get(initial_name)):
            initial_id = len(inputs) + len(extra)
            extra.append(self.initial(shape, initial_name, initial_id, derived, inputs))
        dependents = self.dependents(shape, types)
        if not shape.columns:
            keys = (Column(HOLDS, BOOLEAN),)
        traces = tuple(_trace(t, shape) for t in self.traces.get(name, ()))
        return Relation(
            name, keys, dependents, inputs[name].id, initial_id, traces=traces, numbered=name.startswith(NUMBERED)
        )

    def initial(self, shape: Shape, name: str, number: int, derived: set[str], inputs: dict[str, Input]) -> Input:
        """Return the input of relation ``name``, with the columns in the order of ``shape``."""
        initial_shape, types = self.shapes.shapes[name], self.types[name]
        columns = [Column(c, types["column", p]) for p, c in enumerate(initial_shape.columns)]
        exprs = tuple(Col(columns[p].name, columns[p].type) for p in shape.order)
        if name in derived:
            return Input(number, -1, tuple(columns[p] for p in initial_shape.order), exprs, relation=name)
        return Input(number, inputs[name].source, tuple(columns), exprs)

    def dependents(self, shape: Shape, types: Mapping[Slot, str]) -> tuple[Dependent, ...]:
        """Return the aggregated columns; a hidden order column follows the column that it orders."""
        orders, limits = dict(shape.orders), dict(shape.limits)
        result: list[Dependent] = []
        for p in shape.values:
            column = Column(shape.columns[p], types["column", p])
            aggregate = str(shape.aggregates[p])
            if p in limits:
                merge = merged_sets(column.type, limits[p])
                result.append(Dependent(column, aggregate, custom=Custom(aggregate, ("value",), combine=(merge,))))
                continue
            if p not in orders:
                result.append(Dependent(column, aggregate, supplied=_supplied_columns(column, aggregate, types, p)))
                continue
            order = shape.hidden(p) if orders[p] < 0 else shape.columns[orders[p]]
            result.append(Dependent(column, aggregate, order))
            if orders[p] < 0:
                result.append(Dependent(Column(order, types["order", p]), aggregate.removesuffix("_by")))
        return tuple(result)

    def input(self, name: str, number: int, derived: set[str]) -> Input:
        """Return the input for the facts and external rows of relation ``name``."""
        shape, types = self.shapes.shapes[name], self.types[name]
        given = _given_types(shape, types)
        columns = tuple(Column(self.column(name, c), given[p]) for p, c in enumerate(shape.columns))
        columns = columns or (Column(HOLDS, BOOLEAN),)
        if name not in derived:
            return Input(
                number, number, columns, tuple(Col(c.name, c.type, c.nullable) for c in columns), name=name, is_set=True
            )
        values = [Col(c.name, c.type) for c in columns]
        exprs = tuple(
            Lit(None, types[kind, p])
            if kind != "column"
            else element_set(values[p], types[kind, p])
            if p in dict(shape.limits)
            else values[p]
            for kind, p in supplied(shape)
        )
        return Input(number, number, columns, exprs)

    def source(self, name: str) -> Source:
        """Return the source of relation ``name``: its columns, its facts, and whether it has external rows."""
        shape, types = self.shapes.shapes[name], self.types[name]
        given = _given_types(shape, types)
        columns = tuple(Column(c, given[p]) for p, c in enumerate(shape.columns))
        column_types = tuple(c.type for c in columns)
        rows = tuple(
            f.typed(column_types, self.unsigned.get(name, ()), self.places, shape) for f in self.facts.get(name, ())
        )
        return Source(name, columns or (Column(HOLDS, BOOLEAN),), rows, name in self.external)

    def atom(self, atom: Atom, derived: set[str], inputs: dict[str, Input]) -> Atom:
        """Convert an atom from the text's column order to the Program's."""
        name = str(atom.relation)
        if name not in derived:
            return replace(atom, relation=None, input=inputs[name].id)
        shape = self.shapes.shapes[name]
        if not shape.columns:
            return replace(atom, variables=(None,))
        variables = tuple(atom.variables[p] if kind == "column" else None for kind, p in slots(shape))
        return replace(atom, variables=variables)

    def column(self, relation: str, column: str) -> str:
        """Return a column's name, prefixed by its relation if the column has an assumption."""
        return f"{relation}.{column}" if (relation, column) in self.assumed else column


def _given_types(shape: Shape, types: Mapping[Slot, str]) -> list[str]:
    """Return the types of the columns in facts and inputs, which have an element in place of a set."""
    given = [types["column", p] for p in range(len(shape.columns))]
    for p in dict(shape.limits):
        given[p] = element_type(given[p]) or given[p]
    return given


def _trace(traced: TracedColumn, shape: Shape) -> Trace:
    order = None if traced.order is None else shape.columns[traced.order]
    return Trace(traced.name, Path(order) if traced.word == "PATH" else Hops(order))


def slots(shape: Shape) -> list[Slot]:
    """Return the columns of a relation in the Program's order; a hidden order column follows the one that it orders."""
    if not shape.columns:
        return [("column", 0)]
    result: list[Slot] = [("column", p) for p in shape.keys]
    hidden = {p for p, order in shape.orders if order < 0}
    for p in shape.values:
        result.append(("column", p))
        result += [("order", p)] if p in hidden else []
    return result


def supplied(shape: Shape) -> list[Slot]:
    """Return the slots of base rows and heads: those of the columns, or what witnesses have and the witnesses."""
    result: list[Slot] = []
    for kind, p in slots(shape):
        aggregate = shape.aggregates[p] if shape.columns else None
        is_counted = aggregator_named(aggregate).is_counted
        result += [(k, p) for k in supplied_kinds(aggregate)] if is_counted else [(kind, p)]
    return result


def _supplied_columns(column: Column, aggregate: str, types: Mapping[Slot, str], p: int) -> tuple[Column, ...]:
    if not aggregator_named(aggregate).is_counted:
        return ()
    return tuple(Column(f"{column.name}@{kind}", types[kind, p]) for kind in supplied_kinds(aggregate))


def _join_order(flat: Flat, atoms: tuple[Atom, ...]) -> tuple[int, ...] | None:
    """Return the join order of the first version of a ``.plan``; None if rewriting has changed the atoms."""
    if flat.rule.plan is None:
        return None
    order = tuple(p - 1 for p in min(flat.rule.plan.orders)[1])
    positive = [n for n, a in enumerate(atoms) if a.kind == "join"]
    return order if sorted(order) == positive else None
