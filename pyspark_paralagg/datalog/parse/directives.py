"""The nodes of directives: declarations, types, inputs and outputs, limits, assumptions, plans."""

# ruff: noqa: D102  (each method is for the grammar's rule of its name)

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
_DELTAS = ("Δ", "∆", "delta_", "delta")


class Parameter(NamedTuple):
    """``name=value``: the tokens, and the value as text."""

    name: Token
    value: str
    token: Token
    span: Span


class Bracketed(NamedTuple):
    """``(a=1, b="text")``, ``(x: number)``: what stands between brackets."""

    items: tuple[Any, ...]
    span: Span


class Change(NamedTuple):
    """``{sum[Δrank] < 0.001}``: the tokens."""

    items: tuple[Token, ...]
    span: Span


class Directives(Transformer[Token, Any]):
    """One method for each of the grammar's rules of directives."""

    def text(self, children: list[Any]) -> list[syntax.Clause]:
        """All clauses; one directive may have become several."""
        return [c for child in children for c in (child if isinstance(child, list) else [child])]

    def names(self, children: list[Token]) -> list[Token]:
        return children[:]

    def declaration(self, children: list[Any]) -> list[syntax.Clause]:
        names, attributes, *tags = children[1:]
        span = between(children[0], children[-1])
        # Soufflé's old form: `output` behind a declaration is a directive.
        directives = [t for t in tags if t in _KINDS]
        qualifiers = tuple(str(t) for t in tags if t not in _KINDS)
        declared = [syntax.Declaration(str(n), attributes.items, qualifiers, span) for n in names]
        kinds: list[Any] = [str(t) for t in directives]
        return [*declared, *(syntax.Directive(k, str(n), (), span) for k in kinds for n in names)]

    def attributes(self, children: list[Any]) -> Bracketed:
        items = tuple(c for c in children if isinstance(c, syntax.Attribute))
        return Bracketed(items, between(children[0], children[-1]))

    def attribute(self, children: list[Token]) -> syntax.Attribute:
        name, type_ = children
        return syntax.Attribute(str(name), str(type_), between(name, type_))

    def type_alias(self, children: list[Token]) -> syntax.TypeAlias:
        names = [str(c) for c in children if c.type == "NAME"]
        if len(names) == 1:  # Soufflé's old forms: `.number_type Id`, `.symbol_type Name`, `.type Name`
            names.append("number" if children[0] == ".number_type" else "symbol")
        return syntax.TypeAlias(names[0], tuple(names[1:]), between(children[0], children[-1]))

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

    def limit(self, children: list[Any]) -> syntax.Limit:
        word, relation, what = children
        span = between(word, what)
        if isinstance(what, Change):
            return syntax.Limit(str(relation), tolerance=_tolerance(what.items, relation), span=span)
        found: dict[str, Any] = {}
        for p in what.items:
            if p.name not in ("iterations", "tolerance"):
                close = difflib.get_close_matches(str(p.name), ("iterations", "tolerance"), n=1)
                hint = f"did you mean `{close[0]}`?" if close else "there are `iterations` and `tolerance`"
                raise Problem(f"`.limit` has no parameter `{p.name}`", place(p.name), hint)
            found[str(p.name)] = _positive(p)
        if not found:
            hint = "write `(iterations=20)`, `(tolerance=0.001)` or both"
            raise Problem("`.limit` says no limit", what.span, hint)
        return syntax.Limit(str(relation), **found, span=span)

    def change(self, children: list[Token]) -> Change:
        return Change(tuple(children[1:-1]), between(children[0], children[-1]))

    def assume(self, children: list[Any]) -> list[syntax.Clause]:
        return children[1:]

    def bound(self, children: list[Token]) -> syntax.Assume:
        column, sign, value = children[0], children[1], children[-1]
        if sign == "!=":
            raise Problem("`.assume` bounds a column: `!=` bounds nothing", place(sign), "write `<`, `<=`, `>` or `>=`")
        relation, _, name = str(column).rpartition(".")
        size = number(value).value
        op: Any = str(sign)
        span = between(column, value)
        return syntax.Assume(name, op, -size if len(children) > 3 else size, relation or None, span)  # noqa: PLR2004

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
        wanted = "a whole number such as 20" if name == "iterations" else "a number such as 0.001"
        raise Problem(f"`{name}` is {wanted}, not `{token}`", parameter.span)
    return value if name == "iterations" else float(value)


def _tolerance(change: Sequence[Token], relation: Token) -> float:
    """PowerLog's end condition, `sum[Δrank] < 0.001`."""
    function, inside, sign, limit = change[0], change[2:-3], change[-2], change[-1]
    hint = f"write `{{sum[Δ{relation}] < 0.001}}`"
    if function != "sum":
        raise Problem(f"an end condition is over the sum of the changes, not `{function}`", place(function), hint)
    spelled = "".join(str(t) for t in inside)
    delta = next((d for d in _DELTAS if spelled.startswith(d)), None)
    if delta is None or spelled.removeprefix(delta) not in ("", relation):
        raise Problem(f"`{spelled}` is not the change of `{relation}`", between(inside[0], inside[-1]), hint)
    if sign not in ("<", "<="):
        raise Problem("an end condition says when the change is small", place(sign), hint)
    return float(number(limit).value)
