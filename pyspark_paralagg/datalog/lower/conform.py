"""Whether rows from outside fit a relation of a text, and which of their columns is which."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pyspark_paralagg.datalog.lower.terms import FLOAT, NUMBER, spoken
from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.aggregators import is_integral, is_numeric

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark_paralagg.datalog.lower.resolved import Resolved, Source


def conformed_columns(
    found: Sequence[tuple[str, str]],
    source: Source,
    resolved: Resolved,
    what: Literal["DataFrame", "file"] = "DataFrame",
) -> list[tuple[str, str]]:
    """For each column of ``source`` which of ``found`` it is: by name where the names are the same, else by place.

    Raises ``UsageError`` (``PARALAGG_DATALOG_INPUT``) where ``found`` does not fit.
    """
    span = resolved.shapes[source.relation].place
    where = f", see {resolved.places.describe(span)}" if span.line else ""
    if len(found) != len(source.columns):
        raise UsageError(
            "PARALAGG_DATALOG_INPUT",
            f"{source.relation} has {len(source.columns)} columns{where}, and the {what} {len(found)}: "
            f"{', '.join(n for n, _ in found)}",
            value=len(found),
            place=f"input {source.relation}",
            hint="select the columns that the text reads",
        )
    names = [n for n, _ in found]
    by_name = sorted(names) == sorted(c.name for c in source.columns)
    chosen = []
    for p, column in enumerate(source.columns):
        name, type_ = found[names.index(column.name) if by_name else p]
        if not _fits(type_, column.type):
            cast = f"cast it: df.withColumn({name!r}, df[{name!r}].cast({column.type!r}))"
            raise UsageError(
                "PARALAGG_DATALOG_INPUT",
                f"{column.name} of {source.relation} is a {spoken(column.type)}{where}, "
                f"and the {what}'s {name} is {type_}",
                value=type_,
                place=f"input {source.relation}",
                hint=cast if what == "DataFrame" else f"write {name} as {column.type}, or declare it otherwise",
            )
        chosen.append((name, type_))
    return chosen


def _fits(found: str, wanted: str) -> bool:
    if wanted == NUMBER:
        return is_integral(found)
    if wanted == FLOAT:
        return is_numeric(found)
    return found == wanted
