"""Analyse the steps of a job: by the shim, in the JVM or in a Connect server, or in Python. All give the same JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from pyspark_paralagg.backends.customs import Customs
from pyspark_paralagg.lowering.struct_type import struct_of
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    from pyspark_paralagg.backends.protocol import Job, Seed
    from pyspark_paralagg.program.program import Relation


class Analysis(Protocol):
    """Analysed steps."""

    def json(self) -> dict[str, Any]:
        """Return the Step JSON."""

    def source(self, number: int) -> DataFrame:
        """Return a source of the steps."""


A = TypeVar("A", bound=Analysis)
A_co = TypeVar("A_co", bound=Analysis, covariant=True)


class Analyser(Protocol[A_co]):
    """What analyses the steps of one job."""

    def reference(self, name: str, schema: StructType) -> DataFrame:
        """Return a DataFrame with the columns of ``schema`` and no rows: a step receives it in place of a relation."""

    def analyse(self, steps: Mapping[str, DataFrame]) -> A_co:
        """Return the analysis of ``steps``, which were made from references."""


@dataclass(frozen=True)
class Analysed(Generic[A]):
    """The analysed steps of a job, their JSON, and the job's relations with analysed aggregators."""

    analysis: A
    json: dict[str, Any]
    relations: list[Relation]

    @property
    def sources(self) -> list[DataFrame]:
        """Return each source as a DataFrame."""
        return [self.analysis.source(s["id"]) for s in self.json["sources"]]


def analysed(job: Job, analyser: Analyser[A]) -> Analysed[A]:
    """Return the analysed steps of ``job``. Raises ``UnsupportedError`` for a step that cannot be analysed."""
    if job.question is not None and job.analysis:
        known: Analysed[A] = job.analysis[0]
        return known
    relations = [s.relation for s in job.seeds]
    customs = Customs(relations, analyser.reference)
    steps = job.apply(references_of(job, analyser))
    analysis = analyser.analyse({**steps, **customs.frames()})
    step_json = customs.read(analysis.json())
    result = Analysed(analysis, step_json, [customs.filled(r) for r in relations])
    job.analysis[:] = [result]
    return result


def references_of(job: Job, analyser: Analyser[A]) -> dict[str, DataFrame]:
    """Return what the step receives in place of the relations."""
    return {s.relation.name: _state(analyser, s) for s in job.seeds}


def analyser_of(session: SparkSession) -> Analyser[Analysis]:
    """Return what needs no jar in the server: Python over Connect, and the shim of a classic session's own JVM.

    Raises ``EnvironmentProblem`` in a classic session without the jar.
    """
    if is_connect(session):
        from pyspark_paralagg.connect.analyse import PythonAnalyser  # noqa: PLC0415 - needs grpc

        return PythonAnalyser(session)
    from pyspark_paralagg.session.attach import Shim  # noqa: PLC0415 - only classic sessions need it

    return Shim(session)


def _state(analyser: Analyser[A], seed: Seed) -> DataFrame:
    """Return the reference that the step reads; all columns nullable, since later rounds may add nulls."""
    columns = [(c.name, c.type) for c in seed.relation.columns]
    return analyser.reference(seed.relation.name, struct_of(columns, seed.base))
