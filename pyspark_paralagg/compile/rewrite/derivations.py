"""Ask a Program for the derivations of some rows: the rules that ``ra.why`` adds.

    dist@height(v, $MIN(h))  :- dist@height(u, h1), dist(u, d1), edges(u, v, w), dist(v, d), d = d1 + w, h = h1 + 1
    dist@needed(7)           :- dist(7, _)
    dist@needed(u)           :- dist@needed(v), dist@height(v, h), dist@height(u, h1), ..., h = h1 + 1
    why@(rule, columns, ...) :- dist@needed(v), dist@height(v, h), dist@height(u, h1), ..., h = h1 + 1

The height of a row is the least height of a proof tree for it: 0 for a row of the base, and one more than the highest
row that a rule reads. Only *tight* rule instances count, which derive the row's final value. Rows are then needed
backwards from the asked ones, by instances of least height, so a proof never rests on itself. All engines run the rules
as any others, in a number of strata that does not depend on the depth of the proof.

A row of sums, or of an aggregator that combines values, has no single derivation. All its contributions are
returned, and rows below them are not needed.

Deutch, Milo, Roy and Tannen 2014, "Circuits for Datalog provenance"; Zhao, Subotic and Scholz 2020, "Debugging
large-scale Datalog" (proof trees of minimal height).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.added import check_is_finished, name_of, rows_with_keys, rules_of, with_relation
from pyspark_paralagg.compile.rewrite.tight import HEIGHT, Tight
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.expr import Col, Lit
from pyspark_paralagg.program.names import added_name
from pyspark_paralagg.program.program import Column, Dependent, Relation
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Atom, Program, Rule

_ORDERS = ("min", "max")
RULE, TIMES = "rule", "times"
"""The columns of the answer that are no values: the number of the shape, and how often the instance occurs."""


@dataclass(frozen=True)
class Read:
    """A row of an instance, of a relation or an input: names of its columns, and of the answer's columns for them.

    ``relation`` is the relation's name; None for an input.
    """

    name: str
    columns: tuple[str, ...]
    slots: tuple[str, ...]
    relation: str | None


@dataclass(frozen=True)
class Shape:
    """What the instances of one rule have in the answer: the final row, what the rule derived, and the rows it read.

    ``place`` is the rule's place; ``excluded`` names what must have no row. The asked rows have a shape without
    ``derived``.
    """

    row: Read
    derived: Read | None
    body: tuple[Read, ...]
    place: str
    excluded: tuple[str, ...] = ()


@dataclass
class Derivations:
    """The question for the derivations of ``rows`` of ``relation``: tuples of key constants, without null.

    ``of`` is the column whose value is to be explained; None if one minimum or maximum decides the row. ``rewrite``
    fills ``shapes``, by the number in the column ``rule``, and ``summed``, the relations without single derivations.
    """

    relation: str
    rows: Sequence[tuple[Lit, ...]]
    of: str | None = None
    shapes: list[Shape] = field(default_factory=list)
    summed: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """Return the name of the relation of the instances."""
        return added_name("why", self.relation)

    def rewrite(self, program: Program) -> Program:
        """Return ``program`` with the relation of the instances.

        Raises ``UsageError`` ``PARALAGG_WHY`` if limits return unfinished rows, or if several columns decide and ``of``
        names none.
        """
        self.shapes, self.summed = [], set()
        return _Writer(program, self).run()


class _Writer:
    """Writes the rules of one question."""

    def __init__(self, program: Program, question: Derivations) -> None:
        self._program = program
        self._question = question
        self._asked = {r.name: r for r in program.relations if r.name in _below(program, question.relation)}
        self._decided = {name: self._columns_that_decide(r) for name, r in self._asked.items()}
        self._height = {n: _of_rows(self._asked[n], "height") for n, by in self._decided.items() if by is not None}
        self._needed = {n: _of_rows(r, "needed") for n, r in self._asked.items()}
        self._slots = _Slots()
        question.summed |= self._asked.keys() - self._height.keys()

    def run(self) -> Program:
        asked = self._asked[self._question.relation]
        check_is_finished(
            self._program, asked, "PARALAGG_WHY", "before the last ones are derived, so they have no proof"
        )
        heights: dict[str, list[Rule]] = {n: [] for n in self._height}
        needed: dict[str, list[Rule]] = {n: [] for n in self._needed}
        answers: list[tuple[Rule, dict[str, Expr]]] = []
        for n, wanted in enumerate(self._question.rows):
            row = rows_with_keys(asked, wanted, f"row {n + 1} of why")
            needed[asked.name].append(replace(row, head=self._needed[asked.name].name, exprs=row.exprs[: len(wanted)]))
            answers.append(self._asked_answer(row, asked, n))
        for rule in [rule for relation in self._asked.values() for rule in rules_of(self._program, relation)]:
            tight = Tight(rule, self._program, self._decided, self._height)
            if rule.head in heights:
                heights[rule.head].append(tight.height())
                for name, need in tight.needs(self._needed):
                    needed[name].append(need)
            answers.append(self._answer(tight, len(answers)))
        program = self._program
        for name, relation in self._height.items():
            height = Dependent(Column(added_name("height", ""), HEIGHT), "min")
            program = with_relation(program, replace(relation, dependents=(height,)), heights[name])
        for name, relation in self._needed.items():
            program = with_relation(program, relation, needed[name])
        keys = (Column(RULE, "int"), *self._slots.columns)
        times = Dependent(Column(TIMES, "bigint"), "count")
        answer = Relation(self._question.name, keys, (times,), base=-1)
        return with_relation(program, answer, [self._filled(rule, values, keys) for rule, values in answers])

    def _columns_that_decide(self, relation: Relation) -> tuple[str, ...] | None:
        """Return the columns that one derivation has to give: a minimum or maximum, and what it carries.

        None: rows have no single derivation.
        """
        alone = [d for d in relation.dependents if d.order is None]
        orders = [d.column.name for d in alone if d.aggregator in _ORDERS]
        of = self._question.of if relation.name == self._question.relation else None
        names = [d.column.name for d in alone]
        if of is not None and of not in names:
            raise UsageError(
                "PARALAGG_WHY",
                f"{of!r} is no column of {relation.name!r} that has derivations of its own",
                value=of,
                place=f"relation {relation.name}",
                hint=f"use one of {', '.join(names)}" if names else "leave of= out: a set has no such columns",
            )
        if of is None and len(orders) < len(alone):
            return None
        if of is None and len(orders) > 1:
            raise UsageError(
                "PARALAGG_WHY",
                f"several columns of {relation.name!r} have derivations of their own: {', '.join(orders)}",
                value=relation.name,
                place=f"relation {relation.name}",
                hint=f"name one of them: ra.why(..., of={orders[0]!r})",
            )
        order = of or next(iter(orders), None)
        if order is None:
            return ()
        carried = [d.column.name for d in relation.dependents if d.order == order]
        return (order, *carried) if order in orders else None

    def _asked_answer(self, rule: Rule, relation: Relation, number: int) -> tuple[Rule, dict[str, Expr]]:
        """Return the rule of one asked row, and the values of the answer's columns."""
        instance = self._slots.instance(Lit(number, "int"))
        columns = tuple(c.name for c in relation.columns)
        row = Read(relation.name, columns, instance.take(rule.exprs), relation.name)
        self._question.shapes.append(Shape(row, None, (), rule.place))
        return rule, instance.values

    def _answer(self, tight: Tight, number: int) -> tuple[Rule, dict[str, Expr]]:
        """Return the rule of the instances, without its head, and the values of the answer's columns."""
        instance = self._slots.instance(Lit(number, "int"))
        relation, rule = self._asked[tight.rule.head], tight.rule
        row = Read(relation.name, tuple(c.name for c in relation.columns), instance.take(tight.row), relation.name)
        derived = Read(relation.name, tuple(c.name for c in relation.supplied), instance.take(rule.exprs), None)
        is_start = rule not in self._program.rules
        body = [] if is_start else [self._read(a, instance) for a in tight.body if a.kind != "anti"]
        excluded = tuple(name_of(a, self._program) for a in rule.body if a.kind == "anti")
        self._question.shapes.append(Shape(row, derived, tuple(body), rule.place, excluded))
        return tight.instance(self._needed), instance.values

    def _read(self, atom: Atom, instance: _Instance) -> Read:
        """Return an atom of a body, all of whose columns have variables, as a row of the answer."""
        name = name_of(atom, self._program)
        if atom.relation is not None:
            read = [(c.name, c.type) for c in self._program.relation(atom.relation).columns]
        else:
            read = [(show(e), e.type) for e in self._program.input(atom.input or 0).exprs]
        values = [Col(str(v), type_) for v, (_, type_) in zip(atom.variables, read, strict=True)]
        return Read(name, tuple(c for c, _ in read), instance.take(values), atom.relation)

    def _filled(self, rule: Rule, values: Mapping[str, Expr], keys: Sequence[Column]) -> Rule:
        exprs = (*(values.get(c.name, Lit(None, c.type)) for c in keys), Lit(1, "bigint"))
        return replace(rule, head=self._question.name, exprs=exprs)


class _Slots:
    """The columns of the answer for values: as many of each type as the widest instance has."""

    def __init__(self) -> None:
        self._by_type: dict[str, list[Column]] = {}

    @property
    def columns(self) -> tuple[Column, ...]:
        return tuple(c for columns in self._by_type.values() for c in columns)

    def instance(self, rule: Lit) -> _Instance:
        return _Instance({RULE: rule}, self._by_type)


@dataclass
class _Instance:
    """The values of one rule's instances, by the answer's columns."""

    values: dict[str, Expr]
    by_type: dict[str, list[Column]]
    used: dict[str, int] = field(default_factory=dict)

    def take(self, values: Sequence[Expr]) -> tuple[str, ...]:
        """Give each value a column of its type; return the columns' names."""
        names = []
        for value in values:
            columns = self.by_type.setdefault(value.type, [])
            position = self.used.get(value.type, 0)
            self.used[value.type] = position + 1
            if position == len(columns):
                number = list(self.by_type).index(value.type)
                columns.append(Column(f"value_{number}_{position}", value.type))
            names.append(columns[position].name)
            self.values[names[-1]] = value
        return tuple(names)


def _of_rows(relation: Relation, word: str) -> Relation:
    """Return a set of keys of ``relation``."""
    return Relation(added_name(relation.name, word), relation.keys, (), base=-1)


def _below(program: Program, relation: str) -> set[str]:
    """Return the relations that ``relation`` is derived from, itself included."""
    found, new = set[str](), {relation}
    while new:
        found |= new
        read = {a.relation for r in program.rules if r.head in new for a in r.body if a.relation is not None}
        new = read - found
    return found
