"""Print the syntax tree as text in one canonical form: ``parse(show(text)) == text``.

    p(x)<-q(x,_),(r(x);!s(x)).    ->    p(x) :- q(x, _), (r(x); !s(x)).

The output has parentheses only where operator precedence needs them; it drops comments and layout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.datalog.parse.operators import INFIX, POWER, PREFIX, PREFIXES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_paralagg.datalog.parse.syntax import Body, Clause, HeadAggregate, Literal_, Term, Text

_SIGNS = {name: sign if sign == "-" else f"{sign} " for sign, name in PREFIXES.items()}
_OPERAND = POWER + 1  # the level of terms that never need parentheses
_ESCAPES = str.maketrans({
    "\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v",
})  # fmt: skip


def show(text: Text) -> str:
    """Return ``text`` with a line for each clause.

    >>> from pyspark_paralagg.datalog.parse.parse import parse
    >>> print(show(parse("p(x,$min(a+b*2))<-q(x,a),r(b);(s(x),t(a,b)).")), end="")
    p(x, $MIN(a + b * 2)) :- q(x, a), r(b); s(x), t(a, b).
    """
    return "".join(f"{show_clause(c)}\n" for c in text.clauses)


def show_clause(clause: Clause) -> str:  # noqa: C901, PLR0911, PLR0912 - one case for each kind
    """Return one clause without a line end."""
    match clause:
        case syntax.Rule():
            return _rule(clause)
        case syntax.Subsumption():
            return f"{_atom(clause.lesser)} <= {_atom(clause.greater)} :- {show_body(clause.body)}."
        case syntax.Declaration():
            keys = _list(f"({_list(key)})" if len(key) > 1 else key[0] for key in clause.choices)
            choice = (f"choice-domain {keys}",) if keys else ()
            return " ".join((f".decl {clause.relation}({_attributes(clause.attributes)})", *clause.qualifiers, *choice))
        case syntax.Functor():
            return f".functor {clause.name}({_attributes(clause.parameters)}): {clause.result.type}"
        case syntax.TypeAlias():
            return f".type {clause.name} {'<:' if len(clause.types) == 1 else '='} {' | '.join(clause.types)}"
        case syntax.RecordType():
            return f".type {clause.name} = [{_attributes(clause.fields)}]"
        case syntax.AlgebraicType():
            branches = (f"{b.name} {{{_attributes(b.fields)}}}" for b in clause.branches)
            return f".type {clause.name} = {' | '.join(branches)}"
        case syntax.Directive():
            parameters = _list(f"{name}={_string(value)}" for name, value in clause.parameters)
            return f".{clause.kind} {clause.relation}{f'({parameters})' if parameters else ''}"
        case syntax.Limit():
            limits = {"iterations": clause.iterations, "tolerance": clause.tolerance}
            return f".limit {clause.relation}({_list(f'{k}={v}' for k, v in limits.items() if v is not None)})"
        case syntax.Pragma():
            return f".pragma {_string(clause.name)}{f' {_string(clause.value)}' if clause.value else ''}"
        case syntax.Component():
            bases = f" : {_list(_component_type(b) for b in clause.bases)}" if clause.bases else ""
            body = "".join(f"{show_clause(c)}\n" for c in clause.clauses)
            return f".comp {_component_type(clause.type)}{bases} {{\n{body}}}"
        case syntax.Init():
            return f".init {clause.name} = {_component_type(clause.type)}"
        case syntax.Override():
            return f".override {clause.relation}"
        case syntax.Assume():
            column = clause.column if clause.relation is None else f"{clause.relation}.{clause.column}"
            return f".assume {column} {clause.op} {clause.value}"


def _attributes(attributes: Iterable[syntax.Attribute]) -> str:
    return ", ".join(f"{a.name}: {a.type}" if a.name else a.type for a in attributes)


def _component_type(node: syntax.ComponentType) -> str:
    return f"{node.name}<{_list(node.parameters)}>" if node.parameters else node.name


def _rule(rule: syntax.Rule) -> str:
    text = _list(_atom(h) for h in rule.heads)
    if rule.body is not None:
        text += f" :- {show_body(rule.body)}"
    text += "."
    if rule.plan is not None:
        text += f" .plan {_list(f'{version}:({_list(map(str, order))})' for version, order in rule.plan.orders)}"
    return text


def show_body(body: Body) -> str:
    """Return the body of a rule or of an aggregate as text."""
    if isinstance(body, syntax.Disjunction):
        return "; ".join(show_body(p) if isinstance(p, syntax.Conjunction) else _part(p) for p in body.parts)
    return _list(map(_part, body.parts)) if isinstance(body, syntax.Conjunction) else _part(body)


def _part(part: Literal_) -> str:
    """Return one condition of a list as text."""
    match part:
        case syntax.Atom():
            return _atom(part)
        case syntax.Negation():
            return f"!{_part(part.body)}"
        case syntax.Comparison():
            return f"{show_term(part.left)} {part.op} {show_term(part.right)}"
        case syntax.Constraint():
            return f"{part.name}({_list(map(show_term, part.args))})" if part.args else part.name
        case syntax.Conjunction() | syntax.Disjunction():
            return f"({show_body(part)})"


def _atom(atom: syntax.Atom) -> str:
    return f"{atom.relation}({_list(_argument(a) for a in atom.args)})"


def _argument(argument: Term | HeadAggregate) -> str:
    if not isinstance(argument, syntax.HeadAggregate):
        return show_term(argument)
    args = _list(_part(a) if isinstance(a, syntax.Comparison) else show_term(a) for a in argument.args)
    return f"${argument.name}{f'({args})' if args else ''}"


def show_term(term: Term, min_level: int = 0) -> str:
    """Return a value as text, in parentheses if its outermost operator is below ``min_level``."""
    text, level = _term(term)
    return text if level >= min_level else f"({text})"


def _term(term: Term) -> tuple[str, int]:  # noqa: C901, PLR0911 - one for each kind
    """Return a value as text, and the level of its outermost operator."""
    match term:
        case syntax.Variable():
            return term.name, _OPERAND
        case syntax.Wildcard():
            return "_", _OPERAND
        case syntax.Number():
            text = f"{term.value}{'u' if term.is_unsigned else ''}"
            return text, PREFIX if text.startswith("-") else _OPERAND
        case syntax.String():
            return _string(term.value), _OPERAND
        case syntax.Nil():
            return "nil", _OPERAND
        case syntax.Record():
            return f"[{_list(map(show_term, term.args))}]", _OPERAND
        case syntax.Branch():
            args = _list(map(show_term, term.args))
            return f"${term.name}({args})" if args else f"${term.name}", _OPERAND
        case syntax.Cast():
            return f"as({show_term(term.term)}, {term.type})", _OPERAND
        case syntax.BodyAggregate():
            value = "" if term.value is None else f" {show_term(term.value)}"
            body = show_body(term.body)
            return (
                f"{term.function}{value} : {body if isinstance(term.body, syntax.Atom) else f'{{ {body} }}'}",
                _OPERAND,
            )
        case syntax.Apply():
            return _apply(term)


def _apply(term: syntax.Apply) -> tuple[str, int]:
    name, args = term.name, term.args
    if name in INFIX and len(args) == 2:  # noqa: PLR2004 - two operands
        level = INFIX[name]
        is_left_associative = level != POWER  # a - b - c is (a - b) - c; a ^ b ^ c is a ^ (b ^ c)
        left = show_term(args[0], level if is_left_associative else level + 1)
        right = show_term(args[1], level + 1 if is_left_associative else level)
        return f"{left} {name} {right}", level
    if name in _SIGNS and len(args) == 1:
        operand = show_term(args[0], PREFIX)
        if name == "neg" and isinstance(args[0], syntax.Number):
            operand = f"({operand})"  # -7 would be a number
        return f"{_SIGNS[name]}{operand}", PREFIX
    return f"{name}({_list(map(show_term, args))})", _OPERAND


def _string(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


def _list(parts: Iterable[str]) -> str:
    return ", ".join(parts)
