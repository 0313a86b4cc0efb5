"""The syntax tree of a Datalog text, as it was written: nothing is resolved, every node knows its place.

First station of a text: **parse** -> ``resolve`` -> ``Program``. Nodes are frozen, and ``span`` takes no part in
equality, so that two texts that say the same have equal trees.
"""

# ruff: noqa: RUF009  (_span() is a dataclass field like any other)

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True)
class Span:
    """Where something stands: line and column count from 1, ``end_column`` is one past the last character."""

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
    """``x``."""

    name: str
    span: Span = _span()


@dataclass(frozen=True)
class Wildcard:
    """``_``: a variable that is read nowhere."""

    span: Span = _span()


@dataclass(frozen=True)
class Number:
    """``7``, ``0x1f``, ``0b101``, ``7u`` (``is_unsigned``), ``0.5``, ``1e-3`` (a float)."""

    value: int | float
    is_unsigned: bool = False
    span: Span = _span()


@dataclass(frozen=True)
class String:
    """``"text"``, escapes resolved."""

    value: str
    span: Span = _span()


@dataclass(frozen=True)
class Apply:
    """An operator or a functor: ``+ - * / % ^ band bor bxor bshl bshr bnot land lor lnot``, ``neg`` (minus), a name.

    ``name`` is the operator's sign or the functor's name in lower case as written (``cat``, ``strlen``, ``max``,
    ``to_number``). Infix forms ``a band b`` and calls ``max(a, b)`` look the same here.
    """

    name: str
    args: tuple[Term, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Cast:
    """``as(x, type)``."""

    term: Term
    type: str
    span: Span = _span()


@dataclass(frozen=True)
class BodyAggregate:
    """``sum v : { body }``, ``count : { body }``, ``min v : edge(x, v)``; ``value`` is None for ``count``."""

    function: Literal["count", "sum", "min", "max", "mean"]
    value: Term | None
    body: Body
    span: Span = _span()


@dataclass(frozen=True)
class HeadAggregate:
    """``$MIN(l + w)``, ``$COUNT``: an argument of a rule's head. ``name`` is without the dollar, in upper case."""

    name: str
    args: tuple[Term | Comparison, ...]
    span: Span = _span()


Term = Variable | Wildcard | Number | String | Apply | Cast | BodyAggregate

# --- bodies ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Atom:
    """``edge(x, _, 3)``. In a head, arguments may be ``HeadAggregate``."""

    relation: str
    args: tuple[Term | HeadAggregate, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Negation:
    """``!edge(x, y)`` or ``!(a; b, c)``."""

    body: Atom | Comparison | Constraint | Disjunction | Conjunction
    span: Span = _span()


@dataclass(frozen=True)
class Comparison:
    """``a < b``; ``op`` is one of ``= != < <= > >=``."""

    op: Literal["=", "!=", "<", "<=", ">", ">="]
    left: Term
    right: Term
    span: Span = _span()


@dataclass(frozen=True)
class Constraint:
    """``match(pattern, text)``, ``contains(part, text)``; ``true`` and ``false`` have no arguments."""

    name: Literal["match", "contains", "true", "false"]
    args: tuple[Term, ...] = ()
    span: Span = _span()


@dataclass(frozen=True)
class Conjunction:
    """``a, b, c``."""

    parts: tuple[Literal_, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Disjunction:
    """``a; b``."""

    parts: tuple[Literal_, ...]
    span: Span = _span()


Literal_ = Atom | Negation | Comparison | Constraint | Conjunction | Disjunction
Body = Literal_

# --- clauses and directives ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plan:
    """``.plan 0:(2,1), 1:(1,2)`` after a rule: join orders by hand; atoms count from 1, versions from 0."""

    orders: tuple[tuple[int, tuple[int, ...]], ...]
    span: Span = _span()


@dataclass(frozen=True)
class Rule:
    """``a(x), b(x) :- body.``; a fact has no body. ``text`` is the clause as written, for messages."""

    heads: tuple[Atom, ...]
    body: Body | None = None
    plan: Plan | None = None
    text: str = field(default="", compare=False)
    span: Span = _span()


@dataclass(frozen=True)
class Attribute:
    """``name: type`` of a declaration."""

    name: str
    type: str
    span: Span = _span()


@dataclass(frozen=True)
class Declaration:
    """``.decl a, b(x: number, y: symbol) inline``: one for each name. Qualifiers as written, in lower case."""

    relation: str
    attributes: tuple[Attribute, ...]
    qualifiers: tuple[str, ...] = ()
    span: Span = _span()


@dataclass(frozen=True)
class TypeAlias:
    """``.type Node <: symbol``, ``.type Node = number``, ``.type Either = A | B`` (``types`` has both)."""

    name: str
    types: tuple[str, ...]
    span: Span = _span()


@dataclass(frozen=True)
class Directive:
    """``.input edge(filename="e.csv", delimiter=",")``; one for each relation that it names."""

    kind: Literal["input", "output", "printsize", "limitsize"]
    relation: str
    parameters: tuple[tuple[str, str], ...] = ()
    span: Span = _span()


@dataclass(frozen=True)
class Limit:
    """``.limit rank(iterations=20)``, ``.limit rank(tolerance=0.001)``, ``.limit rank {sum[Δrank] < 0.001}``."""

    relation: str
    iterations: int | None = None
    tolerance: float | None = None
    span: Span = _span()


@dataclass(frozen=True)
class Assume:
    """``.assume w >= 0``, ``.assume edge.w >= 0``: what the proof may use, guarded when the data is loaded."""

    column: str
    op: Literal["<", "<=", ">", ">="]
    value: int | float
    relation: str | None = None
    span: Span = _span()


Clause = Rule | Declaration | TypeAlias | Directive | Limit | Assume


@dataclass(frozen=True)
class Text:
    """A whole text: its clauses in order, and the source for messages."""

    clauses: tuple[Clause, ...]
    source: str = field(default="", compare=False, repr=False)
    name: str = field(default="<text>", compare=False)
