"""Refuse types that the loop cannot hold, such as nested types and wide decimals. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark_paralagg.compile.rewrite.pack import is_packable
from pyspark_paralagg.compile.rewrite.types import is_storable
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.expr import Call, Col, Expr, Lit, walk
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule


_EQUALITIES = ("EqualTo", "EqualNullSafe")


def check_types(program: Program) -> Program:
    """Return ``program`` unchanged, or raise ``UnsupportedError`` (``PARALAGG_STEP_UNSUPPORTED``)."""
    for relation in program.relations:
        for column in relation.columns:
            if not is_storable(column.type):
                _refuse(f"the column {column.name} of type {column.type}", column.type, f"relation {relation.name}")
    for rule in program.rules:
        _check_rule(program, rule)
    return program


def _check_rule(program: Program, rule: Rule) -> None:
    for atom in rule.body:
        for expr in program.input(atom.input).exprs if atom.input is not None else ():
            if not is_storable(expr.type):
                _refuse(f"{show(expr)} of type {expr.type}", expr.type, rule.place)
    for expr in rule.exprs:
        if isinstance(expr, Lit) and not is_storable(expr.type):
            _refuse(f"the constant {show(expr)} in the result", expr.type, rule.place)
    for expr in (*rule.exprs, *rule.conditions):
        _check(expr, rule)


def _check(expr: Expr, rule: Rule) -> None:
    """Check what the loop stores or looks up: variables, results, sides of equalities. A call may read any value."""
    stored = [e for e in walk(expr) if isinstance(e, Col)]
    compared = [a for e in walk(expr) if isinstance(e, Call) and e.fn in _EQUALITIES for a in e.args]
    for e in (expr, *stored, *compared):
        if not is_storable(e.type) and not isinstance(e, Lit):
            _refuse(f"{show(e)} of type {e.type}", e.type, rule.place)


def _refuse(subject: str, value: str, place: str) -> NoReturn:
    problem = f"{subject} cannot run inside the loop"
    is_array = value.startswith("array<") and is_packable(value)
    hint = 'use backend="spark", or the ranks of backend="mpi", which store it as a text' if is_array else None
    raise UnsupportedError("PARALAGG_STEP_UNSUPPORTED", problem, value=value, place=place, hint=hint)
