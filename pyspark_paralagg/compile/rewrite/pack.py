"""Store arrays, structs, bytes and wide decimals as texts, for the engine of the JVM, which can make and read them.

    route(y, $MIN(d), concat(r, array(y)) by d) :- route(x, d, r), edges(x, y)          r is an array<bigint>
    route(y, $MIN(d), Packed(concat(Unpacked(r), array(y))) by d) :- …                  r is a text

A text compares as its value (``plan/Packer.scala``), so keys, ``min`` and ``min_by`` mean the same. Equalities compare
texts; any other function gets the value. Results are unpacked above the fixpoint.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.compile.rewrite.types import is_storable
from pyspark_paralagg.program.expr import PACKED, UNPACKED, Call, Col, Lit
from pyspark_paralagg.program.sets import ELEMENT_SET, MERGED_SETS, element_set

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark_paralagg.program.expr import Expr
    from pyspark_paralagg.program.program import Column, Dependent, Input, Program, Relation, Rule

_OTHER = re.compile(r"map<|variant|collate|char\(|void|timestamp_ltz|object|udt|geo")
_COMPARE_TEXTS = frozenset(["EqualTo", "EqualNullSafe", "IsNull", "IsNotNull"])
_TEXT = "string"


def pack(program: Program) -> Program:
    """Return ``program`` with texts in place of packable columns; unchanged if it has none.

    A column under an aggregate that does not only compare, such as a sum of wide decimals, stays as it is.
    """
    if not any(is_packable(c.type) for c in _columns(program)):
        return program
    return replace(
        program,
        relations=tuple(map(_relation, program.relations)),
        inputs=tuple(map(_input, program.inputs)),
        rules=tuple(map(_rule, program.rules)),
        assume=tuple(map(_opened, program.assume)),
    )


def pack_all(program: Program) -> Program:
    """Return ``program`` with texts also in the columns of its sources, for an engine that has no other values."""
    packed = pack(program)
    return replace(packed, inputs=tuple(replace(i, columns=tuple(map(_column, i.columns))) for i in packed.inputs))


def is_packable(type_: str) -> bool:
    """Return whether values of ``type_`` can be texts.

    >>> is_packable("array<struct<x:int,y:string>>"), is_packable("map<int,int>"), is_packable("bigint")
    (True, False, False)
    """
    is_wide = type_.startswith(("array<", "struct<", "decimal(")) or type_ == "binary"
    return is_wide and not is_storable(type_) and _OTHER.search(type_) is None


def _columns(program: Program) -> Iterable[Column | Expr]:
    for relation in program.relations:
        yield from relation.columns
    for i in program.inputs:
        yield from i.exprs


def _relation(relation: Relation) -> Relation:
    return replace(
        relation, keys=tuple(map(_column, relation.keys)), dependents=tuple(map(_dependent, relation.dependents))
    )


def _dependent(dependent: Dependent) -> Dependent:
    supplied = tuple(map(_column, dependent.supplied))
    if dependent.custom is not None:
        custom = dependent.custom
        improves = None if custom.improves is None else _opened(custom.improves)
        texts = replace(custom, combine=tuple(map(_packed, custom.combine)), improves=improves)
        return replace(dependent, column=_column(dependent.column), supplied=supplied, custom=texts)
    if not dependent.is_idempotent:
        return replace(dependent, supplied=supplied)
    return replace(dependent, column=_column(dependent.column), supplied=supplied)


def _column(column: Column) -> Column:
    return replace(column, type=_TEXT, packed=column.type) if is_packable(column.type) else column


def _input(rows: Input) -> Input:
    """Return the input with texts; the engine packs the columns of its source where an expression reads a text."""
    exprs, filters = tuple(map(_packed, rows.exprs)), tuple(map(_opened, rows.filters))
    return replace(rows, exprs=exprs, filters=filters)


def _rule(rule: Rule) -> Rule:
    exprs, conditions = tuple(map(_packed, rule.exprs)), tuple(map(_opened, rule.conditions))
    return replace(rule, exprs=exprs, conditions=conditions)


def _packed(expr: Expr) -> Expr:
    """Return ``expr`` as a text if it is packable; any other as it is."""
    if not is_packable(expr.type):
        return _opened(expr)
    if isinstance(expr, Col):
        return replace(expr, type=_TEXT)
    if isinstance(expr, Call):
        if expr.fn == "Cast" and expr.args[0].type == expr.type:  # only nulls are allowed
            return _packed(expr.args[0])
        expr = _element_set(expr)
        if expr.fn in (MERGED_SETS, ELEMENT_SET):  # engines compute them on texts
            return replace(expr, args=tuple(map(_packed, expr.args)), type=_TEXT)
    nullable = expr.value is None if isinstance(expr, Lit) else expr.nullable
    return Call(PACKED, (_opened(expr),), _TEXT, nullable)


def _element_set(expr: Call) -> Call:
    """Return ``CASE WHEN x IS NOT NULL THEN array(x) END`` as the set of one element, any other call as it is.

    So is ``array(x)`` of an ``x`` that is never null.
    """
    match expr:
        case Call(fn="CreateArray", args=(Col(nullable=False) | Lit(value=bool() | int() | float() | str()) as value,)):
            return element_set(value, expr.type) if not is_packable(value.type) else expr
        case Call(
            fn="CaseWhen", args=(Call(fn="IsNotNull", args=(tested,)), Call(fn="CreateArray", args=(value,)), *rest)
        ) if not is_packable(value.type) and all(isinstance(r, Lit) and r.value is None for r in rest):
            is_tested = tested == value or (isinstance(value, Call) and value.fn == "Cast" and value.args[0] == tested)
            return element_set(value, expr.type) if is_tested else expr
    return expr


def _opened(expr: Expr) -> Expr:
    """Return ``expr`` with its own type, over variables that are texts."""
    if isinstance(expr, Col) and is_packable(expr.type):
        return Call(UNPACKED, (replace(expr, type=_TEXT),), expr.type, expr.nullable)
    if isinstance(expr, Call):
        change = _packed if expr.fn in _COMPARE_TEXTS else _opened
        return replace(expr, args=tuple(map(change, expr.args)))
    return expr
