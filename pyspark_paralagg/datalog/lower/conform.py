"""Match the columns of external rows, from a DataFrame or a file, to those of a relation and check their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.datalog.lower.terms import FLOAT, NUMBER, datalog_type
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.aggregators import is_integral, is_numeric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_paralagg.datalog.lower.resolved import Resolved, Source


def conformed_columns(
    columns: Sequence[tuple[str, str]],
    source: Source,
    resolved: Resolved,
    kind: Literal["DataFrame", "file"] = "DataFrame",
) -> list[tuple[str, str]]:
    """Return the column of ``columns`` for each column of ``source``: by name if all names match, else by position.

    Raise ``UsageError`` (``PARALAGG_DATALOG_INPUT``) if ``columns`` does not fit.
    """
    span = resolved.shapes[source.relation].place
    where = f", see {resolved.places.describe(span)}" if span.line else ""
    if len(columns) != len(source.columns):
        raise UsageError(
            "PARALAGG_DATALOG_INPUT",
            f"{source.relation} has {len(source.columns)} columns{where}, but the {kind} has {len(columns)}: "
            f"{', '.join(n for n, _ in columns)}",
            value=len(columns),
            place=f"input {source.relation}",
            hint="select the columns of the relation",
        )
    names = [n for n, _ in columns]
    by_name = sorted(names) == sorted(c.name for c in source.columns)
    result = []
    for p, column in enumerate(source.columns):
        name, type_ = columns[names.index(column.name) if by_name else p]
        if not _fits(type_, column.type):
            cast = f"cast it: df.withColumn({name!r}, df[{name!r}].cast({column.type!r}))"
            raise UsageError(
                "PARALAGG_DATALOG_INPUT",
                f"{column.name} of {source.relation} is a {datalog_type(column.type)}{where}, "
                f"but {name} of the {kind} is {type_}",
                value=type_,
                place=f"input {source.relation}",
                hint=cast if kind == "DataFrame" else f"write {name} as {column.type}, or change the declared type",
            )
        result.append((name, type_))
    return result


def _fits(type_: str, expected: str) -> bool:
    if expected == NUMBER:
        return is_integral(type_)
    if expected == FLOAT:
        return is_numeric(type_)
    return type_ == expected
