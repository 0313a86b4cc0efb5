"""Read ``.limitsize r(n=1000)``: the recursion of ``r`` ends after the first iteration that has 1000 rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark_paralagg.datalog.lower.dependencies import Dependencies
from pyspark_paralagg.datalog.parse import syntax
from pyspark_paralagg.program.names import visible_names
from pyspark_paralagg.program.program import Limit, Program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark_paralagg.datalog.parse.places import Places

_HINT = "bound the recursion by a condition or `.limit`, or take some rows of the result"


def row_limits(text: syntax.Text, program: Program, places: Places) -> Iterator[Limit]:
    """Yield the limits of the text; a relation that does not recurse needs none.

    Raise ``DatalogError`` ``PARALAGG_BAD_OPTION`` for other parameters than a number of rows, and
    ``PARALAGG_DATALOG_UNSUPPORTED`` for a relation with aggregates, or that is mutually recursive with another.
    """
    needs = Dependencies(program)
    for c in text.clauses:
        if not (isinstance(c, syntax.Directive) and c.kind == "limitsize"):
            continue
        rows = dict(c.parameters).get("n", "")
        if len(c.parameters) != 1 or not re.fullmatch("0*[1-9][0-9]*", rows):
            message = f"`.limitsize` of `{c.relation}` needs a number of rows, which is at least 1"
            hint = f"write `.limitsize {c.relation}(n=1000)`"
            raise places.error("PARALAGG_BAD_OPTION", message, c.span, value=rows, hint=hint)
        if not needs.recursive_rules(c.relation):
            continue
        others = visible_names([n for n in needs.strata[c.relation] if n != c.relation])
        if others or program.relation(c.relation).dependents:
            reason = f"is mutually recursive with `{min(others)}`" if others else "has aggregates"
            message = f"`.limitsize` is not supported here: `{c.relation}` {reason}"
            raise places.error("PARALAGG_DATALOG_UNSUPPORTED", message, c.span, value=c.relation, hint=_HINT)
        yield Limit(c.relation, rows=int(rows))
