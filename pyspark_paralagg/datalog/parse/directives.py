"""Build the syntax nodes of directives: declarations, types, inputs, outputs, limits, assumptions and plans.

``transform`` derives its transformer from the class ``Directives``, which lark calls for each grammar rule.
"""

# ruff: noqa: D102  (each method handles the grammar rule of the same name)

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, NamedTuple

from lark import Token, Transformer

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.leaves import number, string
from pyspark_paralagg.datalog.parse.problems import Problem, between, place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_paralagg.datalog.parse.syntax import Span

_KINDS = ("input", "output", "printsize", "limitsize")
_DELTA_PREFIXES = ("Δ", "∆", "delta_", "delta")


class Parameter(NamedTuple):
    """A parameter ``name=value``: its tokens, and its value as text."""

    name: Token
    value: str
    token: Token
    span: Span


class Choice(NamedTuple):
    """The keys of a ``choice-domain x, (y, z)``."""

    keys: tuple[tuple[str, ...], ...]
    span: Span


class Bracketed(NamedTuple):
    """The items between brackets: ``(a=1, b="text")``, ``(x: number)``."""

    items: tuple[Any, ...]
    span: Span


class Change(NamedTuple):
    """The tokens of an end condition: ``{sum[Δrank] < 0.001}``."""

    items: tuple[Token, ...]
    span: Span


class Directives(Transformer[Token, Any]):
    """The transformer for directives; each method handles one grammar rule."""

    def text(self, children: list[Any]) -> list[syntax.Clause]:
        """Return all clauses in one flat list; a directive with several names yields several clauses."""
        return [c for child in children for c in (child if isinstance(child, list) else [child])]

    def names(self, children: list[Token]) -> list[Token]:
        return children[:]

    def declaration(self, children: list[Any]) -> list[syntax.Clause]:
        names, attributes, *tags = children[1:]
        span = between(children[0], children[-1])
        # Soufflé's old syntax allows directives such as `output` after a declaration.
        choices = tuple(key for t in tags if isinstance(t, Choice) for key in t.keys)
        words = [t for t in tags if isinstance(t, Token)]
        directives = [t for t in words if t in _KINDS]
        qualifiers = tuple(str(t) for t in words if t not in _KINDS)
        declared = [syntax.Declaration(str(n), attributes.items, qualifiers, choices, span) for n in names]
        kinds: list[Any] = [str(t) for t in directives]
        return [*declared, *(syntax.Directive(k, str(n), (), span) for k in kinds for n in names)]

    def choice(self, children: list[Any]) -> Choice:
        last = children[-1]
        return Choice(tuple(tuple(map(str, key)) for key in children[1:]), between(children[0], last[-1]))

    def key(self, children: list[Token]) -> list[Token]:
        return children[:]

    def attributes(self, children: list[Any]) -> Bracketed:
        items = tuple(c for c in children if isinstance(c, syntax.Attribute))
        return Bracketed(items, between(children[0], children[-1]))

    def attribute(self, children: list[Token]) -> syntax.Attribute:
        name, type_ = children
        return syntax.Attribute(str(name), str(type_), between(name, type_))

    def functor(self, children: list[Any]) -> syntax.Functor:
        word, name, parameters, type_ = children
        result = syntax.Attribute("", str(type_), place(type_))
        return syntax.Functor(str(name), parameters.items, result, between(word, type_))

    def functor_types(self, children: list[Any]) -> Bracketed:
        return self.attributes(children)

    def functor_type(self, children: list[Token]) -> syntax.Attribute:
        *name, type_ = children
        return syntax.Attribute(str(name[0]) if name else "", str(type_), between(children[0], type_))

    def type_alias(self, children: list[Token]) -> syntax.TypeAlias:
        names = [str(c) for c in children if c.type == "NAME"]
        if len(names) == 1:  # Soufflé's old forms: `.number_type Id`, `.symbol_type Name`, `.type Name`
            names.append("number" if children[0] == ".number_type" else "symbol")
        return syntax.TypeAlias(names[0], tuple(names[1:]), between(children[0], children[-1]))

    def fields(self, children: list[Any]) -> Bracketed:
        return self.attributes(children)

    def record_type(self, children: list[Any]) -> syntax.RecordType:
        return syntax.RecordType(str(children[1]), children[-1].items, between(children[0], children[-1]))

    def branch_type(self, children: list[Any]) -> syntax.BranchType:
        fields = tuple(c for c in children if isinstance(c, syntax.Attribute))
        return syntax.BranchType(str(children[0]), fields, between(children[0], children[-1]))

    def algebraic_type(self, children: list[Any]) -> syntax.AlgebraicType:
        branches = tuple(c for c in children if isinstance(c, syntax.BranchType))
        return syntax.AlgebraicType(str(children[1]), branches, between(children[0], children[-1]))

    def directive(self, children: list[Any]) -> list[syntax.Clause]:
        word, names = children[0], children[1]
        parameters = tuple((str(p.name), p.value) for p in children[2].items) if len(children) > 2 else ()  # noqa: PLR2004
        kind: Any = str(word)[1:]
        last = children[2] if parameters else names[-1]
        return [syntax.Directive(kind, str(n), parameters, between(word, last)) for n in names]

    def parameters(self, children: list[Any]) -> Bracketed:
        items = tuple(c for c in children if isinstance(c, Parameter))
        return Bracketed(items, between(children[0], children[-1]))

    def parameter(self, children: list[Any]) -> Parameter:
        name, value = children[0], children[2]
        token = value[-1]
        text = string(token) if token.type == "STRING" else "".join(str(t) for t in value)
        return Parameter(name, text, token, between(name, token))

    def value(self, children: list[Token]) -> list[Token]:
        return children[:]

    def pragma(self, children: list[Token]) -> syntax.Pragma:
        value = string(children[2]) if len(children) > 2 else ""  # noqa: PLR2004
        return syntax.Pragma(string(children[1]), value, between(children[0], children[-1]))

    def component_type(self, children: list[Token]) -> syntax.ComponentType:
        names = tuple(str(c) for c in children if c.type == "NAME")
        return syntax.ComponentType(names[0], names[1:], between(children[0], children[-1]))

    def component(self, children: list[Any]) -> syntax.Component:
        types = [c for c in children[1:] if isinstance(c, syntax.ComponentType)]
        clauses = self.text([c for c in children[1:] if not isinstance(c, syntax.ComponentType)])
        for functor in (c for c in clauses if isinstance(c, syntax.Functor)):
            raise Problem("a component declares no functors", functor.span, "declare it outside of the component")
        return syntax.Component(types[0], tuple(types[1:]), tuple(clauses), between(children[0], types[-1]))

    def init(self, children: list[Any]) -> syntax.Init:
        return syntax.Init(str(children[1]), children[-1], between(children[0], children[-1]))

    def override(self, children: list[Any]) -> list[syntax.Clause]:
        return [syntax.Override(str(n), place(n)) for n in children[1]]

    def limit(self, children: list[Any]) -> syntax.Limit:
        word, relation, bound = children
        span = between(word, bound)
        if isinstance(bound, Change):
            return syntax.Limit(str(relation), tolerance=_tolerance(bound.items, relation), span=span)
        limits: dict[str, Any] = {}
        for p in bound.items:
            if p.name not in ("iterations", "tolerance"):
                close = difflib.get_close_matches(str(p.name), ("iterations", "tolerance"), n=1)
                hint = f"did you mean `{close[0]}`?" if close else "use `iterations` or `tolerance`"
                raise Problem(f"`.limit` has no parameter `{p.name}`", place(p.name), hint)
            limits[str(p.name)] = _positive(p)
        if not limits:
            hint = "write `(iterations=20)`, `(tolerance=0.001)` or both"
            raise Problem("`.limit` has no limit", bound.span, hint)
        return syntax.Limit(str(relation), **limits, span=span)

    def change(self, children: list[Token]) -> Change:
        return Change(tuple(children[1:-1]), between(children[0], children[-1]))

    def assume(self, children: list[Any]) -> list[syntax.Clause]:
        return children[1:]

    def bound(self, children: list[Token]) -> syntax.Assume:
        column, sign, value = children[0], children[1], children[-1]
        if sign == "!=":
            raise Problem("`.assume` needs a bound, but `!=` is none", place(sign), "write `<`, `<=`, `>` or `>=`")
        relation, _, name = str(column).rpartition(".")
        literal = number(value).value
        op: Any = str(sign)
        span = between(column, value)
        return syntax.Assume(name, op, -literal if len(children) > 3 else literal, relation or None, span)  # noqa: PLR2004

    def plan(self, children: list[Any]) -> syntax.Plan:
        orders = tuple((version, order) for version, order, _ in children[1:])
        return syntax.Plan(orders, between(children[0], children[-1][2]))

    def order(self, children: list[Token]) -> tuple[int, tuple[int, ...], Token]:
        version, *atoms = [_whole(c) for c in children if c.type == "NUMBER"]
        return version, tuple(atoms), children[-1]


def _whole(token: Token) -> int:
    value = number(token).value
    if isinstance(value, float):
        raise Problem(f"`{token}` is not a whole number", place(token))
    return value


def _positive(parameter: Parameter) -> int | float:
    name, token = str(parameter.name), parameter.token
    value = number(token).value if token.type == "NUMBER" else -1
    if parameter.value.startswith("-") or value < 0 or (name == "iterations" and isinstance(value, float)):
        expected = "a whole number such as 20" if name == "iterations" else "a number such as 0.001"
        raise Problem(f"`{name}` is {expected}, not `{token}`", parameter.span)
    return value if name == "iterations" else float(value)


def _tolerance(change: Sequence[Token], relation: Token) -> float:
    """Return the tolerance of an end condition in PowerLog's syntax: `sum[Δrank] < 0.001`."""
    function, argument, operator, limit = change[0], change[2:-3], change[-2], change[-1]
    hint = f"write `{{sum[Δ{relation}] < 0.001}}`"
    if function != "sum":
        raise Problem(f"an end condition uses the sum of the changes, not `{function}`", place(function), hint)
    argument_text = "".join(str(t) for t in argument)
    prefix = next((p for p in _DELTA_PREFIXES if argument_text.startswith(p)), None)
    if prefix is None or argument_text.removeprefix(prefix) not in ("", relation):
        raise Problem(f"`{argument_text}` is not the change of `{relation}`", between(argument[0], argument[-1]), hint)
    if operator not in ("<", "<="):
        raise Problem("an end condition tests whether the change is small", place(operator), hint)
    return float(number(limit).value)
