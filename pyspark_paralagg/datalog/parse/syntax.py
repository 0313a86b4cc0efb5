"""Define the syntax tree of a Datalog text: as written, with no names or types resolved.

First stage of a text: **parse** -> ``resolve`` -> ``Program``. Nodes are frozen. Each has a ``span``, which equality
ignores, so texts that differ only in layout have equal trees.
"""

# ruff: noqa: RUF009  (_span() is a dataclass field like any other)

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Span:
    """A place in a text. Line and column count from 1; ``end_column`` is one past the last character."""

    line: int
    column: int
    end_line: int
    end_column: int


NOWHERE = Span(0, 0, 0, 0)


def _span() -> Span:
    return field(default=NOWHERE, compare=False, repr=False)


# --- terms -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Variable:
    """A variable: ``x``."""

    name: str
    span: Span = _span()


@dataclass(frozen=True)
class Wildcard:
    """An unnamed variable, which nothing reads: ``_``."""

    span: Span = _span()


@dataclass(frozen=True)
class Number:
    """A number: ``7``, ``0x1f``, ``0b101``, ``7u`` (``is_unsigned``), ``0.5``, ``1e-3`` (a float)."""

    value: int | float
    is_unsigned: bool = False
    span: Span = _span()


@dataclass(frozen=True)
class String:
    """A string, ``"text"``, with escapes resolved."""

    value: str
    span: Span = _span()


@dataclass(frozen=True)
class Nil:
    """The record without fields that ends a list: ``nil``."""

    span: Span = _span()


@dataclass(frozen=True)
class Record:
    """A record: ``[head, tail]``."""

    args: tuple[Term, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Branch:
    """A branch of an algebraic data type: ``$Add(x, y)``, ``$Leaf``. ``name`` has no dollar."""

    name: str
    args: tuple[Term, ...] = ()
    span: Span = _span()


@dataclass(frozen=True)
class Apply:
    """An operator or functor: ``+ - * / % ^ band bor bxor bshl bshr bnot land lor lnot``, ``neg`` (minus), a name.

    ``name`` is the operator's sign, or the functor's name in lower case as written (``cat``, ``strlen``, ``max``,
    ``to_number``); that of a user's functor begins with its sign: ``@f``. Infix operators ``a band b`` and calls
    ``max(a, b)`` have the same form.
    """

    name: str
    args: tuple[Term, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Cast:
    """A type cast: ``as(x, type)``."""

    term: Term
    type: str
    span: Span = _span()


@dataclass(frozen=True)
class BodyAggregate:
    """An aggregate in a body: ``sum v : { body }``, ``min v : edge(x, v)``.

    ``value`` is None for ``count : { body }``.
    """

    function: Literal["count", "sum", "min", "max", "mean"]
    value: Term | None
    body: Body
    span: Span = _span()


@dataclass(frozen=True)
class HeadAggregate:
    """An aggregate in a head: ``$MIN(l + w)``, ``$COUNT``. ``name`` is in upper case, without the dollar."""

    name: str
    args: tuple[Term | Comparison, ...]
    span: Span = _span()
    written: str = field(default="", compare=False, repr=False)


Term = Variable | Wildcard | Number | String | Nil | Record | Branch | Apply | Cast | BodyAggregate

# --- bodies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Atom:
    """An atom: ``edge(x, _, 3)``. In a head, arguments may be ``HeadAggregate``."""

    relation: str
    args: tuple[Term | HeadAggregate, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Negation:
    """A negation: ``!edge(x, y)`` or ``!(a; b, c)``."""

    body: Atom | Comparison | Constraint | Disjunction | Conjunction
    span: Span = _span()


@dataclass(frozen=True)
class Comparison:
    """A comparison: ``a < b``. ``op`` is one of ``= != < <= > >=``."""

    op: Literal["=", "!=", "<", "<=", ">", ">="]
    left: Term
    right: Term
    span: Span = _span()


@dataclass(frozen=True)
class Constraint:
    """A constraint: ``match(pattern, text)``, ``contains(part, text)``. ``true`` and ``false`` have no arguments."""

    name: Literal["match", "contains", "true", "false"]
    args: tuple[Term, ...] = ()
    span: Span = _span()


@dataclass(frozen=True)
class Conjunction:
    """A conjunction: ``a, b, c``."""

    parts: tuple[Literal_, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Disjunction:
    """A disjunction: ``a; b``."""

    parts: tuple[Literal_, ...]
    span: Span = _span()


Literal_ = Atom | Negation | Comparison | Constraint | Conjunction | Disjunction
Body = Literal_

# --- clauses and directives ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """The join orders of a rule: ``.plan 0:(2,1), 1:(1,2)``. Atoms count from 1, versions from 0."""

    orders: tuple[tuple[int, tuple[int, ...]], ...]
    span: Span = _span()


@dataclass(frozen=True)
class Rule:
    """A rule: ``a(x), b(x) :- body.`` A fact has no body. ``text`` is the clause as written, for messages."""

    heads: tuple[Atom, ...]
    body: Body | None = None
    plan: Plan | None = None
    text: str = field(default="", compare=False)
    span: Span = _span()


@dataclass(frozen=True)
class Subsumption:
    """A subsumption: ``sp(x, c1) <= sp(x, c2) :- c2 <= c1.`` removes the row of ``lesser``."""

    lesser: Atom
    greater: Atom
    body: Body
    span: Span = _span()


@dataclass(frozen=True)
class Attribute:
    """An attribute of a declaration: ``name: type``."""

    name: str
    type: str
    span: Span = _span()


@dataclass(frozen=True)
class Declaration:
    """One name of ``.decl a, b(x: number, y: symbol) inline choice-domain x, (x, y)``.

    Qualifiers are in lower case, as written; ``choices`` are the keys of ``choice-domain``.
    """

    relation: str
    attributes: tuple[Attribute, ...]
    qualifiers: tuple[str, ...] = ()
    choices: tuple[tuple[str, ...], ...] = ()
    span: Span = _span()


@dataclass(frozen=True)
class Functor:
    """A functor of the user: ``.functor f(x: symbol, number): number``. An argument may have no name: ``""``."""

    name: str
    parameters: tuple[Attribute, ...]
    result: Attribute
    span: Span = _span()


@dataclass(frozen=True)
class TypeAlias:
    """A type: ``.type Node <: symbol``, ``.type Node = number``, ``.type Either = A | B`` (two ``types``)."""

    name: str
    types: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True)
class RecordType:
    """A record type: ``.type List = [head: number, tail: List]``."""

    name: str
    fields: tuple[Attribute, ...]
    span: Span = _span()


@dataclass(frozen=True)
class BranchType:
    """A branch of an algebraic data type: ``Add {left: Expr, right: Expr}``."""

    name: str
    fields: tuple[Attribute, ...]
    span: Span = _span()


@dataclass(frozen=True)
class AlgebraicType:
    """An algebraic data type: ``.type Expr = Number {n: number} | Add {left: Expr, right: Expr}``."""

    name: str
    branches: tuple[BranchType, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Directive:
    """One relation of a directive such as ``.input edge(filename="e.csv", delimiter=",")``."""

    kind: Literal["input", "output", "printsize", "limitsize"]
    relation: str
    parameters: tuple[tuple[str, str], ...] = ()
    span: Span = _span()


@dataclass(frozen=True)
class Limit:
    """A limit: ``.limit rank(iterations=20)``, ``.limit rank(tolerance=0.001)``.

    ``.limit rank {sum[Δrank] < 0.001}`` is a tolerance, too.
    """

    relation: str
    iterations: int | None = None
    tolerance: float | None = None
    span: Span = _span()


@dataclass(frozen=True)
class Assume:
    """A bound that the proof may use: ``.assume w >= 0``, ``.assume edge.w >= 0``. The loader checks it."""

    column: str
    op: Literal["<", "<=", ">", ">="]
    value: int | float
    relation: str | None = None
    span: Span = _span()


@dataclass(frozen=True)
class Pragma:
    """An option of Soufflé's: ``.pragma "magic-transform" "*"``. It has no effect on the rows."""

    name: str
    value: str = ""
    span: Span = _span()


@dataclass(frozen=True)
class ComponentType:
    """A component with its parameters or arguments: ``Graph<Node>``."""

    name: str
    parameters: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True)
class Component:
    """A component: ``.comp Graph<N> : Base<N> { clauses }``."""

    type: ComponentType
    bases: tuple[ComponentType, ...]
    clauses: tuple[Clause, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Init:
    """An instance of a component: ``.init g = Graph<City>``."""

    name: str
    type: ComponentType
    span: Span = _span()


@dataclass(frozen=True)
class Override:
    """A relation of a base component whose rules a component replaces: ``.override edge``."""

    relation: str
    span: Span = _span()


Clause = (
    Rule
    | Subsumption
    | Declaration
    | Functor
    | TypeAlias
    | RecordType
    | AlgebraicType
    | Directive
    | Limit
    | Assume
    | Pragma
    | Component
    | Init
    | Override
)


@dataclass(frozen=True)
class TracedColumn:
    """A column ``$PATH(d)`` or ``$HOPS(d)``, which no rule computes.

    ``position`` is its own in the text, ``order`` that of the aggregate that decides, among the other columns; None for
    a relation of keys alone.
    """

    name: str
    position: int
    word: str
    order: int | None
    span: Span = _span()


@dataclass(frozen=True)
class Text:
    """A whole text: its clauses in order, and its source for messages.

    ``columns`` and ``structures`` are set if records were reduced to symbols: the structure of each column of the
    relations that have one, and the structures by name (``desugar.structures``). ``traces`` has the columns of hops
    and paths, by relation (``desugar.traces``).
    """

    clauses: tuple[Clause, ...]
    source: str = field(default="", compare=False, repr=False)
    name: str = field(default="<text>", compare=False)
    columns: Mapping[str, tuple[str | None, ...]] = field(default_factory=dict, compare=False, repr=False)
    structures: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    traces: Mapping[str, tuple[TracedColumn, ...]] = field(default_factory=dict, compare=False, repr=False)
