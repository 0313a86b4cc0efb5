"""Whether rows fit a relation: the one check of names and types, for base, initial rows and steps alike.

``dataframe`` calls it on what a step returned, ``program.step`` on what the shim analysed; both raise the same codes.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.aggregators import is_integral, is_numeric

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark_paralagg.program.program import Dependent, Relation


def check_step_columns(relation: Relation, found: Sequence[tuple[str, str]], place: str | None = None) -> None:
    """Raise ``UsageError`` unless the columns ``found`` (name, Spark type) are those of ``relation``, in any order.

    Codes: ``PARALAGG_STEP_COLUMNS_MISSING``, ``PARALAGG_STEP_COLUMNS_EXTRA`` (a column of another name, or one name
    twice), ``PARALAGG_STEP_COLUMNS_TYPE``. Nullability is free. A ``count`` column may be absent (its rows count 1),
    and what is added up may be narrower than the relation's column: an ``int`` where the sum is ``bigint``.

    >>> from pyspark_paralagg.program.program import Column, Relation
    >>> r = Relation("reach", (Column("node", "bigint"),), (), base=0)
    >>> check_step_columns(r, [("dst", "bigint")], "reach")
    Traceback (most recent call last):
    ...
    pyspark_paralagg.errors.UsageError: PARALAGG_STEP_COLUMNS_MISSING: the step's result has no column 'node' (in reach)
    Hint: its columns are dst; select and alias them to node
    """
    place = place or f"step of {relation.name}"
    names = [name for name, _ in found]
    wanted = [c.name for c in relation.supplied]
    shape = ", ".join(wanted)
    optional = {d.column.name for d in relation.dependents if d.definition.counts_rows}
    for name in wanted:
        if name not in names and name not in optional:
            raise UsageError(
                "PARALAGG_STEP_COLUMNS_MISSING",
                f"the step's result has no column {name!r}",
                value=name,
                place=place,
                hint=f"its columns are {', '.join(names) or 'none'}; select and alias them to {shape}",
            )
    for position, name in enumerate(names):
        twice = name in names[:position]
        if name not in wanted or twice:
            what = f"the column {name!r} twice" if twice else f"a column {name!r} that is not the relation's"
            raise UsageError(
                "PARALAGG_STEP_COLUMNS_EXTRA",
                f"the step's result has {what}",
                value=name,
                place=place,
                hint=f"end the step with select({shape})",
            )
    types = dict(found)
    for column in relation.supplied:
        if column.name in types and not _fits(types[column.name], column.type, dependent(relation, column.name)):
            raise UsageError(
                "PARALAGG_STEP_COLUMNS_TYPE",
                f"the step's {column.name!r} is {types[column.name]}, the relation's is {column.type}",
                value=types[column.name],
                place=place,
                hint=f"cast it in the step (.cast({column.type!r})), or give the base that type",
            )


def dependent(relation: Relation, column: str) -> Dependent | None:
    """The dependent called ``column``; None for a key."""
    return next((d for d in relation.dependents if d.column.name == column), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint that names the closest known name, or all of them."""
    names = list(known)
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1)
    if close:
        return f"did you mean {next(n for n in names if n.lower() == close[0])!r}?"
    return f"there are {', '.join(names) or 'none'}"


def _fits(found: str, wanted: str, of: Dependent | None) -> bool:
    if found == wanted:
        return True
    if of is None or not of.definition.is_sum:
        return False
    # Spark would add the narrower type up to the wider one all the same, so no value changes.
    return (wanted == "bigint" and is_integral(found)) or (
        wanted == "double" and is_numeric(found) and not found.startswith("decimal")
    )
