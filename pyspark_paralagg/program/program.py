"""The Program: relations, inputs and rules, as the user meant them.

A rule derives rows of its head from a body of atoms. Each atom names a relation or an input and binds
one variable a column (None where the rule never reads it); ``conditions`` constrain the variables, equality
conditions included (joins are found by the passes, not spelled twice). A step DataFrame with a union becomes
one rule for each branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.program.aggregators import AGGREGATORS, Aggregator
from pyspark_paralagg.program.functions.function import DEFAULT_SETTING, Setting

if TYPE_CHECKING:
    from pyspark_paralagg.program.custom import Custom
    from pyspark_paralagg.program.expr import Expr

AtomKind = Literal["join", "semi", "anti"]
Mode = Literal["auto", "iterate", "trust"]
JoinOrder = Literal["cost", "written"] | Mapping[str, Sequence[int]]
"""By cost, as a step has it, or as it has it in some branches of a relation, numbered from 1."""


@dataclass(frozen=True)
class Column:
    """Name and Spark type (``simpleString``) of a column."""

    name: str
    type: str
    nullable: bool = True


@dataclass(frozen=True)
class View:
    """Where a dependent column comes from that no rule writes: a relation of its stratum that has at least its keys.

    ``mcount`` counts its rows, ``msum`` adds up its ``column``, any other aggregator copies it. Rows with a null in one
    of the keys beyond the reading relation's own count 0.
    """

    relation: str
    column: str | None = None


@dataclass(frozen=True)
class Dependent:
    """A dependent column: its aggregator and, for ``min_by``/``max_by``, the column that decides.

    ``supplied`` are the columns that base rows and rule heads have in its stead; none: the column itself. For
    ``mcount`` they are the witness, for ``msum`` the contribution, then the witness; the pass ``track_witnesses`` makes
    relations of them, and sets ``view``. A user's own aggregator is ``custom``, for whose ``part``-th column this
    stands; the columns of one use follow each other.
    """

    column: Column
    aggregator: str
    order: str | None = None
    supplied: tuple[Column, ...] = ()
    view: View | None = None
    custom: Custom | None = None
    part: int = 0

    @property
    def definition(self) -> Aggregator:
        """What its aggregator is."""
        return AGGREGATORS[self.aggregator] if self.custom is None else self.custom.definition

    @property
    def is_idempotent(self) -> bool:
        """Whether a row that comes twice counts once."""
        return self.definition.is_idempotent


@dataclass(frozen=True)
class Relation:
    """A recursive relation: independent (key) columns, then dependent ones. Rows are in that order.

    ``base`` and ``initial`` are ids of inputs whose columns are ``supplied``, in the same order. ``settled``: the
    initial rows are a fixpoint already, which the base joins; the result is only what that changes.
    """

    name: str
    keys: tuple[Column, ...]
    dependents: tuple[Dependent, ...]
    base: int
    initial: int | None = None
    settled: bool = False

    @property
    def is_idempotent(self) -> bool:
        """Whether a row that comes twice counts once."""
        return all(d.is_idempotent for d in self.dependents)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Key columns, then dependent columns."""
        return (*self.keys, *(d.column for d in self.dependents))

    @property
    def supplied(self) -> tuple[Column, ...]:
        """The columns of base rows and of rule heads: ``columns``, but for witnesses; each name once."""
        given = (c for d in self.dependents for c in d.supplied or (d.column,))
        return tuple({c.name: c for c in (*self.keys, *given)}.values())


@dataclass(frozen=True)
class Input:
    """Rows from outside: ``source`` counts the DataFrames handed to the engine.

    ``columns`` names the variables of the source's own columns, ``exprs`` what is computed from each row
    (one an input column), ``filters`` what a row must satisfy. The engine sees only ``exprs``.
    Where ``relation`` is set, the rows are the result of that relation of a lower stratum and ``source`` is -1.
    ``name`` is what the user calls the source, for messages; ``is_set``: rows that come twice count once.
    """

    id: int
    source: int
    columns: tuple[Column, ...]
    exprs: tuple[Expr, ...]
    filters: tuple[Expr, ...] = ()
    size_bytes: int | None = None
    relation: str | None = None
    name: str | None = None
    is_set: bool = False


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
    """``head(exprs) :- body, conditions``. ``exprs`` follow the head's supplied columns, keys first.

    ``order`` is the user's join order, as positions in ``body``; atoms that it leaves out come last.
    """

    head: str
    exprs: tuple[Expr, ...]
    body: tuple[Atom, ...]
    conditions: tuple[Expr, ...] = ()
    place: str = ""
    order: tuple[int, ...] | None = None

    def rank(self, atom: int) -> tuple[int, int]:
        """Where the user's order, else the written one, has that atom of the body."""
        order = self.order or ()
        return (order.index(atom), atom) if atom in order else (len(order), atom)


@dataclass(frozen=True)
class Limit:
    """What ``.limit`` says of a relation's stratum: rows after so many iterations, or an end at a small change."""

    relation: str
    iterations: int | None = None
    tolerance: float | None = None
    on_limit: Literal["error", "return"] = "return"


@dataclass(frozen=True)
class Program:
    """All that a recursion says, and what was asked of its run.

    ``setting`` is what its session decides; ``climb_limit`` ends a run whose values may converge, but have not.
    """

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
    warnings: tuple[str, ...] = ()
    limits: tuple[Limit, ...] = ()
    strata: tuple[tuple[str, ...], ...] = ()
    classes: tuple[tuple[str, str], ...] = ()
    setting: Setting = DEFAULT_SETTING
    climb_limit: int = 100_000

    def relation(self, name: str) -> Relation:
        """The relation called ``name``."""
        return next(r for r in self.relations if r.name == name)

    def limit(self, stratum: tuple[str, ...]) -> tuple[int | None, Literal["error", "return"], float | None]:
        """Iterations, what happens there, and tolerance: of the stratum's own limit, else of the whole program."""
        own = [x for x in self.limits if x.relation in stratum]
        if not own:
            return self.max_iterations, self.on_limit, self.tolerance
        iterations = min((x.iterations for x in own if x.iterations is not None), default=None)
        on_limit: Literal["error", "return"] = own[0].on_limit if iterations is not None else "error"
        return iterations, on_limit, min((x.tolerance for x in own if x.tolerance is not None), default=None)

    def input(self, input_id: int) -> Input:
        """The input with this id."""
        return next(i for i in self.inputs if i.id == input_id)
