"""Which executor runs a job, and why: the only module that names the backends.

The order of causes is the order of the questions, and only the first cause is told: what was asked for, what the
session can do, what the job needs. ``auto`` asks for ranks first where an MPI launcher is set, then for the Spark
engine, then for plain DataFrames.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError, UsageError
from pyspark_paralagg.session import conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.protocol import Backend, Job
    from pyspark_paralagg.errors import ParalaggError
    from pyspark_paralagg.program.program import Relation

logger = logging.getLogger("pyspark_paralagg")

_BY_DEFINITION = "; nothing is proved of the step, so every round recomputes every row, as the definition says"


def execute(job: Job, backend: str | None) -> dict[str, DataFrame]:
    """Runs ``job`` (or builds its lazy result) where the argument ``backend``, else the session's conf, wants it.

    ``auto`` takes MPI ranks where a launcher is set and the job is large, else the Spark engine and, where that has an
    obstacle or refuses the job, plain DataFrames, with a warning that says why. Who insists gets the reason as
    ``UnsupportedError``, or as what is wrong with the environment.
    """
    from pyspark_paralagg.backends.dataframe import DataFrameBackend  # noqa: PLC0415 - the compiler comes with it

    wanted = backend or conf.read(job.session, conf.BACKEND)
    by = f'backend="{wanted}"' if backend else f"{conf.BACKEND.name}={wanted}"
    if wanted == "dataframe":
        return DataFrameBackend().run(job, f"asked for by {by}")
    if wanted in ("mpi", "local"):
        return _on_ranks(job, wanted, by)
    if wanted == "spark":
        return _on_spark(job, f"asked for by {by}", by)
    declined = ""
    if conf.is_set(job.session, conf.MPI_LAUNCHER):
        try:
            return _on_ranks(job, "mpi", by, is_tried=True)
        except _Declined as problem:
            declined = f"; not on MPI ranks: {problem}"
    try:
        return _on_spark(job, f"the Spark engine takes every step that it can compile{declined}", by)
    except UnsupportedError as problem:
        reason = _told(problem) + ("" if job.mode == "iterate" else _BY_DEFINITION)
    logger.warning("%s runs now, on plain DataFrames and iteration by iteration: %s", job.name, reason)
    return DataFrameBackend().run(job, reason)


class _Declined(Exception):  # noqa: N818 - another executor does it
    """Why not on ranks."""


def _on_ranks(job: Job, name: str, by: str, *, is_tried: bool = False) -> dict[str, DataFrame]:
    """On ranks; where that is not possible on Spark, if the user wants it so, or ``_Declined``, if it was a try."""
    from pyspark_paralagg.backends.offload import OffloadBackend  # noqa: PLC0415 - the compiler comes with it

    why = f"{conf.MPI_LAUNCHER.name} is set, and the job is large enough" if is_tried else f"asked for by {by}"
    try:
        return _insist(OffloadBackend(name, is_tried=is_tried), job, why, by)
    except (UnsupportedError, EnvironmentProblem, UsageError) as problem:
        is_of_the_ranks = not isinstance(problem, UsageError) or problem.code.startswith("PARALAGG_MPI_")
        if is_tried and is_of_the_ranks:
            raise _Declined(_told(problem)) from problem
        if not isinstance(problem, EnvironmentProblem) or not conf.read(job.session, conf.MPI_FALLBACK):
            raise
        reason = f"{conf.MPI_FALLBACK.name}=true, and ranks cannot start: {_told(problem)}"
    logger.warning("%s runs on Spark: %s", job.name, reason)
    return _on_spark(job, reason, by)


def relation_class(df: DataFrame) -> str | None:
    """What the outermost recursion in ``df`` was proved to be; None where it ran on plain DataFrames."""
    from pyspark_paralagg.report.engine_report import describe  # noqa: PLC0415 - the compiler comes with it

    described = describe(df)
    if described is None:
        return None
    found: str = described["plan"]["strata"][described["stratum"]]["relation_class"]
    return found


def analysed_aggregators(session: SparkSession, relation: Relation) -> list[DataFrame]:
    """The users' aggregators of ``relation`` as plans that Spark has analysed."""
    from pyspark_paralagg.backends.customs import Customs  # noqa: PLC0415 - pyspark is optional

    return list(Customs(session, [relation]).frames().values())


def _on_spark(job: Job, reason: str, by: str) -> dict[str, DataFrame]:
    from pyspark_paralagg.backends.spark import SparkBackend  # noqa: PLC0415 - the compiler comes with it

    return _insist(SparkBackend(), job, reason, by)


def _insist(backend: Backend, job: Job, reason: str, by: str) -> dict[str, DataFrame]:
    obstacle = backend.obstacle(job.session)
    if obstacle is not None:
        place = None if "auto" in by else by
        raise UnsupportedError("PARALAGG_BACKEND_UNAVAILABLE", obstacle, value=backend.name, place=place)
    return backend.run(job, reason)


def _told(problem: ParalaggError) -> str:
    return problem.message + (f" (in {problem.place})" if problem.place else "")
