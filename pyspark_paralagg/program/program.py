"""Define the Program: the user's relations, inputs and rules.

A rule derives rows of its head from a body of atoms. Each atom names a relation or an input, and binds one variable for
each column (None if the rule does not read it). ``conditions`` constrain the variables. Joins are equality conditions
too; the passes find them. A step DataFrame with a union becomes one rule for each branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.program.aggregators import AGGREGATORS, Aggregator
from pyspark_paralagg.program.functions.function import DEFAULT_SETTING, Setting

if TYPE_CHECKING:
    from pyspark_paralagg.program.custom import Custom
    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.functor import Functor
    from pyspark_paralagg.program.trace import Trace

AtomKind = Literal["join", "semi", "anti"]
Mode = Literal["auto", "iterate", "trust"]
JoinOrder = Literal["cost", "written"] | Mapping[str, Sequence[int]]
"""By cost, in the order of the step, or in the order of the step for some branches of a relation, counted from 1."""


@dataclass(frozen=True)
class Column:
    """Name and Spark type (``simpleString``) of a column; ``packed`` is the user's type if the engine stores texts."""

    name: str
    type: str
    nullable: bool = True
    packed: str | None = None


@dataclass(frozen=True)
class View:
    """The origin of a dependent column that no rule writes: a relation of its stratum that has at least its keys.

    ``mcount`` counts the rows of that relation, ``msum`` sums its ``column``, ``h_index`` compares it, up to the least
    ``total``; any other aggregator copies it. Rows with a null in one of the additional keys count 0.
    """

    relation: str
    column: str | None = None
    total: str | None = None


@dataclass(frozen=True)
class Dependent:
    """A dependent column: its aggregator and, for ``min_by``/``max_by``, the ``order`` column.

    ``supplied`` are the columns that base rows and rule heads have in its place; if empty, the column itself. For
    ``mcount`` they are the witness, for ``msum`` and ``h_index`` what a witness has, then the witness. The pass
    ``track_witnesses`` makes relations of them, and sets ``view``. ``custom`` is a user-defined aggregator, and this is
    its ``part``-th column; the columns of one use are consecutive.
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
        """Return the definition of its aggregator."""
        return AGGREGATORS[self.aggregator] if self.custom is None else self.custom.definition

    @property
    def is_idempotent(self) -> bool:
        """Return whether duplicate rows count once."""
        return self.definition.is_idempotent


@dataclass(frozen=True)
class Relation:
    """A recursive relation. Its columns are the independent (key) columns, then the dependent ones.

    ``base`` and ``initial`` are ids of inputs whose columns are ``supplied``, in the same order. ``settled``: the
    initial rows are a fixpoint without the base; the result is only the rows that the base changes. ``traces`` are
    columns of hops and paths, which ``trace_paths`` turns into dependents and further relations. ``numbered``: readers
    find in the last key the number of the row, in the order of the other keys; the relation does not recurse.
    ``follows``: the relation whose rows these are, with hops and parents that a search adds (``trace_paths``).
    """

    name: str
    keys: tuple[Column, ...]
    dependents: tuple[Dependent, ...]
    base: int
    initial: int | None = None
    settled: bool = False
    traces: tuple[Trace, ...] = ()
    numbered: bool = False
    follows: str | None = None

    @property
    def is_idempotent(self) -> bool:
        """Return whether duplicate rows count once."""
        return all(d.is_idempotent for d in self.dependents)

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return key columns, then dependent columns."""
        return (*self.keys, *(d.column for d in self.dependents))

    @property
    def supplied(self) -> tuple[Column, ...]:
        """Return the columns of base rows and of rule heads: ``columns``, except for witnesses; each name once."""
        supplied = (c for d in self.dependents for c in d.supplied or (d.column,))
        return tuple({c.name: c for c in (*self.keys, *supplied)}.values())


@dataclass(frozen=True)
class Input:
    """Rows from outside; ``source`` is the number of a DataFrame passed to the engine.

    ``columns`` are the variables of the source's own columns. ``exprs`` are the input's columns, computed from each
    row, and ``filters`` are conditions on a row. Rules read only ``exprs``. If ``relation`` is set, the rows are the
    result of that relation of a lower stratum, and ``source`` is -1. ``name`` is the user's name of the source, for
    messages. ``is_set``: duplicate rows count once.
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
    """One read of a relation (``relation``) or an input (``input``) in a rule's body.

    ``variables`` has one entry for each column of the relation, or for each entry of the input's ``exprs``.
    """

    variables: tuple[str | None, ...]
    relation: str | None = None
    input: int | None = None
    kind: AtomKind = "join"

    @property
    def bound(self) -> frozenset[str]:
        """Return the variables that it binds."""
        return frozenset(v for v in self.variables if v is not None)


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
        """Return the sort key of an atom of the body in the user's join order, else in the written order."""
        order = self.order or ()
        return (order.index(atom), atom) if atom in order else (len(order), atom)


@dataclass(frozen=True)
class Limit:
    """The ``.limit`` of a relation's stratum: an end after ``iterations``, or at a change below ``tolerance``.

    ``.limitsize``: an end after the first iteration with ``rows`` rows; the relation is a set, alone in its stratum.
    """

    relation: str
    iterations: int | None = None
    tolerance: float | None = None
    on_limit: Literal["error", "return"] = "return"
    rows: int | None = None


@dataclass(frozen=True)
class Program:
    """A recursion and the options of its run.

    ``setting`` has the session's confs. ``climb_limit`` is the iteration after which a run fails whose values still
    change and may or may not converge. ``functors`` are those of the text: functions of this process.
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
    functors: tuple[Functor, ...] = ()
    max_rows: int | None = None

    def relation(self, name: str) -> Relation:
        """Return the relation called ``name``."""
        return next(r for r in self.relations if r.name == name)

    def limit(self, stratum: tuple[str, ...]) -> tuple[int | None, Literal["error", "return"], float | None]:
        """Return iterations, ``on_limit`` and tolerance: of the stratum's own limit, else of the whole program."""
        limits = [x for x in self.limits if x.relation in stratum]
        if not limits:
            return self.max_iterations, self.on_limit, self.tolerance
        iterations = min((x.iterations for x in limits if x.iterations is not None), default=None)
        on_limit: Literal["error", "return"] = limits[0].on_limit if iterations is not None else "error"
        return iterations, on_limit, min((x.tolerance for x in limits if x.tolerance is not None), default=None)

    def row_limit(self, stratum: tuple[str, ...]) -> int | None:
        """Return the number of rows after which a stratum ends; None if nothing limits it."""
        return min((x.rows for x in self.limits if x.relation in stratum and x.rows is not None), default=self.max_rows)

    def input(self, input_id: int) -> Input:
        """Return the input with this id."""
        return next(i for i in self.inputs if i.id == input_id)

    def with_new_input(self, rows: Input) -> tuple[Program, int]:
        """Return the program with ``rows`` as a further input, even if an equal one exists, and its new id."""
        added = replace(rows, id=max(i.id for i in self.inputs) + 1)
        return replace(self, inputs=(*self.inputs, added)), added.id
