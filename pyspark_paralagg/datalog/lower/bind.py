"""Bind one flat rule to typed relations: atoms that bind variables, conditions, and an expression for each head column.

    spath(f, t, $MIN(l + w)) :- spath(f, m, l), edge(m, t, w), l < 9.
    atoms       spath(f, m, l)  edge(m_2, t, w)
    conditions  m = m_2, l < 9
    head        f, t, l + w

Positive atoms bind first, then equations define the remaining variables. A variable that neither binds is an error, in
a negation as well. Each column of an atom gets a variable of its own; equality is a condition, as everywhere in a
Program.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower import unsigned
from pyspark_paralagg.datalog.lower.terms import BOOLEAN, NUMBER, UnboundError
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.resolve.expand import names_in, nodes
from pyspark_paralagg.program.aggregators import aggregator_named
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit
from pyspark_paralagg.program.names import fresh_name
from pyspark_paralagg.program.program import Atom
from pyspark_paralagg.program.sets import element_set, element_type, least_elements, set_type

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark_paralagg.datalog.lower.terms import Terms
    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.resolve.expand import Flat
    from pyspark_paralagg.datalog.resolve.shapes import Shape, Shapes

Slot = tuple[str, int]
"""A column of a head, ``("column", p)``, or one more that its aggregate needs: ``order``, ``total``, ``witness``."""

_SUPPLIED = ("total", "column", "witness")

ONE = "one@"
"""The relation with one row that a rule without atoms reads."""


def supplied_kinds(aggregate: str | None) -> tuple[str, ...]:
    """Return the slots in place of a column that witnesses decide, in the order of the arguments."""
    return _SUPPLIED[-1 - aggregator_named(aggregate).shares :]


class UntypedError(Exception):
    """The types of a relation are not known yet."""


@dataclass(frozen=True)
class Bound:
    """A bound rule. ``atoms`` name relations, inputs included; ``head`` has an expression for each slot."""

    atoms: tuple[Atom, ...]
    conditions: tuple[Expr, ...]
    head: dict[Slot, Expr]


def bind(flat: Flat, shapes: Shapes, types: Mapping[str, Mapping[Slot, str]], terms: Terms, places: Places) -> Bound:
    """Return ``flat`` with typed expressions; raise ``UntypedError`` if a relation in its body has no types yet."""
    return _Binder(flat, shapes, types, terms, places).bound()


@dataclass
class _Binder:
    flat: Flat
    shapes: Shapes
    types: Mapping[str, Mapping[Slot, str]]
    terms: Terms
    places: Places
    scope: dict[str, Expr] = field(default_factory=dict)
    atoms: list[Atom] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)
    limits: dict[str, int] = field(default_factory=dict)
    """The limits of the variables that are sets, as far as they are known."""

    def __post_init__(self) -> None:
        self.taken = set(names_in((self.flat.head, self.flat.literals)))
        self.unsigned = unsigned.unsigned_names(self.flat, self.terms.unsigned, self.terms.base)

    def bound(self) -> Bound:
        literals = self.flat.literals
        waiting: list[tuple[syntax.Term, Col, syntax.Atom]] = []
        for x in literals:
            if isinstance(x, syntax.Atom):
                self.positive(x, waiting)
        if not self.atoms:
            self.atoms.append(Atom((None,), relation=ONE))
        comparisons = [x for x in literals if isinstance(x, syntax.Comparison)]
        comparisons = self.define(comparisons)
        for term, col, atom in waiting:
            self.conditions.append(self.equal(self.value(term), col, atom.span))
        for c in comparisons:
            self.conditions.append(self.comparison(c))
        for x in literals:
            if isinstance(x, syntax.Constraint):
                self.conditions.append(self.constraint(x))
            elif isinstance(x, syntax.Negation):
                self.negative(x)
        return Bound(tuple(self.atoms), tuple(self.conditions), self.head())

    # --- bodies ------------------------------------------------------------------------------------------------------

    def positive(self, atom: syntax.Atom, waiting: list[tuple[syntax.Term, Col, syntax.Atom]]) -> None:
        """Bind the variables of ``atom``; add other arguments to ``waiting``, until all variables are bound."""
        names: list[str | None] = []
        for col, arg in self.columns(atom):
            if isinstance(arg, syntax.Wildcard):
                names.append(None)
                continue
            if isinstance(arg, syntax.Variable) and arg.name not in self.scope:
                self.scope[arg.name] = Col(arg.name, col.type, col.nullable)
                limit = dict(self.shapes.shapes[atom.relation].limits).get(len(names))
                self.limits |= {} if limit is None else {arg.name: limit}
                names.append(arg.name)
                continue
            column = Col(self.fresh(arg.name if isinstance(arg, syntax.Variable) else col.name), col.type, col.nullable)
            names.append(column.name)
            waiting.append((arg, column, atom))  # type: ignore[arg-type]  # no head aggregates in bodies: Shapes.check
        self.atoms.append(Atom(tuple(names), relation=atom.relation))

    def columns(self, atom: syntax.Atom) -> list[tuple[Col, syntax.Term | syntax.HeadAggregate]]:
        """Return each argument of ``atom`` with its column."""
        shape = self.shapes.shapes[atom.relation]
        types = self.types.get(atom.relation, {})
        if any(("column", p) not in types for p in range(len(shape.columns))):
            raise UntypedError(atom.relation)
        columns = [Col(c, types["column", p]) for p, c in enumerate(shape.columns)]
        return list(zip(columns, atom.args, strict=True))

    def define(self, comparisons: list[syntax.Comparison]) -> list[syntax.Comparison]:
        """Define variables by equations; return the remaining comparisons."""
        remaining = list(comparisons)
        while True:
            for c in remaining:
                definition = self.definition(c)
                if definition is not None:
                    self.scope[definition[0]] = definition[1]
                    remaining.remove(c)
                    break
            else:
                return remaining

    def definition(self, c: syntax.Comparison) -> tuple[str, Expr] | None:
        """Return ``x`` and its value if ``c`` is ``x = value`` or ``value = x`` and ``x`` is not bound; else None."""
        if c.op == "=":
            for side, other in ((c.left, c.right), (c.right, c.left)):
                if isinstance(side, syntax.Variable) and side.name not in self.scope and self.is_bound(other):
                    value = self.terms.expr(other, self.scope, self.unsigned)
                    return side.name, self.terms.range_checked(other, value, self.unsigned)
        return None

    def is_bound(self, term: syntax.Term) -> bool:
        """Return whether every variable of ``term`` has a value."""
        return names_in(term) <= self.scope.keys() and not any(isinstance(n, syntax.Wildcard) for n in nodes(term))

    def negative(self, negation: syntax.Negation) -> None:
        """Add an atom that must not match, or a constraint that must not hold."""
        inner = negation.body
        if isinstance(inner, syntax.Constraint):
            self.conditions.append(Call("Not", (self.constraint(inner),), BOOLEAN))
            return
        assert isinstance(inner, syntax.Atom)  # noqa: S101 - expand left nothing else
        names: list[str | None] = []
        for col, arg in self.columns(inner):
            if isinstance(arg, syntax.Wildcard):
                names.append(None)
                continue
            if isinstance(arg, syntax.Variable) and arg.name not in self.scope:
                message = f"`{arg.name}` occurs in a negation, but no positive atom binds it"
                hint = f"write `_` if any value may match, or add an atom that binds {arg.name}"
                raise self.places.error(
                    "PARALAGG_DATALOG_UNSAFE_NEGATION", message, arg.span, value=arg.name, hint=hint
                )
            column = Col(self.fresh(arg.name if isinstance(arg, syntax.Variable) else col.name), col.type, col.nullable)
            names.append(column.name)
            self.conditions.append(self.equal(self.value(arg), column, inner.span))  # type: ignore[arg-type]  # as above
        self.atoms.append(Atom(tuple(names), relation=inner.relation, kind="anti"))

    def constraint(self, literal: syntax.Constraint) -> Expr:
        """Return ``match`` or ``contains`` as a condition."""
        try:
            return self.terms.constraint(literal, self.scope)
        except UnboundError as problem:
            raise self.unbound(problem.args[0]) from None

    def equal(self, value: Expr, col: Col, span: syntax.Span) -> Expr:
        """Return the condition ``value = col``."""
        return self.terms.comparison(syntax.Comparison("=", syntax.Wildcard(), syntax.Wildcard(), span), value, col)

    def value(self, term: syntax.Term) -> Expr:
        """Return the expression of ``term``; raise if a variable is not bound."""
        try:
            return self.terms.expr(term, self.scope, self.unsigned)
        except UnboundError as problem:
            raise self.unbound(problem.args[0]) from None

    def comparison(self, c: syntax.Comparison) -> Expr:
        """Return a comparison; only an ordered one checks the range of unsigned numbers, as equality compares bits."""
        left, right = self.value(c.left), self.value(c.right)
        if c.op in unsigned.ORDERED:
            left = self.terms.range_checked(c.left, left, self.unsigned)
            right = self.terms.range_checked(c.right, right, self.unsigned)
        return self.terms.comparison(c, left, right)

    def unbound(self, node: syntax.Term) -> Exception:
        """Return the error for a variable without a value."""
        if isinstance(node, syntax.Variable):
            message = f"nothing in the body binds `{node.name}`"
            hint = f"add an atom with {node.name}, or an equation that defines it"
            return self.places.error("PARALAGG_DATALOG_UNBOUND", message, node.span, value=node.name, hint=hint)
        message = "`_` has no value"
        hint = "name it, and bind the name in the body"
        return self.places.error("PARALAGG_DATALOG_UNBOUND", message, node.span, value="_", hint=hint)

    def fresh(self, stem: str) -> str:
        """Return a variable name that is new in the rule."""
        name = fresh_name(stem, self.taken)
        self.taken.add(name)
        return name

    # --- heads -------------------------------------------------------------------------------------------------------

    def head(self) -> dict[Slot, Expr]:
        """Return an expression for each slot of the head."""
        shape = self.shapes.shapes[self.flat.head.relation]
        slots: dict[Slot, Expr] = {}
        for p, arg in enumerate(self.flat.head.args):
            aggregate = shape.aggregates[p]
            if isinstance(arg, syntax.HeadAggregate):
                slots |= self.aggregated(p, arg, shape)
            else:
                value = self.value(arg)
                slots["column", p] = (
                    self.terms.truth(value, arg.span) if aggregator_named(aggregate).is_truth else value
                )
                if aggregate is not None and (p, -1) in shape.orders:
                    message = f"`{shape.relation}` has ${aggregate.upper()} here without its order"
                    hint = f"write ${aggregate.upper()}(value, order) in this rule"
                    raise self.places.error("PARALAGG_DATALOG_AGGREGATE", message, arg.span, hint=hint)
        if not shape.columns:
            slots["column", 0] = Lit(value=True, type=BOOLEAN)
        sets = dict(shape.limits)
        return {
            slot: e
            if slot[0] != "column" or not shape.columns
            else self.bounded(self.checked_column(slot[1], e), sets[slot[1]])
            if slot[1] in sets
            else self.checked_column(slot[1], e)
            for slot, e in slots.items()
        }

    def bounded(self, value: Expr, limit: int) -> Expr:
        """Return ``value``, an element or a set, as a set of at most ``limit`` elements."""
        is_short = isinstance(value, Col) and self.limits.get(value.name, limit + 1) <= limit
        if element_type(value.type) is None:
            return element_set(value, set_type(value.type))
        return value if is_short else least_elements(value, limit)

    def checked_column(self, p: int, expr: Expr) -> Expr:
        """Return the expression of head column ``p``, with a range check if the column is unsigned."""
        arg, relation = self.flat.head.args[p], self.flat.head.relation
        checked = self.terms.range_checked(arg, expr, self.unsigned)
        is_plain = checked is expr and expr.type == NUMBER and not isinstance(expr, Lit)
        mixes = unsigned.may_leave(arg) or unsigned.mixes(arg, self.unsigned)
        if is_plain and mixes and p in self.terms.unsigned.get(relation, ()):
            return unsigned.asserted(expr, self.places.describe(arg.span))
        return checked

    def aggregated(self, p: int, arg: syntax.HeadAggregate, shape: Shape) -> dict[Slot, Expr]:
        """Return the slots that a row gives to the aggregate at position ``p``."""
        aggregate = shape.aggregates[p]
        terms = arg.args[:1] if p in dict(shape.limits) else arg.args  # the limit of a set is no value
        values = [self.constraint_of(a) if isinstance(a, syntax.Comparison) else self.value(a) for a in terms]
        if aggregator_named(aggregate).counts_rows:
            return {("column", p): values[0] if values else Lit(1, NUMBER)}
        if aggregator_named(aggregate).is_truth:
            return {("column", p): self.terms.truth(values[0], arg.span)}
        if aggregator_named(aggregate).is_counted:
            kinds = supplied_kinds(aggregate)
            return {(kind, p): value for kind, value in zip(kinds, values, strict=True)}
        if (p, -1) in shape.orders:
            return {("column", p): values[0], ("order", p): values[1]}
        return {("column", p): values[0]}

    def constraint_of(self, c: syntax.Comparison) -> Expr:
        """Return a comparison as a value, for ``$ANY(d < 5)``."""
        return self.comparison(c)
