"""Find the rows of a stored fixpoint that may have lost their support: the first half of delete and re-derive.

A row *falls* if a derivation of it uses a deleted source row or a fallen row, or if a new row of a negated source
rejects it. That is a recursion itself: sets, whose base are the rows derived so, and whose step is the user's step with
fallen rows in place of one read of a relation, and all stored rows in place of its other reads. Cycles that only
support themselves fall with their first row. Rows that have another derivation fall too; ``continuation`` derives them
again.

If ``compile.prove.find_support`` allows it, only a derivation of the row's stored value counts. Without that, every
derivation of its keys does.

Gupta, Mumick and Subrahmanian 1993, "Maintaining views incrementally", section 7 (DRed).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.api.dataframe import Declaration, recursive
from pyspark_paralagg.lowering.joins import other, renamed, same
from pyspark_paralagg.plan import EXTRAS
from pyspark_paralagg.plan.read import program_from_json
from pyspark_paralagg.program.functions.value_range import is_float
from pyspark_paralagg.program.sql import quoted
from pyspark_paralagg.report.engine_report import describe

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Column, DataFrame

    from pyspark_paralagg.maintenance.program import Program
    from pyspark_paralagg.maintenance.recursion import Frames
    from pyspark_paralagg.maintenance.template import Reading
    from pyspark_paralagg.program.program import Program as CompiledProgram
    from pyspark_paralagg.program.program import Relation

_ROUNDING = {"double": 1e-9, "float": 1e-4}
"""Relative differences below which values count as equal: an engine may compute another last digit than Spark."""


def compares_values(whole: DataFrame, relations: Sequence[Relation]) -> bool:
    """Return whether only derivations of a stored value support it, according to the compiled fixpoint ``whole``."""
    from pyspark_paralagg.compile.prove.find_support import supports_have_the_value  # noqa: PLC0415 - only this needs it

    described = describe(whole)
    if described is None:
        return False
    compiled = program_from_json(described["plan"][EXTRAS]["program"])
    return supports_have_the_value(compiled, [r.name for r in relations])


def support_of(program: CompiledProgram) -> tuple[list[int | None], list[float], bool]:
    """Return by which dependent column a derivation supports a row, and the relative tolerance, of each relation.

    The column is None if every derivation of a row's keys supports it. The last result tells whether the derivation
    that last changed a row of the only relation is support enough. It was derived from a *parent*. A parent that
    changes later is then better than the child, which else had changed, too. So parents lead to base rows, never around
    a cycle. That holds for sets, and if supports have the value of the row, which nothing else in the row may follow.
    """
    from pyspark_paralagg.compile.prove.find_support import (  # noqa: PLC0415 - as above
        supports_have_the_value,
        value_column,
    )

    relations = program.relations
    most = max(len(r.dependents) for r in relations)
    if not supports_have_the_value(program, [r.name for r in relations]):
        return [None] * len(relations), [0.0] * len(relations), len(relations) == 1 and most == 0
    values = [(r, value) for r in relations if (value := value_column(r)) is not None]  # all have one
    by: list[int | None] = [r.dependents.index(value) for r, value in values]
    tolerances = [_ROUNDING.get(value.column.type, 0.0) for _, value in values]
    return by, tolerances, len(relations) == 1 and most == 1


def fallen_rows(  # noqa: PLR0913 - what is gone, what was there, and how to find it
    program: Program, lost: Frames, before: Reading, stored: Frames, *, by_value: bool, options: Mapping[str, Any]
) -> dict[str, DataFrame]:
    """Return the rows of ``stored`` that fall, by relation; lazy.

    ``lost`` are the derivations that are gone, and ``before`` reads at least all rows that there were then.
    ``by_value`` is the result of ``compares_values``. Raises ``UnsupportedError`` if the engine of ``options`` does not
    support the recursion.
    """
    relations = {r.name: r for r in program.relations}
    names = {name: f"fallen_{name}" for name in relations}

    def supported(name: str, derived: DataFrame) -> DataFrame:
        relation = relations[name]
        compared = [c.name for c in (relation.columns if by_value else relation.keys)]
        joined = renamed(derived, compared).join(stored[name], _same_row(relation, by_value=by_value))
        return joined.select(*(quoted(c.name) for c in relation.columns))

    def step(**state: DataFrame) -> dict[str, DataFrame]:
        derived = program.derived_from({name: state[fallen] for name, fallen in names.items()}, before)
        return {
            names[name]: reduce(lambda a, b: a.unionAll(b), [supported(name, part) for part in parts])
            if parts
            else state[names[name]]
            for name, parts in derived.items()
        }

    declared = {
        fallen: Declaration(
            supported(name, lost[name]).distinct() if name in lost else stored[name].limit(0),
            [c.name for c in relations[name].columns],
            None,
            is_output=len(names) > 1,
        )
        for name, fallen in names.items()
    }
    found = recursive(declared, step, name="fallen", mode="trust", **options)
    return {name: found[fallen] for name, fallen in names.items()}


def _same_row(relation: Relation, *, by_value: bool) -> Column:
    """Return the condition that a derived row, on the other side, supports a stored row."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - its usual name; pyspark is optional

    from pyspark_paralagg.compile.prove.find_support import value_column  # noqa: PLC0415 - the compiler comes with it

    on = same([k.name for k in relation.keys])
    value = value_column(relation) if by_value else None
    if value is None:
        return on
    old, new = F.col(quoted(value.column.name)), F.col(quoted(other(value.column.name)))
    # A null counts as equal: a row that falls without need is derived again.
    is_same = F.coalesce(new == old, F.lit(col=True))
    if is_float(value.column.type):
        is_same |= F.abs(new - old) <= F.abs(old) * F.lit(_ROUNDING[value.column.type])
    return on & is_same
