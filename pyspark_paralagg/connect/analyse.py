"""Analyse the steps of a job in a Spark Connect session: its DataFrames' plans -> Step JSON, and the inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark_paralagg.connect.frames import plan_of
from pyspark_paralagg.connect.refuse import refuse
from pyspark_paralagg.connect.relations import Relations, listed
from pyspark_paralagg.connect.scope import Attribute
from pyspark_paralagg.connect.sources import MARK, Sources
from pyspark_paralagg.errors import UnsupportedError
from pyspark_paralagg.program.functions import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_EXECUTED = f"[{MARK}] the step reads rows of its relation, which exist only while the recursion runs"


@dataclass(frozen=True)
class Reference:
    """What a step receives in place of a relation: rows that can be analysed but not run; ``schema`` has its nulls."""

    name: str
    frame: DataFrame
    schema: StructType


class PythonAnalyser:
    """The analysis of one job's steps in this process, without a jar in the server of ``session``."""

    def __init__(self, session: SparkSession) -> None:
        self._session = session
        self._references: list[Reference] = []

    def reference(self, name: str, schema: StructType) -> DataFrame:
        """Return the DataFrame that a step receives."""
        frame = _reference(self._session, schema)
        self._references.append(Reference(name, frame, schema))
        return frame

    def analyse(self, steps: Mapping[str, DataFrame]) -> PythonAnalysis:
        """Return the analysis of ``steps``, as the shim makes it.

        Raises ``UnsupportedError`` ``PARALAGG_STEP_UNSUPPORTED`` for what Python cannot analyse.
        """
        return _analysed(self._session, steps, self._references)


@dataclass(frozen=True)
class PythonAnalysis:
    """Analysed steps: the Step JSON and the inputs."""

    step_json: dict[str, Any]
    frames: tuple[DataFrame, ...]

    def json(self) -> dict[str, Any]:
        """Return the Step JSON."""
        return self.step_json

    def source(self, number: int) -> DataFrame:
        """Return a source of the steps."""
        return self.frames[number]


def _reference(session: SparkSession, schema: StructType) -> DataFrame:
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - the name that everyone gives it; pyspark is optional
    from pyspark.sql.types import AtomicType  # noqa: PLC0415 - likewise

    # No constants where a text can be cast: Spark would fold a filter on them, and never come to the error.
    text = F.nullif(F.col("id"), F.lit(-1)).cast("string")
    columns = [(text if isinstance(f.dataType, AtomicType) else F.lit(None)).cast(f.dataType) for f in schema.fields]
    rows = session.range(1).where(F.raise_error(F.lit(_EXECUTED)).isNull())
    return rows.select(*(c.alias(f.name) for c, f in zip(columns, schema.fields, strict=True)))


def _analysed(session: SparkSession, steps: Mapping[str, DataFrame], references: Sequence[Reference]) -> PythonAnalysis:
    confs = session.conf.getAll
    setting = Setting(confs.get("spark.sql.ansi.enabled", "true") == "true", confs.get("spark.sql.session.timeZone"))
    sources = Sources(session, (*steps.values(), *(r.frame for r in references)))
    relations = Relations(
        {plan_of(r.frame).common.plan_id: (r.name, _columns(r.schema)) for r in references},
        sources,
        setting,
        is_case_sensitive=confs.get("spark.sql.caseSensitive", "false") == "true",
    )
    steps_json = []
    for name, step in steps.items():
        try:
            node = relations.node(plan_of(step))
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
    return PythonAnalysis(step_json, tuple(s.frame for s in sources))


def _columns(schema: StructType) -> tuple[Attribute, ...]:
    return tuple(Attribute("", f.name, f.dataType.simpleString(), f.nullable) for f in schema.fields)


def _check(found: tuple[Attribute, ...], step: DataFrame) -> None:
    """Refuse a step whose types Python finds otherwise than Spark."""
    expected = [(f.name, f.dataType.simpleString()) for f in step.schema.fields]
    for own, (name, type_name) in zip(found, expected, strict=True):
        if own.type != type_name:
            refuse(f"{name}, which is {type_name} to Spark and {own.type} to Python,", name)
