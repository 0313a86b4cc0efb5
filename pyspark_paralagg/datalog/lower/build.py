"""Typed flat rules -> the relations, inputs and rules of a Program.

A relation of a Program has its keys first, then what is aggregated; ``slots`` and ``supplied`` are that order. Every
relation of a text has one source; where it has rules, the source is its base.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower.bind import ONE, Slot, bind
from pyspark_paralagg.datalog.lower.infer import typed_head
from pyspark_paralagg.datalog.lower.resolved import Source
from pyspark_paralagg.datalog.lower.terms import BOOLEAN, NUMBER, Terms
from pyspark_paralagg.datalog.resolve.iterations import INITIAL
from pyspark_paralagg.datalog.resolve.shapes import HOLDS, Shape, Shapes
from pyspark_paralagg.program.expr import Col, Lit
from pyspark_paralagg.program.program import Atom, Column, Dependent, Input, Relation, Rule

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet

    from pyspark_paralagg.datalog.lower.facts import Fact
    from pyspark_paralagg.datalog.lower.infer import TypesOf
    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Flat


@dataclass
class Builder:
    """All that a Program is built from; ``assumed`` are columns (relation, name) of which something is assumed."""

    shapes: Shapes
    types: TypesOf
    terms: Terms
    places: Places
    facts: Mapping[str, Sequence[Fact]]
    external: AbstractSet[str]
    indexed: AbstractSet[str]
    unsigned: Mapping[str, AbstractSet[str]]
    assumed: AbstractSet[tuple[str | None, str]]

    def build(
        self, flat: Sequence[Flat]
    ) -> tuple[tuple[Relation, ...], tuple[Input, ...], tuple[Rule, ...], tuple[Source, ...]]:
        """Relations, inputs, rules, and the sources that the inputs count."""
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
        """The rule, its atoms over relations' columns in the text's order."""
        shape = self.shapes.shapes[flat.head.relation]
        bound = bind(flat, self.shapes, self.types, self.terms, self.places)
        bound = typed_head(flat, bound, shape, self.types[shape.relation], self.terms, self.places)
        exprs = tuple(bound.head[slot] for slot in supplied(shape))
        order = _order_of(flat, bound.atoms)
        return Rule(shape.relation, exprs, bound.atoms, bound.conditions, self.places.describe(flat.span), order)

    def relation(self, name: str, derived: set[str], inputs: dict[str, Input], extra: list[Input]) -> Relation:
        """The relation ``name``; its initial rows, where it has any, are one of the ``extra`` inputs."""
        shape, types = self.shapes.shapes[name], self.types[name]
        keys = tuple(Column(shape.columns[p], types["column", p]) for p in shape.keys)
        initial = None
        start = name + INITIAL
        if name in self.indexed and (start in derived or self.facts.get(start)):  # without such rows it is the base
            initial = len(inputs) + len(extra)
            extra.append(self.initial(shape, start, initial, derived, inputs))
        dependents = self.dependents(shape, types)
        if not shape.columns:
            keys = (Column(HOLDS, BOOLEAN),)
        return Relation(name, keys, dependents, inputs[name].id, initial)

    def initial(self, of: Shape, name: str, number: int, derived: set[str], inputs: dict[str, Input]) -> Input:
        """The rows of relation ``name`` in the order of ``of``."""
        start, types = self.shapes.shapes[name], self.types[name]
        columns = [Column(c, types["column", p]) for p, c in enumerate(start.columns)]
        exprs = tuple(Col(columns[p].name, columns[p].type) for p in of.order)
        if name in derived:
            return Input(number, -1, tuple(columns[p] for p in start.order), exprs, relation=name)
        return Input(number, inputs[name].source, tuple(columns), exprs)

    def dependents(self, shape: Shape, types: Mapping[Slot, str]) -> tuple[Dependent, ...]:
        """The aggregated columns, each hidden order column after the one that it decides."""
        orders = dict(shape.orders)
        out: list[Dependent] = []
        for p in shape.values:
            column = Column(shape.columns[p], types["column", p])
            aggregate = str(shape.aggregates[p])
            if p not in orders:
                out.append(Dependent(column, aggregate, supplied=_witnessed(column, aggregate, types, p)))
                continue
            order = shape.hidden(p) if orders[p] < 0 else shape.columns[orders[p]]
            out.append(Dependent(column, aggregate, order))
            if orders[p] < 0:
                out.append(Dependent(Column(order, types["order", p]), aggregate.removesuffix("_by")))
        return tuple(out)

    def input(self, name: str, number: int, derived: set[str]) -> Input:
        """The given rows of relation ``name``."""
        shape, types = self.shapes.shapes[name], self.types[name]
        columns = tuple(Column(self.column(name, c), types["column", p]) for p, c in enumerate(shape.columns))
        columns = columns or (Column(HOLDS, BOOLEAN),)
        if name not in derived:
            return Input(
                number, number, columns, tuple(Col(c.name, c.type, c.nullable) for c in columns), name=name, is_set=True
            )
        exprs = tuple(
            Col(columns[p].name, columns[p].type) if kind == "column" else Lit(None, types[kind, p])
            for kind, p in supplied(shape)
        )
        return Input(number, number, columns, exprs)

    def source(self, name: str) -> Source:
        """Where these come from."""
        shape, types = self.shapes.shapes[name], self.types[name]
        columns = tuple(Column(c, types["column", p]) for p, c in enumerate(shape.columns))
        types_of = tuple(c.type for c in columns)
        rows = tuple(
            f.typed(types_of, self.unsigned.get(name, ()), self.places, shape) for f in self.facts.get(name, ())
        )
        return Source(name, columns or (Column(HOLDS, BOOLEAN),), rows, name in self.external)

    def atom(self, atom: Atom, derived: set[str], inputs: dict[str, Input]) -> Atom:
        """An atom over a relation's columns in the text's order, over the Program's."""
        name = str(atom.relation)
        if name not in derived:
            return replace(atom, relation=None, input=inputs[name].id)
        shape = self.shapes.shapes[name]
        if not shape.columns:
            return replace(atom, variables=(None,))
        variables = tuple(atom.variables[p] if kind == "column" else None for kind, p in slots(shape))
        return replace(atom, variables=variables)

    def column(self, relation: str, column: str) -> str:
        """A column's name; with its relation's where something is assumed of that column."""
        return f"{relation}.{column}" if (relation, column) in self.assumed else column


def slots(shape: Shape) -> list[Slot]:
    """The columns of a relation in the Program's order; a hidden order column follows what it decides."""
    if not shape.columns:
        return [("column", 0)]
    out: list[Slot] = [("column", p) for p in shape.keys]
    hidden = {p for p, order in shape.orders if order < 0}
    for p in shape.values:
        out.append(("column", p))
        out += [("order", p)] if p in hidden else []
    return out


def supplied(shape: Shape) -> list[Slot]:
    """What base rows and heads have in the place of the columns: witnesses, where these are counted."""
    out: list[Slot] = []
    for kind, p in slots(shape):
        aggregate = shape.aggregates[p] if shape.columns else None
        out += [] if aggregate == "mcount" else [(kind, p)]
        out += [("witness", p)] if aggregate in ("mcount", "msum") else []
    return out


def _witnessed(column: Column, aggregate: str, types: Mapping[Slot, str], p: int) -> tuple[Column, ...]:
    if aggregate not in ("mcount", "msum"):
        return ()
    witness = Column(f"{column.name}@witness", types["witness", p])
    return (witness,) if aggregate == "mcount" else (Column(f"{column.name}@share", column.type), witness)


def _order_of(flat: Flat, atoms: tuple[Atom, ...]) -> tuple[int, ...] | None:
    """The order of a ``.plan``, where it is one of this rule's positive atoms."""
    if flat.rule.plan is None:
        return None
    order = tuple(p - 1 for p in flat.rule.plan.orders[0][1])
    positive = [n for n, a in enumerate(atoms) if a.kind == "join"]
    return order if sorted(order) == positive else None
