"""Collect the assumptions about input columns: ``.assume``, and that ``unsigned`` columns are not negative."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower.terms import BOOLEAN, FLOAT
from pyspark_paralagg.datalog.parse.syntax import Assume, Atom, Declaration
from pyspark_paralagg.program.expr import Call, Col, Lit

if TYPE_CHECKING:
    from collections.abc import Set as AbstractSet

    from pyspark_paralagg.datalog.parse.places import Places
    from pyspark_paralagg.datalog.parse.syntax import Text
    from pyspark_paralagg.datalog.resolve.shapes import Shapes
    from pyspark_paralagg.datalog.resolve.types import Types

_COMPARISONS = {">=": "GreaterThanOrEqual", ">": "GreaterThan", "<=": "LessThanOrEqual", "<": "LessThan"}


def assumptions(  # noqa: PLR0913, PLR0917 - a text and its tables
    text: Text, types: Types, shapes: Shapes, inputs: AbstractSet[str], external: AbstractSet[str], places: Places
) -> tuple[Assume, ...]:
    """Return one assumption for each matching column of ``inputs``.

    Raise ``DatalogError`` (``PARALAGG_ASSUME_COLUMN``) if no input has the column.
    """
    columns = {n: s.columns for n, s in shapes.shapes.items() if n in inputs}
    result: list[Assume] = []
    for c in text.clauses:
        if isinstance(c, Assume):
            if c.relation is not None and c.relation not in shapes.shapes:
                shapes.check(Atom(c.relation, (), c.span))
            matching = [n for n, names in columns.items() if c.relation in (None, n) and c.column in names]
            if not matching:
                names = ", ".join(sorted({f"{n}.{x}" for n, column_names in columns.items() for x in column_names}))
                message = f"no input has a column `{c.column if c.relation is None else f'{c.relation}.{c.column}'}`"
                hint = f"use a column name of a declaration or DataFrame: {names}"
                raise places.error("PARALAGG_ASSUME_COLUMN", message, c.span, value=c.column, hint=hint)
            result += [replace(c, relation=n) for n in matching]
        elif isinstance(c, Declaration) and c.relation in inputs and c.relation in external:
            unsigned = [a.name for a in c.attributes if types.base(a.type, a.span) == "unsigned"]
            result += [Assume(name, ">=", 0, c.relation, c.span) for name in unsigned]
    return tuple(result)


def condition(assumption: Assume) -> Call:
    """Return an assumption as a condition for the proof, over a column named ``relation.column``."""
    type_ = "int" if isinstance(assumption.value, int) else FLOAT
    name = f"{assumption.relation}.{assumption.column}"
    return Call(_COMPARISONS[assumption.op], (Col(name, "any"), Lit(assumption.value, type_)), BOOLEAN)
