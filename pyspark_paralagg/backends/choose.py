"""Choose the executor of a job and record the reason: the only module that imports the backends.

Causes are checked in this order, and only the first is reported: the requested backend, the session, the job. ``auto``
tries MPI ranks if a launcher is set, then the Spark engine, then plain DataFrames.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from pyspark_paralagg.codes import OF_RANKS
from pyspark_paralagg.errors import EnvironmentProblem, UnsupportedError, UsageError
from pyspark_paralagg.session import conf
from pyspark_paralagg.session.running import is_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from pyspark_paralagg.backends.protocol import Backend, Job
    from pyspark_paralagg.errors import ParalaggError
    from pyspark_paralagg.program.program import Relation

logger = logging.getLogger("pyspark_paralagg")

_UNPROVED = "; the step is not proved"


def execute(job: Job, backend: str | None) -> dict[str, DataFrame]:
    """Run ``job``, or build its lazy result, on the backend of the argument, or else of the session's conf.

    ``auto`` takes MPI ranks if a launcher is set and the job is large, otherwise the Spark engine, or over Connect the
    engine in Python workers. If that has an obstacle or refuses the job, plain DataFrames run it, with a warning, if
    the step is proved or the mode asks for no proof. A requested backend that cannot run the job raises
    ``UnsupportedError`` or ``EnvironmentProblem``.
    """
    from pyspark_paralagg.backends.dataframe import DataFrameBackend  # noqa: PLC0415 - the compiler comes with it
    from pyspark_paralagg.backends.spark import SparkBackend  # noqa: PLC0415 - likewise

    requested = backend or conf.read(job.session, conf.BACKEND)
    origin = f'backend="{requested}"' if backend else f"{conf.BACKEND.name}={requested}"
    why = f"requested by {origin}"
    if requested == "dataframe":
        return DataFrameBackend().run(job, why)
    if requested != "auto":
        is_outside = requested in ("mpi", "local")
        return _on_ranks(job, requested, why, origin) if is_outside else _in_spark(job, requested, why, origin)
    declined = ""
    if conf.is_set(job.session, conf.MPI_LAUNCHER):
        try:
            return _on_ranks(job, "mpi", f"{conf.MPI_LAUNCHER.name} is set, and the job is large enough", None)
        except _Declined as problem:
            declined = f"; not on MPI ranks: {problem}"
    try:
        if is_connect(job.session) and SparkBackend().obstacle(job.session) is not None:
            why = "over Spark Connect, Python workers run every step that Python can analyse"
            return _in_spark(job, "python", why + declined, None)
        return _in_spark(job, "spark", f"the Spark engine runs every step that it supports{declined}", None)
    except UnsupportedError as problem:
        reason = _describe(problem) + (_UNPROVED if job.mode == "trust" else "")
    logger.warning("%s runs now on plain DataFrames, one iteration at a time: %s", job.name, reason)
    return DataFrameBackend().run(job, reason)


class _Declined(Exception):  # noqa: N818 - another executor takes the job
    """Raised by ``auto`` if ranks cannot run the job; the message is the reason."""


def _on_ranks(job: Job, name: str, why: str, origin: str | None) -> dict[str, DataFrame]:
    """Run on ranks; if they cannot start, run on Spark if MPI_FALLBACK is set.

    ``origin`` is where the user requested ranks; None for ``auto``, which gets ``_Declined`` if ranks cannot run it.
    """
    from pyspark_paralagg.backends.offload import OffloadBackend  # noqa: PLC0415 - the compiler comes with it

    is_tried = origin is None
    try:
        return _run(OffloadBackend(name, is_tried=is_tried), job, why, origin)
    except (UnsupportedError, EnvironmentProblem, UsageError) as problem:
        is_about_ranks = not isinstance(problem, UsageError) or problem.code in OF_RANKS
        if is_tried and is_about_ranks:
            raise _Declined(_describe(problem)) from problem
        if not isinstance(problem, EnvironmentProblem) or not conf.read(job.session, conf.MPI_FALLBACK):
            raise
        reason = f"{conf.MPI_FALLBACK.name}=true, and ranks cannot start: {_describe(problem)}"
    logger.warning("%s runs on Spark: %s", job.name, reason)
    return _in_spark(job, "spark", reason, origin)


def relation_class(df: DataFrame) -> str | None:
    """Return the proved class of the outermost recursion in ``df``; None if it ran on plain DataFrames."""
    from pyspark_paralagg.report.engine_report import describe  # noqa: PLC0415 - the compiler comes with it

    described = describe(df)
    if described is None:
        return None
    result: str = described["plan"]["strata"][described["stratum"]]["relation_class"]
    return result


def analysed_aggregators(session: SparkSession, relation: Relation) -> list[DataFrame]:
    """Return the user-defined aggregators of ``relation`` as plans that Spark has analysed."""
    from pyspark_paralagg.backends.customs import Customs  # noqa: PLC0415 - pyspark is optional
    from pyspark_paralagg.session.attach import reference  # noqa: PLC0415 - likewise

    return list(Customs([relation], partial(reference, session)).frames().values())


def _in_spark(job: Job, name: str, reason: str, origin: str | None) -> dict[str, DataFrame]:
    """Run on the Spark engine (``spark``), or on the engine in Python workers (``python``)."""
    from pyspark_paralagg.backends.python import PythonBackend  # noqa: PLC0415 - the compiler comes with it
    from pyspark_paralagg.backends.spark import SparkBackend  # noqa: PLC0415 - likewise

    return _run(PythonBackend() if name == "python" else SparkBackend(), job, reason, origin)


def _run(backend: Backend, job: Job, reason: str, origin: str | None) -> dict[str, DataFrame]:
    obstacle = backend.obstacle(job.session)
    if obstacle is not None:
        raise UnsupportedError("PARALAGG_BACKEND_UNAVAILABLE", obstacle, value=backend.name, place=origin)
    return backend.run(job, reason)


def _describe(problem: ParalaggError) -> str:
    return problem.message + (f" (in {problem.place})" if problem.place else "")
