"""Analyse the steps of a job: by the shim in a classic session, in Python over Connect. Both give the same JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark_paralagg.backends.customs import Customs
from pyspark_paralagg.lowering.struct_type import struct_of
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from pyspark_paralagg.backends.protocol import Job
    from pyspark_paralagg.connect.analyse import Reference
    from pyspark_paralagg.program.program import Relation

    Analysed = tuple[dict[str, Any], list[DataFrame], list[Relation]]


def analysed(job: Job) -> Analysed:
    """Return the Step JSON of ``job``, each source as a DataFrame, and the relations with analysed aggregators.

    Raises ``UnsupportedError`` for a step that Python cannot analyse, and ``EnvironmentProblem`` without the jar.
    """
    if is_connect(job.session):
        return _over_connect(job)
    from pyspark_paralagg.backends import spark  # noqa: PLC0415 - the compiler comes with it

    return spark.analysed(job)


def _over_connect(job: Job) -> Analysed:
    from pyspark_paralagg.connect.analyse import analyse, reference  # noqa: PLC0415 - needs grpc

    references: dict[str, Reference] = {}

    def refer(name: str, schema: StructType) -> DataFrame:
        references[name] = reference(job.session, schema)
        return references[name].frame

    customs = Customs([s.relation for s in job.seeds], refer)
    frames = customs.frames()
    for seed in job.seeds:
        columns = [(c.name, c.type) for c in seed.relation.columns]
        frames[seed.relation.name] = refer(seed.relation.name, struct_of(columns, seed.base))
    steps = job.apply({s.relation.name: frames.pop(s.relation.name) for s in job.seeds})
    step_json, sources = analyse(job.session, {**steps, **frames}, references)
    step_json = customs.read(step_json)
    return step_json, sources, [customs.filled(s.relation) for s in job.seeds]
