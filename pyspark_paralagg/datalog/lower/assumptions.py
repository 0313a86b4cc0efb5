"""What is assumed of the columns of inputs: ``.assume``, and that what is ``unsigned`` is not negative."""

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


def assumptions(  # noqa: PLR0913, PLR0917 - a text and what is known of it
    text: Text, types: Types, shapes: Shapes, inputs: AbstractSet[str], external: AbstractSet[str], places: Places
) -> tuple[Assume, ...]:
    """One a column of one of ``inputs``; ``DatalogError`` (``PARALAGG_ASSUME_COLUMN``) for a column that none has."""
    columns = {n: s.columns for n, s in shapes.shapes.items() if n in inputs}
    out: list[Assume] = []
    for c in text.clauses:
        if isinstance(c, Assume):
            if c.relation is not None and c.relation not in shapes.shapes:
                shapes.check(Atom(c.relation, (), c.span))
            found = [n for n, names in columns.items() if c.relation in (None, n) and c.column in names]
            if not found:
                names = ", ".join(sorted({f"{n}.{x}" for n, known in columns.items() for x in known}))
                message = f"no input has a column `{c.column if c.relation is None else f'{c.relation}.{c.column}'}`"
                hint = f"columns have the names of their declaration, or of the DataFrame: {names}"
                raise places.error("PARALAGG_ASSUME_COLUMN", message, c.span, value=c.column, hint=hint)
            out += [replace(c, relation=n) for n in found]
        elif isinstance(c, Declaration) and c.relation in inputs and c.relation in external:
            unsigned = [a.name for a in c.attributes if types.base(a.type, a.span) == "unsigned"]
            out += [Assume(name, ">=", 0, c.relation, c.span) for name in unsigned]
    return tuple(out)


def condition(of: Assume) -> Call:
    """An assumption as the proof reads it; the column is called ``relation.column``."""
    type_ = "int" if isinstance(of.value, int) else FLOAT
    name = f"{of.relation}.{of.column}"
    return Call(_COMPARISONS[of.op], (Col(name, "any"), Lit(of.value, type_)), BOOLEAN)
