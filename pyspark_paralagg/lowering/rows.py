"""Rules as DataFrames: what a text's Program says, in the words of Spark.

Relations that do not recurse are ordinary DataFrames, so Spark's own planner orders their joins; the rules of a
recursive stratum make the base and the step of ``recursive``, like a step that somebody wrote by hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as F  # noqa: N812 - the name that everyone gives it

from pyspark_paralagg.program.expr import Expr, columns
from pyspark_paralagg.program.sql import quoted, to_sql

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import DataFrame

    from pyspark_paralagg.program.program import Atom, Rule


def rows_of(
    rule: Rule,
    head: tuple[str, ...],
    frame: Callable[[Atom], DataFrame],
    alias: Callable[[Atom, int], str | None],
) -> DataFrame:
    """The rows that ``rule`` gives, under the names ``head``.

    ``frame`` has the rows of an atom, by position; ``alias`` the name for one of its columns where it is not the
    variable.
    """
    names = _aliases(rule, alias)
    left = list(rule.conditions)
    df: DataFrame | None = None
    joins = sorted((n for n, a in enumerate(rule.body) if a.kind == "join"), key=rule.rank)
    bound: set[str] = set()
    for n in joins:
        atom = rule.body[n]
        part = _renamed(frame(atom), atom, names)
        bound |= {v for v in atom.variables if v is not None}
        ready = [c for c in left if columns(c) <= bound]
        left = [c for c in left if c not in ready]
        if df is None:
            df = part.filter(_all(ready, names, rule.place)) if ready else part
        elif ready:
            df = df.join(part, F.expr(_all(ready, names, rule.place)), "inner")
        else:
            df = df.crossJoin(part)
    assert df is not None  # noqa: S101 - every rule of a text has an atom
    for atom in (a for a in rule.body if a.kind != "join"):
        own = {v for v in atom.variables if v is not None}
        ready = [c for c in left if columns(c) & own]
        left = [c for c in left if c not in ready]
        part = _renamed(frame(atom), atom, names)
        how = "left_anti" if atom.kind == "anti" else "left_semi"
        df = df.join(part, F.expr(_all(ready, names, rule.place)) if ready else F.lit(col=True), how)
    values = (to_sql(e, names, rule.place) for e in rule.exprs)
    return df.selectExpr(*(f"{value} AS {quoted(h)}" for value, h in zip(values, head, strict=True)))


def _aliases(rule: Rule, alias: Callable[[Atom, int], str | None]) -> dict[str, str]:
    """Other names than the rule's for some variables, each once."""
    out: dict[str, str] = {}
    for atom in rule.body:
        for p, v in enumerate(atom.variables):
            wanted = alias(atom, p)
            if v is None or wanted is None:
                continue
            name, n = wanted, 2
            while name in out.values():
                name, n = f"{wanted}_{n}", n + 1
            out[v] = name
    return out


def _renamed(df: DataFrame, atom: Atom, names: dict[str, str]) -> DataFrame:
    """The columns that the rule reads, under the names of its variables."""
    found = df.columns
    read = [(p, v) for p, v in enumerate(atom.variables) if v is not None]
    if not read:  # a row is a row, whatever is in it
        return df.selectExpr("1 AS `row@`")
    return df.selectExpr(*(f"{quoted(found[p])} AS {quoted(names.get(v, v))}" for p, v in read))


def _all(conditions: list[Expr], names: dict[str, str], place: str) -> str:
    return " AND ".join(to_sql(c, names, place) for c in conditions)
