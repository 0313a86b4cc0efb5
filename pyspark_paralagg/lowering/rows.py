"""Lower the rules of a Datalog text to DataFrames.

Relations without recursion become ordinary DataFrames, so Spark's own planner orders their joins. The rules of a
recursive stratum become the base and the step of ``recursive``, like a hand-written step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the customary name

from pyspark_paralagg.lowering.functors import FunctorColumns
from pyspark_paralagg.program.expr import Expr, columns
from pyspark_paralagg.program.names import fresh_column
from pyspark_paralagg.program.sql import quoted, to_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame

    from pyspark_paralagg.program.functor import Functor
    from pyspark_paralagg.program.program import Atom, Rule

_ROW = "1 AS `row@`"


def rows_of(  # noqa: PLR0913 - what a rule needs from its text
    rule: Rule,
    head: tuple[str, ...],
    frame: Callable[[Atom], DataFrame],
    alias: Callable[[Atom, int], str | None],
    functors: Mapping[str, Functor],
    *,
    is_set: bool = False,
) -> DataFrame:
    """Return the rows that ``rule`` derives, with the column names ``head``.

    With ``is_set`` duplicates do not matter: one row of an atom is enough if nothing else reads its variables.

    ``frame`` returns the rows of an atom, columns by position; ``alias`` returns the name of one of its columns, or
    None for the variable's name.
    """
    names = _aliases(rule, alias)
    calls = FunctorColumns(rule, functors, names)
    rule = calls.rule
    remaining = list(rule.conditions)
    df: DataFrame | None = None
    joins = sorted((n for n, a in enumerate(rule.body) if a.kind == "join"), key=rule.rank)
    bound: set[str] = set()
    for n in joins:
        atom = rule.body[n]
        own = set(atom.bound)
        part = calls.add(_renamed(frame(atom), atom, names), own)
        bound |= own
        ready, remaining = _ready(remaining, bound)
        readers = (*rule.exprs, *(c for c in (*ready, *remaining) if not columns(c) <= own))
        if is_set and not any(own & columns(e) for e in readers):
            part = part.filter(_all(ready, names, rule.place)) if ready else part
            part, ready = part.selectExpr(_ROW).distinct(), []  # a limit would keep a table from being maintained
        if df is None:
            df = part.filter(_all(ready, names, rule.place)) if ready else part
        elif ready:
            df = df.join(part, F.expr(_all(ready, names, rule.place)), "inner")
        else:
            df = df.crossJoin(part)
        df = calls.add(df, bound)
        ready, remaining = _ready(remaining, bound)
        df = df.filter(_all(ready, names, rule.place)) if ready else df
    assert df is not None  # noqa: S101 - every rule of a text has an atom
    for atom in (a for a in rule.body if a.kind != "join"):
        ready = [c for c in remaining if columns(c) & atom.bound]
        remaining = [c for c in remaining if c not in ready]
        part = _renamed(frame(atom), atom, names)
        join_type = "left_anti" if atom.kind == "anti" else "left_semi"
        df = df.join(part, F.expr(_all(ready, names, rule.place)) if ready else F.lit(col=True), join_type)
    values = (to_sql(e, names, rule.place) for e in rule.exprs)
    return df.selectExpr(*(f"{value} AS {quoted(h)}" for value, h in zip(values, head, strict=True)))


def _ready(conditions: list[Expr], bound: set[str]) -> tuple[list[Expr], list[Expr]]:
    """Split ``conditions``: those over ``bound`` variables alone, and the others."""
    ready = [c for c in conditions if columns(c) <= bound]
    return ready, [c for c in conditions if c not in ready]


def _aliases(rule: Rule, alias: Callable[[Atom, int], str | None]) -> dict[str, str]:
    """Return a name for each variable. Aliases come first, as others read them."""
    variables = [(v, alias(a, p)) for a in rule.body for p, v in enumerate(a.variables) if v is not None]
    aliases: dict[str, str] = {}
    for v, requested in sorted(variables, key=lambda pair: pair[1] is None):
        aliases[v] = fresh_column(requested or v, aliases.values())
    return aliases


def _renamed(df: DataFrame, atom: Atom, names: dict[str, str]) -> DataFrame:
    """Return the columns that the rule reads, named like its variables or their aliases."""
    frame_columns = df.columns
    read = [(p, v) for p, v in enumerate(atom.variables) if v is not None]
    if not read:  # keep the rows even if no column is read
        return df.selectExpr(_ROW)
    return df.selectExpr(*(f"{quoted(frame_columns[p])} AS {quoted(names[v])}" for p, v in read))


def _all(conditions: list[Expr], names: dict[str, str], place: str) -> str:
    return " AND ".join(to_sql(c, names, place) for c in conditions)
