"""Render expressions, rules and programs as readable text (Datalog with Spark's expressions).

``explain``, error messages and the before/after fixtures of the passes use it. No code parses it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from pyspark_paralagg.program.expr import PACKED, UNPACKED, Call, Col, Expr, Lit
from pyspark_paralagg.program.functor import is_functor

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Atom, Dependent, Input, Program, Relation, Rule

_INFIX = {
    "Or": ("OR", 1),
    "And": ("AND", 2),
    "EqualTo": ("=", 4),
    "EqualNullSafe": ("<=>", 4),
    "LessThan": ("<", 4),
    "LessThanOrEqual": ("<=", 4),
    "GreaterThan": (">", 4),
    "GreaterThanOrEqual": (">=", 4),
    "BitwiseOr": ("|", 5),
    "BitwiseXor": ("^", 5),
    "BitwiseAnd": ("&", 6),
    "Add": ("+", 7),
    "Subtract": ("-", 7),
    "Multiply": ("*", 8),
    "Divide": ("/", 8),
    "IntegralDivide": ("div", 8),
    "Remainder": ("%", 8),
}
_HIGHEST_PRECEDENCE = 9


_UNKNOWN_BYTES = (1 << 63) - 1  # the default of spark.sql.defaultSizeInBytes


def show(expr: Expr, level: int = 0) -> str:
    """Render ``expr`` with the parentheses that it needs; ``level`` is the precedence of the operator around it.

    >>> show(Call("Add", (Col("d", "bigint"), Call("Cast", (Lit(1, "int"),), "bigint")), "bigint"))
    'd + 1'
    """
    if isinstance(expr, Col):
        return expr.name
    if isinstance(expr, Lit):
        is_number = isinstance(expr.value, str) and expr.type.startswith("decimal")
        return "null" if expr.value is None else str(expr.value) if is_number else json.dumps(expr.value)
    if (expr.fn == "Cast" and isinstance(expr.args[0], Lit)) or expr.fn in (PACKED, UNPACKED):
        return show(expr.args[0], level)  # a stored text stands for its value
    if expr.fn in _INFIX and len(expr.args) == 2:  # noqa: PLR2004 - both sides
        sign, precedence = _INFIX[expr.fn]
        # The right side has the next higher precedence, so that a - (b - c) keeps its parentheses.
        text = f"{show(expr.args[0], precedence)} {sign} {show(expr.args[1], precedence + 1)}"
        return f"({text})" if precedence < level else text
    return _call(expr)


def _call(expr: Call) -> str:
    args = [show(a) for a in expr.args]
    match expr.fn:
        case "Not":
            return f"NOT {show(expr.args[0], _HIGHEST_PRECEDENCE)}"
        case "UnaryMinus":
            return f"-{show(expr.args[0], _HIGHEST_PRECEDENCE)}"
        case "IsNull" | "IsNotNull":
            return f"{show(expr.args[0], _HIGHEST_PRECEDENCE)} IS {'NOT ' if expr.fn == 'IsNotNull' else ''}NULL"
        case "Between" | "Present":  # a guard, which changes no value
            return args[0]
        case "Cast":
            return f"cast({args[0]} as {expr.type})"
        case _:
            name = expr.fn if is_functor(expr.fn) else expr.fn.removeprefix("agg:").lower()
            return f"{name}({', '.join(args)})"


def show_head(relation: Relation, exprs: tuple[Expr, ...]) -> str:
    """Render a head: ``dist(node, min d + w)``, ``attends(event, mcount(who))``."""
    texts = {c.name: show(e) for c, e in zip(relation.supplied, exprs, strict=True)}
    keys = [texts[c.name] for c in relation.keys]
    return f"{relation.name}({', '.join([*keys, *(_show_dependent(d, texts) for d in relation.dependents)])})"


def _show_dependent(d: Dependent, texts: dict[str, str]) -> str:
    if d.supplied:
        return f"{d.aggregator}({', '.join(texts[c.name] for c in d.supplied)})"
    return f"{d.aggregator}{f'[{d.order}]' if d.order else ''} {texts[d.column.name]}"


def show_atom(name: str, variables: tuple[str | None, ...]) -> str:
    """Render an atom: ``edges(m, node, _)``."""
    return f"{name}({', '.join(v or '_' for v in variables)})"


def input_name(source: Input) -> str:
    """Return the name of an input: the lower relation's name, or its source's name and number, or ``in`` and number."""
    return source_name(source.relation, source.name, source.id)


def read_name(atom: Atom, program: Program) -> str:
    """Return the name of what an atom reads: a relation, or ``input_name``."""
    return atom.relation if atom.relation is not None else input_name(program.input(atom.input or 0))


def source_name(relation: str | None, name: str | None, number: int) -> str:
    """Return the name of an input, as ``input_name``, from the parts of its JSON.

    >>> source_name(None, "roads", 2), source_name(None, None, 2)
    ('roads_2', 'in2')
    """
    return relation or (f"{name}_{number}" if name else f"in{number}")


def show_size(size: int | None) -> str | None:
    """Return a size of an input as text, None for an unknown one. Spark estimates that as 2^63 - 1 bytes or more.

    >>> show_size(1000), show_size(2**63 - 1), show_size(None)
    ('1,000 bytes', None, None)
    """
    return None if size is None or size >= _UNKNOWN_BYTES else f"{size:,} bytes"


def show_rule(rule: Rule, program: Program) -> str:
    """Render a rule: ``dist(node, min d + w) :- dist(m, d), in1(src, node, w), m = src``."""
    parts = [_body_atom(a, program) for a in rule.body] + [show(c) for c in rule.conditions]
    return f"{show_head(program.relation(rule.head), rule.exprs)} :- {', '.join(parts)}"


def _body_atom(atom: Atom, program: Program) -> str:
    return {"join": "", "semi": "exists ", "anti": "!"}[atom.kind] + show_atom(read_name(atom, program), atom.variables)


def show_input(source: Input) -> str:
    """Render an input: ``in1(src, dst) := source 0, weight > 0``."""
    origin = f"result of {source.relation}" if source.relation else source.name or f"source {source.source}"
    return ", ".join(
        [f"{input_name(source)}({', '.join(show(e) for e in source.exprs)}) := {origin}", *map(show, source.filters)]
    )


def show_program(program: Program) -> str:
    """Render relations with their base, inputs and rules, one line each."""
    lines = []
    for r in program.relations:
        columns = [c.name for c in r.keys] + [f"{d.aggregator} {d.column.name}" for d in r.dependents]
        lines.append(f"relation {r.name}({', '.join(columns)}) from input {r.base}")
    used = {a.input for rule in program.rules for a in rule.body if a.input is not None}
    lines += [show_input(i) for i in program.inputs if i.id in used]
    lines += [show_rule(r, program) for r in program.rules]
    return "\n".join(lines)
