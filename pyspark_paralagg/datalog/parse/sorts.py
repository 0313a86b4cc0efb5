"""Decide between value and condition where the grammar is ambiguous.

`f(x)` may be an atom or a call, `(...)` may group conditions or a value. Such a node stays ``Raw`` until a grammar
rule above it requires one of the two. Then ``term``, ``literal`` or ``head`` converts it, or raises a ``Problem``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from lark import Token

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.leaves import leaf
from pyspark_paralagg.datalog.parse.problems import Problem, place

if TYPE_CHECKING:
    from pyspark_paralagg.datalog.parse.syntax import Span

_CONSTRAINTS = ("match", "contains")
_RESERVED = ("min", "max", *_CONSTRAINTS)
AGGREGATOR_NAMES = frozenset((
    "MIN", "MAX", "SUM", "COUNT", "MCOUNT", "MSUM", "H_INDEX", "ANY", "ALL", "MIN_BY", "MAX_BY",
    "BITOR", "BITAND", "BIT_OR", "BIT_AND", "COLLECT_SET",
))  # fmt: skip


class Call(NamedTuple):
    """``name(args)``: an atom, a functor call or a constraint."""

    name: Token
    args: tuple[Raw, ...]
    span: Span


class Dollar(NamedTuple):
    """``$NAME(args)``: an aggregate in a head; elsewhere a branch of an algebraic data type."""

    name: Token
    args: tuple[Raw, ...]
    span: Span


class Group(NamedTuple):
    """A group in parentheses: ``(...)``."""

    content: Raw
    span: Span


class Arguments(NamedTuple):
    """The arguments of a call: ``(a, b)``."""

    items: tuple[Raw, ...]
    span: Span


Raw = Token | Call | Dollar | Group | syntax.Term | syntax.Body


def term(node: Raw) -> syntax.Term:
    """Convert ``node`` to a value."""
    if isinstance(node, syntax.Term):
        return node
    if isinstance(node, Token):
        return leaf(node)
    if isinstance(node, Call):
        return syntax.Apply(str(node.name), tuple(term(a) for a in node.args), node.span)
    if isinstance(node, Group):
        return term(node.content)
    if isinstance(node, Dollar):
        if is_aggregate(node):
            refuse_dollar(node)
        return syntax.Branch(str(node.name)[1:], tuple(term(a) for a in node.args), node.span)
    hint = None
    if isinstance(node, syntax.Conjunction | syntax.Disjunction | syntax.Negation):
        hint = "write one expression in parentheses: `(a + b)`"
    elif isinstance(node, syntax.Comparison):
        hint = "write the comparison as a part of the body: `p(x) :- q(x), x < 5.`"
    raise Problem(f"this is a condition, but a value is expected: {_KINDS[type(node)]}", node.span, hint)


_KINDS = {
    syntax.Comparison: "a comparison",
    syntax.Negation: "a negation",
    syntax.Conjunction: "a list of conditions",
    syntax.Disjunction: "a list of conditions",
    syntax.Atom: "an atom",
    syntax.Constraint: "a constraint",
}


def literal(node: Raw) -> syntax.Literal_:
    """Convert ``node`` to a condition."""
    if isinstance(node, Call):
        if str(node.name) in _CONSTRAINTS:
            name: Any = str(node.name)
            return syntax.Constraint(name, tuple(term(a) for a in node.args), node.span)
        return _atom(node, tuple(term(a) for a in node.args))
    if isinstance(node, Group):
        return literal(node.content)
    if isinstance(node, Token) and node.type == "TRUTH":
        return syntax.Constraint("true" if node == "true" else "false", (), place(node))
    if isinstance(node, Dollar):
        refuse_dollar(node)
    if isinstance(node, Token | syntax.Term):
        span = place(node) if isinstance(node, Token) else node.span
        hint = "write a comparison such as `x < 5`, or an atom such as `edge(x, y)`"
        if isinstance(node, Token) and node.type == "NAME":
            hint = f"write `{node}()` for an atom, or compare the variable: `{node} = 1`"
        raise Problem("this is a value, but a condition is expected", span, hint)
    return node


def _atom(call: Call, args: tuple[syntax.Term | syntax.HeadAggregate, ...]) -> syntax.Atom:
    name = str(call.name)
    if name in _RESERVED or name in _CONSTRAINTS:
        raise Problem(
            f"`{name}` is a keyword, not a relation name", place(call.name), f"use another name, such as `{name}_of`"
        )
    return syntax.Atom(name, args, call.span)


def head(call: Call) -> syntax.Atom:
    """Convert ``call`` to the head of a rule, whose arguments may be aggregates."""
    return _atom(call, tuple(_aggregate(a) if isinstance(a, Dollar) else term(a) for a in call.args))


def _aggregate(node: Dollar) -> syntax.HeadAggregate:
    args = tuple(a if isinstance(a, syntax.Comparison) else term(a) for a in (_ungrouped(a) for a in node.args))
    return syntax.HeadAggregate(str(node.name)[1:].upper(), args, node.span, str(node.name)[1:])


def is_aggregate(node: Dollar) -> bool:
    """Return whether ``node`` can only be an aggregate; else it may be a branch of an algebraic data type."""
    name = str(node.name)[1:]
    return name.isupper() and name in AGGREGATOR_NAMES


def _ungrouped(node: Raw) -> Raw:
    while isinstance(node, Group):
        node = node.content
    return node


_IN_A_BODY = "write `min x : { ... }` in a body; to compute with a head's aggregate, read its relation in another rule"


def refuse_dollar(
    node: Dollar, message: str = "an aggregate must be a whole argument of a rule's head", hint: str = _IN_A_BODY
) -> NoReturn:
    """Raise the problem of an aggregate outside a head."""
    name = str(node.name)
    raise Problem(f"`{name}` is in the wrong place: {message}", node.span, hint)
