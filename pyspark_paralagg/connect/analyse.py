"""Analyse the steps of a job in a Spark Connect session: its DataFrames' plans -> Step JSON, and the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.connect.refuse import refuse
from pyspark_paralagg.connect.relations import Relations, listed
from pyspark_paralagg.connect.scope import Attribute
from pyspark_paralagg.connect.sources import MARK, Sources
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.functions import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_paralagg.connect.messages import Message

_EXECUTED = f"[{MARK}] the step reads rows of its relation, which exist only while the recursion runs"


@dataclass(frozen=True)
class Reference:
    """What a step receives in place of a relation: rows that can be analysed but not run; ``schema`` has its nulls."""

    frame: DataFrame
    schema: StructType


def reference(session: SparkSession, schema: StructType) -> Reference:
    """Return a reference with the columns of ``schema``."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that everyone gives it; pyspark is optional
    from pyspark.sql.types import AtomicType  # noqa: PLC0415 - likewise

    # No constants where a text can be cast: Spark would fold a filter on them, and never come to the error.
    text = F.nullif(F.col("id"), F.lit(-1)).cast("string")
    columns = [(text if isinstance(f.dataType, AtomicType) else F.lit(None)).cast(f.dataType) for f in schema.fields]
    rows = session.range(1).where(F.raise_error(F.lit(_EXECUTED)).isNull())
    return Reference(rows.select(*(c.alias(f.name) for c, f in zip(columns, schema.fields, strict=True))), schema)


def analyse(
    session: SparkSession, steps: Mapping[str, DataFrame], references: Mapping[str, Reference]
) -> tuple[dict[str, Any], list[DataFrame]]:
    """Return the Step JSON of ``steps``, as the shim's ``Analysis`` makes it, and the DataFrame of each source.

    Raises ``UnsupportedError`` ``PARALAGG_STEP_UNSUPPORTED`` for what Python cannot analyse.
    """
    confs = session.conf.getAll
    setting = Setting(confs.get("spark.sql.ansi.enabled", "true") == "true", confs.get("spark.sql.session.timeZone"))
    sources = Sources(session, (*steps.values(), *(r.frame for r in references.values())))
    relations = Relations(
        {_plan(r.frame).common.plan_id: (name, _columns(r.schema)) for name, r in references.items()},
        sources,
        setting,
        is_case_sensitive=confs.get("spark.sql.caseSensitive", "false") == "true",
    )
    steps_json = []
    for name, step in steps.items():
        try:
            node = relations.node(_plan(step))
        except UnsupportedError as problem:
            place = problem.place or f"step of {name}"
            raise UnsupportedError(
                problem.code, problem.message, value=problem.value, place=place, hint=problem.hint
            ) from problem
        _check(node.scope.output, step)
        steps_json.append({"name": name, "columns": listed(node.scope.output), "plan": node.data})
    step_json = {
        "steps": steps_json,
        "sources": sources.to_json(),
        "setting": {"ansi": setting.ansi, "time_zone": setting.time_zone},
    }
    return step_json, [s.frame for s in sources]


def _plan(df: DataFrame) -> Message:
    frame: Any = df  # pyspark declares the class for both kinds of sessions
    return frame._plan.plan(frame.sparkSession._client)  # noqa: SLF001 - pyspark has no public way to a plan


def _columns(schema: StructType) -> tuple[Attribute, ...]:
    return tuple(Attribute("", f.name, f.dataType.simpleString(), f.nullable) for f in schema.fields)


def _check(found: tuple[Attribute, ...], step: DataFrame) -> None:
    """Refuse a step whose types Python finds otherwise than Spark."""
    expected = [(f.name, f.dataType.simpleString()) for f in step.schema.fields]
    for own, (name, type_name) in zip(found, expected, strict=True):
        if own.type != type_name:
            refuse(f"{name}, which is {type_name} to Spark and {own.type} to Python,", name)
