"""Refuse types that the loop cannot hold, such as nested types and wide decimals. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from pyspark_paralagg.compile.rewrite.types import is_storable
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.expr import Call, Expr, Lit, walk
from pyspark_paralagg.program.text import show

if TYPE_CHECKING:
    from pyspark_paralagg.program.program import Program, Rule


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
    for e in walk(expr):
        if not isinstance(e, Call):
            continue
        if not is_storable(e.type):
            _refuse(f"{show(e)}, which is of type {e.type}", e.type, rule.place)
        for a in e.args:
            # A constant of any type may be read: Catalyst's own code does it.
            if not is_storable(a.type) and not isinstance(a, Lit):
                _refuse(f"{show(a)} of type {a.type}", a.type, rule.place)


def _refuse(subject: str, value: str, place: str) -> NoReturn:
    problem = f"{subject} cannot run inside the loop"
    raise UnsupportedError("PARALAGG_STEP_UNSUPPORTED", problem, value=value, place=place)
