"""The Program: relations, inputs and rules, as the user meant them.

A rule derives rows of its head from a body of atoms. Each atom names a relation or an input and binds
one variable a column (None where the rule never reads it); ``conditions`` constrain the variables, equality
conditions included (joins are found by the passes, not spelled twice). A step DataFrame with a union becomes
one rule for each branch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pyspark_paralagg.program.expr import Expr

AtomKind = Literal["join", "semi", "anti"]
Mode = Literal["auto", "iterate", "trust"]


@dataclass(frozen=True)
class Column:
    """Name and Spark type (``simpleString``) of a column."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class Dependent:
    """A dependent column: its aggregator and, for ``min_by``/``max_by``, the column that decides."""

    column: Column
    aggregator: str
    order: str | None = None


@dataclass(frozen=True)
class Relation:
    """A recursive relation: independent (key) columns, then dependent ones. Rows are in that order.

    ``base`` and ``initial`` are ids of inputs whose columns are the relation's, in the same order.
    """

    name: str
    keys: tuple[Column, ...]
    dependents: tuple[Dependent, ...]
    base: int
    initial: int | None = None

    @property
    def columns(self) -> tuple[Column, ...]:
        """Key columns, then dependent columns."""
        return (*self.keys, *(d.column for d in self.dependents))


@dataclass(frozen=True)
class Input:
    """Rows from outside: ``source`` counts the DataFrames handed to the engine.

    ``columns`` names the variables of the source's own columns, ``exprs`` what is computed from each row
    (one an input column), ``filters`` what a row must satisfy. The engine sees only ``exprs``.
    Where ``relation`` is set, the rows are the result of that relation of a lower stratum and ``source`` is -1.
    """

    id: int
    source: int
    columns: tuple[Column, ...]
    exprs: tuple[Expr, ...]
    filters: tuple[Expr, ...] = ()
    size_bytes: int | None = None
    relation: str | None = None


@dataclass(frozen=True)
class Atom:
    """One reading of a relation (``relation``) or an input (``input``) in a rule's body.

    ``variables`` has one entry a column of the relation, or one an ``exprs`` entry of the input.
    """

    variables: tuple[str | None, ...]
    relation: str | None = None
    input: int | None = None
    kind: AtomKind = "join"


@dataclass(frozen=True)
class Rule:
    """``head(exprs) :- body, conditions``. ``exprs`` follow the head's columns, keys first."""

    head: str
    exprs: tuple[Expr, ...]
    body: tuple[Atom, ...]
    conditions: tuple[Expr, ...] = ()
    place: str = ""


@dataclass(frozen=True)
class Program:
    """All that a recursion says, and what was asked of its run."""

    relations: tuple[Relation, ...]
    inputs: tuple[Input, ...]
    rules: tuple[Rule, ...]
    name: str = "fixpoint"
    mode: Mode = "auto"
    assume: tuple[Expr, ...] = ()
    max_iterations: int | None = None
    on_limit: Literal["error", "return"] = "error"
    tolerance: float | None = None
    notes: tuple[str, ...] = ()
    strata: tuple[tuple[str, ...], ...] = ()
    classes: tuple[tuple[str, str], ...] = ()

    def relation(self, name: str) -> Relation:
        """The relation called ``name``."""
        return next(r for r in self.relations if r.name == name)

    def input(self, input_id: int) -> Input:
        """The input with this id."""
        return next(i for i in self.inputs if i.id == input_id)
