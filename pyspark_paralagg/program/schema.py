"""Check that rows fit a relation: names and types of the columns of base, initial rows and steps.

``api.relations`` checks DataFrames with it, ``program.step`` a step that the shim has analysed. Both raise the same
codes.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.aggregators import is_integral, is_numeric

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark_paralagg.program.program import Dependent, Relation

Owner = Literal["the step", "initial"]
"""The owner of the checked columns, as an error names it."""


def check_step_columns(
    relation: Relation, columns: Sequence[tuple[str, str]], place: str | None = None, owner: Owner = "the step"
) -> None:
    """Raise ``UsageError`` unless ``columns`` (name, Spark type) are those of ``relation``, in any order.

    Codes: ``PARALAGG_STEP_COLUMNS_MISSING``, ``PARALAGG_STEP_COLUMNS_EXTRA`` (a column of another name, or one name
    twice), ``PARALAGG_STEP_COLUMNS_TYPE``. Nullability is not checked. A ``count`` column may be absent (its rows count
    1), and a summand may be narrower than the relation's column: an ``int`` for a sum of ``bigint``.

    >>> from pyspark_paralagg.program.program import Column, Relation
    >>> r = Relation("reach", (Column("node", "bigint"),), (), base=0)
    >>> check_step_columns(r, [("dst", "bigint")], "reach")
    Traceback (most recent call last):
    ...
    pyspark_paralagg.errors.UsageError: PARALAGG_STEP_COLUMNS_MISSING: the step's result has no column 'node' (in reach)
    Hint: select and alias its columns (dst) to node
    """
    place = place or f"step of {relation.name}"
    result = "the step's result" if owner == "the step" else owner
    names = [name for name, _ in columns]
    expected = [c.name for c in relation.supplied]
    shape = ", ".join(expected)
    optional = {d.column.name for d in relation.dependents if d.definition.counts_rows}
    for name in expected:
        if name not in names and name not in optional:
            raise UsageError(
                "PARALAGG_STEP_COLUMNS_MISSING",
                f"{result} has no column {name!r}",
                value=name,
                place=place,
                hint=f"select and alias its columns ({', '.join(names) or 'none'}) to {shape}",
            )
    for position, name in enumerate(names):
        is_twice = name in names[:position]
        if name not in expected or is_twice:
            problem = f"the column {name!r} twice" if is_twice else f"a column {name!r} that the relation does not have"
            raise UsageError(
                "PARALAGG_STEP_COLUMNS_EXTRA",
                f"{result} has {problem}",
                value=name,
                place=place,
                hint=f"end the step with select({shape})",
            )
    types = dict(columns)
    for column in relation.supplied:
        if column.name in types and not _fits(types[column.name], column.type, dependent(relation, column.name)):
            raise UsageError(
                "PARALAGG_STEP_COLUMNS_TYPE",
                f"{owner}'s {column.name!r} is {types[column.name]}, the relation's is {column.type}",
                value=types[column.name],
                place=place,
                hint=f"cast it in the step (.cast({column.type!r})), or give the base that type",
            )


def dependent(relation: Relation, column: str) -> Dependent | None:
    """Return the dependent called ``column``; None for a key."""
    return next((d for d in relation.dependents if d.column.name == column), None)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a hint with the closest of the ``known`` names, or with all of them."""
    names = list(known)
    close = difflib.get_close_matches(name.lower(), [n.lower() for n in names], n=1)
    if close:
        return f"did you mean {next(n for n in names if n.lower() == close[0])!r}?"
    return f"use one of {', '.join(names)}" if names else "there are none"


def _fits(actual: str, expected: str, column: Dependent | None) -> bool:
    if actual == expected:
        return True
    if column is None or not column.definition.is_sum:
        return False
    # Spark also sums the narrower type in the wider one, so no value changes.
    return (expected == "bigint" and is_integral(actual)) or (
        expected == "double" and is_numeric(actual) and not actual.startswith("decimal")
    )
