"""Check assumptions while rows are loaded: a source with an assumed column fails at a row that violates it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.errors import UsageError
from pyspark_paralagg.program.assumption import assumptions_about, to_guard
from pyspark_paralagg.program.expr import Lit
from pyspark_paralagg.program.schema import did_you_mean
from pyspark_paralagg.program.sql import quoted, to_sql

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame

    from pyspark_paralagg.program.expr import Call


def guards(assume: Sequence[Call], step_json: dict[str, Any]) -> dict[int, Callable[[DataFrame], DataFrame]]:
    """Return what adds the checks to a source, for each source of the step with an assumed column.

    Raises ``UsageError`` ``PARALAGG_ASSUME_COLUMN`` if no source has a column.
    """
    names = {s["id"]: [c["name"] for c in s["columns"]] for s in step_json["sources"]}
    owners = {s["id"]: s.get("name") for s in step_json["sources"]}
    for assumption in assume:
        if not any(assumptions_about(owners[source], own, [assumption]) for source, own in names.items()):
            column = to_guard(assumption)[0]
            known = sorted({c for own in names.values() for c in own})
            raise UsageError(
                "PARALAGG_ASSUME_COLUMN",
                f"no DataFrame that the step joins with has a column {column!r}",
                value=column,
                place="assume",
                hint=did_you_mean(column, known),
            )
    about = {source: assumptions_about(owners[source], own, assume) for source, own in names.items()}
    return {
        source: partial(_with_check, names=names[source], assumed=found) for source, found in about.items() if found
    }


def _with_check(df: DataFrame, names: Sequence[str], assumed: Sequence[Call]) -> DataFrame:
    # By position with generated names: a source may have two columns of one name.
    plain = df.toDF(*(f"c{i}" for i in range(len(names))))
    exprs = []
    for i, name in enumerate(names):
        value = f"c{i}"
        for column, condition in map(to_guard, assumed):
            if column != name:
                continue
            holds = condition.replace(quoted(name), f"c{i}", 1)
            message = Lit(f"[PARALAGG_ASSUMPTION_VIOLATED] {condition} is assumed, but a row has ", "string")
            raise_call = f"raise_error(concat({to_sql(message)}, cast(c{i} as string)))"
            value = f"if(NOT ({holds}), {raise_call}, {value})"  # null is no violation
        exprs.append(f"{value} AS c{i}")
    return plain.selectExpr(*exprs).toDF(*names)
